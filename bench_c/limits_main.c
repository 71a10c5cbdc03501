/* Prints the limits of this machine without any library, with which the other figures are
 * compared. */
#include "bench.h"
#include "limits.h"

#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char *about = "Raw limits of this machine, without the library.";
static limits_t *limits;
static int other = 1;

static double line(unsigned rounds) { return limits_line(limits, rounds, 0, other); }
static double mailbox(unsigned rounds) { return limits_mailbox(limits, rounds, 0, other); }
static double ring_way(unsigned rounds) { return limits_ring_way(limits, rounds, 0, other); }
static double ring_8(unsigned rounds) { return limits_ring_message(limits, 8, rounds, 0, other); }
static double ring_4k(unsigned rounds) { return limits_ring_message(limits, 4096, rounds, 0, other); }
static double lone_add(unsigned rounds) { return limits_lone_add(limits, rounds); }
static double contended_add(unsigned rounds) { return limits_contended_add(limits, rounds, 0, other); }
static double copy_8(unsigned rounds) { return limits_memcpy(limits, 8, rounds); }
static double copy_1m(unsigned rounds) { return limits_memcpy(limits, 1048576, rounds); }
static double vm_8(unsigned rounds) { return limits_vm_read(limits, 8, rounds); }
static double vm_1m(unsigned rounds) { return limits_vm_read(limits, 1048576, rounds); }
static double wake_other(unsigned rounds) { return limits_wake(limits, 2000 * rounds, 0, other); }
static double wake_idle(unsigned rounds) { return limits_wake(limits, 50000 * rounds, 0, other); }
static double wake_same(unsigned rounds) { return limits_wake(limits, 2000 * rounds, 0, 0); }
static double plain_w(unsigned rounds) { return limits_plain(limits, 'w', rounds); }
static double plain_r(unsigned rounds) { return limits_plain(limits, 'r', rounds); }
static double plain_f(unsigned rounds) { return limits_plain(limits, 'f', rounds); }
static double ticks(unsigned rounds) { return limits_ticks(rounds); }

static double gettime(unsigned rounds)
{
    uint64_t before = bench_now_ns(), last = before;
    for (unsigned i = 0; i < rounds; i++)
        last = bench_now_ns();
    return (double)(last - before) / rounds;
}

static double system_call(unsigned rounds)
{
    uint64_t before = bench_now_ns();
    for (unsigned i = 0; i < rounds; i++)
        syscall(SYS_getppid);
    return (double)(bench_now_ns() - before) / rounds;
}

static double yield(unsigned rounds)
{
    uint64_t before = bench_now_ns();
    for (unsigned i = 0; i < rounds; i++)
        sched_yield();
    return (double)(bench_now_ns() - before) / rounds;
}

static const struct row {
    const char *what;
    size_t size;
    int processes;
    unsigned rounds; /* rounds in one repeat */
    double (*measure)(unsigned rounds);
} rows[] = {
    {"cache line one way; one line", 8, 2, 20000, line},
    {"cache line one way; two mailbox lines", 8, 2, 20000, mailbox},
    {"bare ring; one way of a ping-pong", 8, 2, 20000, ring_way},
    {"bare ring; a message of a stream", 8, 2, 500000, ring_8},
    {"bare ring; a message of a stream", 4096, 2, 20000, ring_4k},
    {"fetch-add; alone", 8, 1, 500000, lone_add},
    {"fetch-add; two processes on one word", 8, 2, 1000000, contended_add},
    {"memcpy private to shared", 8, 1, 1000000, copy_8},
    {"memcpy private to shared", 1048576, 1, 100, copy_1m},
    {"process_vm_readv", 8, 2, 5000, vm_8},
    {"process_vm_readv", 1048576, 2, 50, vm_1m},
    {"futex wake; sleeper on the other core", 4, 2, 1, wake_other},
    {"futex wake; other core idle for 50 ms", 4, 2, 1, wake_idle},
    {"futex wake; sleeper on the same core", 4, 2, 1, wake_same},
    {"plain_write", 8, 1, 1000000, plain_w},
    {"plain_read", 8, 1, 1000000, plain_r},
    {"plain_fetch_add", 8, 1, 500000, plain_f},
    {"clock_gettime", 0, 1, 100000, gettime},
    {"time stamp counter", 0, 1, 100000, ticks},
    {"system call (getppid)", 0, 1, 20000, system_call},
    {"sched_yield", 0, 1, 20000, yield},
};

int main(int argc, char **argv)
{
    enum { ROWS = sizeof rows / sizeof *rows };
    bench_options_t options = bench_parse(argc, argv, about);
    limits = limits_open(1048576);
    if (bench_cores() < 2)
        other = 0;
    bench_pin(0);
    bench_begin(&options, about);
    bench_record_t records[ROWS];
    for (int i = 0; i < ROWS; i++)
        records[i] = (bench_record_t){.what = rows[i].what, .unit = "ns", .ranks = rows[i].processes, .threads = 1,
                                      .size = rows[i].size, .count = rows[i].rounds};
    for (int r = 0; r < options.repeats; r++)
        for (int i = 0; i < ROWS; i++)
            bench_add(&records[i].series, NAN, rows[i].measure(rows[i].rounds), NAN);
    for (int i = 0; i < ROWS; i++)
        bench_emit(&records[i]);
    if (bench_cores() < 2)
        bench_note("one core only: both processes share it");
    bench_end();
    limits_close(limits);
    return 0;
}
