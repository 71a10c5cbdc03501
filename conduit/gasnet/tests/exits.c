/* Does a job end with the code that gasnet_exit gets: from all ranks, from one, in a handler, by a
 * return from main, in a signal handler, twice because a signal interrupts gasnet_exit? Does a
 * signal that ends the job run the client's handler of SIGQUIT? Does the job go on when children by
 * fork() end? Does the output of handlers come out that run during gasnet_exit? With
 * GASNET_CATCH_EXIT=0, does the job go on when one rank calls exit() alone, and do accesses of an
 * exit handler return? The first argument chooses the case. tests/run checks the exit code. */
#include "t.h"
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

static void quit(int number) { gasnet_exit(number == SIGQUIT ? 6 : 1); }
static void told(int number) {
    (void)number;
    static const char sentence[] = "the client was told by SIGQUIT\n";
    if (write(2, sentence, sizeof sentence - 1) < 0) {
        _exit(1);
    }
}
static void leave_again(int number) {
    (void)number;
    gasnet_exit(1);
}
static void leave(gex_Token_t token) {
    (void)token;
    gasnet_exit(9);
}
static void print(gex_Token_t token) {
    printf("output of a handler\n");
    gex_AM_ReplyShort0(token, 202, 0);
}
static _Atomic int printed;
static void has_printed(gex_Token_t token) {
    (void)token;
    printed = 1;
}
/* gasnet_exit() flushes this stream when it has begun. */
static ssize_t tell(void *word, const char *bytes, size_t size) {
    (void)bytes;
    *(_Atomic int *)word = 1;
    return (ssize_t)size;
}
/* The handler runs at rank 0 inside gasnet_exit(), since rank 1 sends when rank 0 is there. */
static void exit_with_output(void) {
    void *word;
    gex_Event_Wait(gex_EP_QueryBoundSegmentNB(tm, 1, NULL, &word, NULL, 0));
    if (me == 0) {
        fputc('.', fopencookie(word, "w", (cookie_io_functions_t){.write = tell}));
    } else {
        while (!*(_Atomic int *)word) {
            sched_yield();
        }
        gex_AM_RequestShort0(tm, 0, 201, 0);
        GASNET_BLOCKUNTIL(printed);
    }
    gasnet_exit(0);
}
static void *poll_once(void *nothing) {
    gasnet_AMPoll();
    return nothing;
}
/* The other ranks go on for longer than the last one waits for them. */
static int go_on(void) {
    const struct timespec time = {.tv_nsec = 600000000};
#if defined(GASNET_PAR)
    pthread_t thread; /* a thread that has ended keeps no rank from leaving */
    CHECK(!pthread_create(&thread, NULL, poll_once, NULL) && !pthread_join(thread, NULL));
#else
    poll_once(NULL);
#endif
    if (me < all - 1) {
        nanosleep(&time, NULL);
        fprintf(stderr, "rank %u has gone on\n", me);
    }
    return me < all - 1 ? 3 : 0;
}

/* It was registered before gex_Client_Init, so it runs when this rank has left. */
static void late(void) {
    static char bytes[1000];
    unsigned next = (me + all / 2) % all; /* on another node: the end unmaps the segments of this one */
    char *there = base_of(next);
    gex_Event_t local, root = gex_RMA_PutNB(tm, next, there, bytes, sizeof bytes, &local, 0);
    gex_Event_Wait(local);
    gex_Event_Wait(root);
    gex_RMA_GetNBI(tm, bytes, next, there, 8, 0);
    gex_NBI_Wait(GEX_EC_ALL, 0);
    gasnet_memset(next, there, 1, 5000);
    fprintf(stderr, "late accesses have returned\n");
}

/* Three ways in which a child ends. None of them waits for the other ranks. */
static void children_end(void) {
    signal(SIGQUIT, quit);
    gasnett_tick_t before = gasnett_ticks_now();
    for (int way = 0; way < 3; way++) {
        int status = 0;
        pid_t child = fork();
        if (!child) {
            if (way == 0) {
                exit(7);
            } else if (way == 1) {
                gasnet_exit(8);
            }
            kill(getpid(), SIGTERM);
            pause();
        }
        CHECK(waitpid(child, &status, 0) == child);
        CHECK(way < 2 ? WIFEXITED(status) && WEXITSTATUS(status) == 7 + way
                      : WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
    }
    CHECK(gasnett_ticks_to_ns(gasnett_ticks_now() - before) < UINT64_C(9000000000)); /* a third of GASNET_EXITTIMEOUT */
}

int main(int argc, char **argv) {
    gex_AM_Entry_t table[] = {{200, (gex_AM_Fn_t)leave, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0, NULL, NULL},
                              {201, (gex_AM_Fn_t)print, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0, NULL, NULL},
                              {202, (gex_AM_Fn_t)has_printed, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY, 0, NULL, NULL}};
    const char *how = argc > 1 ? argv[1] : "all";
    signal(SIGINT, SIG_DFL); /* a shell's background jobs ignore SIGINT, and the conduit does not change that */
    if (!strcmp(how, "late")) {
        atexit(late);
    }
    begin(table, 3);
    if (!strcmp(how, "told")) {
        signal(SIGQUIT, told);
    }
    barrier();
    if (!strcmp(how, "all")) {
        gasnet_exit(0);
    } else if (!strcmp(how, "code")) {
        gasnet_exit(7);
    } else if (!strcmp(how, "one") && me == all - 1) {
        gasnet_exit(8);
    } else if (!strcmp(how, "handler") && me == 0) {
        gex_AM_RequestShort0(tm, all - 1, 200, 0);
    } else if (!strcmp(how, "signal") && me == all - 1) {
        signal(SIGQUIT, quit);
        kill(getpid(), SIGINT);
    } else if (!strcmp(how, "twice") && me == 0) {
        signal(SIGALRM, leave_again);
        ualarm(50000, 0); /* while gasnet_exit waits for the other ranks, which do not exit */
        gasnet_exit(4);
    } else if (!strcmp(how, "told") && me == 0) {
        gasnet_exit(3);
    } else if (!strcmp(how, "told")) {
        for (;;) {
            pause();
        }
    } else if (!strcmp(how, "output")) {
        exit_with_output();
    } else if (!strcmp(how, "children")) {
        children_end();
        barrier();
        gasnet_exit(2);
    } else if (!strcmp(how, "return")) {
        return 5;
    } else if (!strcmp(how, "late")) {
        return 0;
    } else if (!strcmp(how, "alone")) {
        return go_on();
    }
    for (;;) {
        gasnet_AMPoll();
    }
}
