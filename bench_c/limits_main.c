/* The raw limits of this machine, with no library: what every other figure is to be compared with. */
#include "bench.h"
#include "limits.h"

#include <stdlib.h>

static const char *about = "Raw limits of this machine, without the library.";
static limits_t *limits;
static int other = 1;

static double line(void) { return limits_line(limits, 20000, 0, other); }
static double mailbox(void) { return limits_mailbox(limits, 20000, 0, other); }
static double copy_8(void) { return limits_memcpy(limits, 8, 1000000); }
static double copy_1m(void) { return limits_memcpy(limits, 1048576, 100); }
static double lone_add(void) { return limits_lone_add(limits, 500000); }
static double contended_add(void) { return limits_contended_add(limits, 200000, 0, other); }
static double wake_other(void) { return limits_wake(limits, 2000, 0, other); }
static double wake_idle(void) { return limits_wake(limits, 50000, 0, other); }
static double wake_same(void) { return limits_wake(limits, 2000, 0, 0); }
static double vm_8(void) { return limits_vm_read(limits, 8, 5000); }
static double vm_1m(void) { return limits_vm_read(limits, 1048576, 50); }
static double plain_w(void) { return limits_plain(limits, 'w', 1000000); }
static double plain_r(void) { return limits_plain(limits, 'r', 1000000); }
static double plain_f(void) { return limits_plain(limits, 'f', 500000); }
static double gettime(void) { return limits_clock_gettime(100000); }
static double ticks(void) { return limits_ticks(100000); }
static double system_call(void) { return limits_system_call(20000); }
static double yield(void) { return limits_sched_yield(20000); }

static const struct row {
    const char *what;
    size_t size;
    int processes;
    double (*measure)(void);
} rows[] = {
    {"cache line one way; one line", 8, 2, line},
    {"cache line one way; two mailbox lines", 8, 2, mailbox},
    {"fetch-add; alone", 8, 1, lone_add},
    {"fetch-add; two processes on one word", 8, 2, contended_add},
    {"memcpy private to shared", 8, 1, copy_8},
    {"memcpy private to shared", 1048576, 1, copy_1m},
    {"process_vm_readv", 8, 2, vm_8},
    {"process_vm_readv", 1048576, 2, vm_1m},
    {"futex wake; sleeper on the other core", 4, 2, wake_other},
    {"futex wake; other core idle for 50 ms", 4, 2, wake_idle},
    {"futex wake; sleeper on the same core", 4, 2, wake_same},
    {"plain_write", 8, 1, plain_w},
    {"plain_read", 8, 1, plain_r},
    {"plain_fetch_add", 8, 1, plain_f},
    {"clock_gettime", 0, 1, gettime},
    {"time stamp counter", 0, 1, ticks},
    {"system call (getppid)", 0, 1, system_call},
    {"sched_yield", 0, 1, yield},
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
        records[i] = (bench_record_t){.what = rows[i].what, .unit = "ns", .ranks = rows[i].processes, .threads = 1, .size = rows[i].size};
    for (int r = 0; r < options.repeats; r++)
        for (int i = 0; i < ROWS; i++)
            bench_add(&records[i].series, NAN, rows[i].measure(), NAN);
    for (int i = 0; i < ROWS; i++)
        bench_emit(&records[i]);
    if (bench_cores() < 2)
        bench_note("one core only: both processes share it");
    bench_end();
    limits_close(limits);
    return 0;
}
