/* Does a rank end as docs/gasnet.md says while other threads of its client live? The first argument
 * chooses the case:
 * - beside a poll, alone: a thread that has never called the conduit calls exit(), while another
 *   thread polls, and after all others have ended (both with GASNET_CATCH_EXIT=0);
 * - beside a test: exit() while another thread makes no calls but tests of an event
 *   (with GASNET_CATCH_EXIT=0);
 * - beside a get: exit() while another thread, which makes no other calls, gets from memory that is
 *   not mapped here;
 * - beside a put: exit(), with an exit handler that takes time, while another thread puts to mapped
 *   memory by inlined accesses, and so never enters the conduit;
 * - before a get: exit(), with an exit handler during which another thread makes its first call;
 * - before a fault: exit(), with an exit handler during which another thread faults outside of all
 *   segments: that ends the process as it always does;
 * - beside an exit: a return from main while another thread is in gasnet_exit;
 * - beside a read: gasnet_exit while another thread reads from a pipe that stays empty; if "alone",
 *   rank 0 does so while the other one goes on;
 * - return beside a read: all ranks return from main beside such threads;
 * - after a death: gasnet_exit(), which waits for the other rank, while that is killed and another
 *   thread gets from it: the get that fails must not end the job with another code.
 * tests/run checks the exit code. Threads need PAR: programs of the other modes do nothing. */
#include "t.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>

#if defined(GASNET_PAR)
#include <pthread.h>

static _Atomic int ready; /* the other thread has begun */
static char memory[4096] __attribute__((aligned(4096)));

static pthread_t start(void *run(void *), void *argument) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, run, argument)) {
        abort();
    }
    return thread;
}
static void sleep_ms(long ms) {
    const struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    nanosleep(&time, NULL);
}
static void await(void) {
    while (!ready) {
        sleep_ms(1);
    }
}

static void tell_process(void) {
    pid_t own = getpid();
    gex_RMA_PutBlocking(tm, 1, base_of(1), &own, sizeof own, 0);
}
static void *begin_there(void *stays) {
    begin(NULL, 0);
    if (me == 0) {
        tell_process();
    }
    barrier();
    ready = 1;
    while (stays && me == 0) {
        gasnet_AMPoll();
    }
    return NULL;
}
/* Rank 0 calls exit(), and rank 1 goes on until the process of rank 0 has ended. */
static int exit_alone(void) {
    if (me == 0) {
        exit(0);
    }
    _Atomic pid_t *process = (_Atomic pid_t *)base_of(1);
    while (!*process) {
        sleep_ms(1);
    }
    struct pollfd other = {.fd = (int)syscall(SYS_pidfd_open, *process, 0), .events = POLLIN};
    CHECK(other.fd >= 0 ? poll(&other, 1, -1) == 1 : errno == ESRCH);
    fprintf(stderr, "rank %u has gone on\n", me);
    return 3;
}
/* The thread that calls exit() is one that the conduit has not seen. */
static int stranger(int stays) {
    pthread_t thread = start(begin_there, stays ? &client : NULL);
    await();
    if (!stays || me) {
        pthread_join(thread, NULL);
    }
    return exit_alone();
}

static void *get(void *from) {
    for (uint64_t word;; ready = 1) {
        gex_RMA_GetBlocking(tm, &word, (me + 1) % all, from, sizeof word, 0);
    }
    return NULL;
}
static void *put(void *to) {
    for (uint64_t word = 0;; ready = 1) {
        gex_RMA_PutBlocking(tm, (me + 1) % all, to, &word, sizeof word, 0);
    }
    return NULL;
}
static void *test(void *event) {
    for (;; ready = 1) {
        gex_Event_Test(event);
    }
    return NULL;
}
static _Atomic int ends; /* this rank runs the exit handler */
static void *get_late(void *from) {
    while (!ends) {
        sleep_ms(1);
    }
    return get(from);
}
static void *fault_late(void *at) {
    while (!ends) {
        sleep_ms(1);
    }
    *(volatile char *)at = 0;
    return NULL;
}
static int time_ms = 200;
static void take_time(void) {
    ends = 1;
    sleep_ms(time_ms);
}
/* gasnet_exit() flushes this stream when it has begun. */
static ssize_t kill_other(void *process, const char *bytes, size_t size) {
    (void)bytes;
    kill(*(pid_t *)process, SIGKILL);
    return (ssize_t)size;
}
static void exit_after_death(void) {
    pid_t other;
    gex_RMA_GetBlocking(tm, &other, 1, base_of(1), sizeof other, 0);
    fputc('.', fopencookie(&other, "w", (cookie_io_functions_t){.write = kill_other}));
    start(get, base_of(1));
    await();
    gasnet_exit(6);
}
static ssize_t tell(void *nothing, const char *bytes, size_t size) {
    (void)nothing;
    (void)bytes;
    ready = 1;
    return (ssize_t)size;
}
static void *exit_there(void *nothing) {
    fputc('.', fopencookie(NULL, "w", (cookie_io_functions_t){.write = tell}));
    gasnet_exit(3);
    return nothing;
}
static void *read_line(void *pipe) {
    char line[8];
    ready = 1;
    return fgets(line, sizeof line, pipe);
}
/* Buffered output must come out: that of stdout, and that of a stream that was opened after the
 * locked one, since fflush(NULL) begins with the newest stream. */
static void write_beside_read(void) {
    int ends[2];
    CHECK(!pipe(ends));
    start(read_line, fdopen(ends[0], "r"));
    await();
    sleep_ms(100);
    FILE *stream = fdopen(dup(1), "w");
    CHECK(stream);
    printf("stdout has been flushed\n");
    fprintf(stream, "another stream has been flushed\n");
}
static void begin_unmapped(void) {
    CHECK(gex_Client_Init(&client, &ep, &tm, "TEST", NULL, NULL, init_flags) == GASNET_OK);
    me = gex_TM_QueryRank(tm);
    all = gex_TM_QuerySize(tm);
    CHECK(gex_Segment_Create(&segment, client, memory, sizeof memory, GEX_MK_HOST, 0) == GASNET_OK);
    gex_EP_BindSegment(ep, segment, 0);
    CHECK(gex_EP_PublishBoundSegment(tm, &ep, 1, 0) == GASNET_OK);
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "";
    if (!strcmp(how, "beside a poll") || !strcmp(how, "alone")) {
        return stranger(*how == 'b');
    } else if (!strcmp(how, "beside a test")) {
        begin(NULL, 0);
        if (me == 0) { /* no other rank enters this barrier */
            tell_process();
            start(test, gex_Coll_BarrierNB(tm, 0));
            await();
        }
        return exit_alone();
    } else if (!strcmp(how, "beside a get")) {
        begin_unmapped();
        start(get, base_of((me + 1) % all));
        await();
        barrier();
        exit(5);
    } else if (!strcmp(how, "beside a put")) {
        atexit(take_time); /* before the conduit's own handler is registered, so it runs after that */
        begin(NULL, 0);
        start(put, base_of((me + 1) % all));
        await();
        barrier();
        exit(7);
    } else if (!strcmp(how, "before a get")) {
        atexit(take_time); /* as above */
        begin_unmapped();
        start(get_late, base_of((me + 1) % all));
        barrier();
        exit(9);
    } else if (!strcmp(how, "before a fault")) {
        atexit(take_time); /* as above */
        begin(NULL, 0);
        time_ms = 20000; /* the fault ends the process before */
        start(fault_late, (void *)64);
        barrier();
        exit(0);
    } else if (!strcmp(how, "beside an exit")) {
        begin(NULL, 0);
        barrier();
        if (me == 0) {
            start(exit_there, NULL);
            await();
            return 0;
        }
        for (;;) {
            gasnet_AMPoll();
        }
    } else if (!strcmp(how, "beside a read")) {
        begin(NULL, 0);
        write_beside_read();
        barrier();
        gasnet_exit(3);
    } else if (!strcmp(how, "return beside a read")) {
        begin(NULL, 0);
        write_beside_read();
        barrier();
        return 3;
    } else if (!strcmp(how, "beside a read, alone")) {
        begin(NULL, 0);
        if (me == 0) {
            write_beside_read();
            gasnet_exit(3);
        }
        for (;;) {
            gasnet_AMPoll();
        }
    } else if (!strcmp(how, "after a death")) {
        begin_unmapped();
        *(_Atomic pid_t *)memory = getpid();
        barrier();
        if (me) {
            for (;;) {
                pause();
            }
        }
        exit_after_death();
    }
    return 1;
}
#else
int main(void) { return 0; }
#endif
