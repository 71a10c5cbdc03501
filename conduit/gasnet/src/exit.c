/* The end of the job.
 *
 * A rank that exits announces this to all others. If all ranks announce it within
 * GASNET_EXITTIMEOUT, they end together. Otherwise the rank whose wait is over ends the job: the
 * specification lets gasnet_exit of one rank end all. */
#include "internal.h"

#include <limits.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* The specification sends SIGQUIT to ranks whose job is being ended, and a client may handle it.
 * The launcher sends SIGTERM instead. So the handler of these signals raises SIGQUIT first if the
 * client handles that. */
static const int ends[] = {SIGINT, SIGTERM, SIGHUP};
static __thread bool in_signal;

/* The process that has begun the job. A child of it by fork() is no rank: its end is not the end of
 * a rank. */
static pid_t process;

bool is_rank(void) { return process == 0 || getpid() == process; }

static void end_by(int number) {
    struct sigaction quit;
    in_signal = true;
    /* A client that has called gasnet_exit is not told: the launcher may send SIGTERM to ranks that
     * are about to end with another code than 0. */
    if (is_rank() && !atomic_load(&job.leaving) && sigaction(SIGQUIT, NULL, &quit) == 0 &&
        quit.sa_handler != SIG_DFL && quit.sa_handler != SIG_IGN) {
        raise(SIGQUIT);
    }
    /* The client's handler has returned, or the client has none. */
    signal(number, SIG_DFL);
    raise(number);
}

static void signals_begin(void) {
    struct sigaction now, wanted = {.sa_handler = end_by};
    sigemptyset(&wanted.sa_mask);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        if (sigaction(ends[i], NULL, &now) == 0 && now.sa_handler == SIG_DFL) {
            sigaction(ends[i], &wanted, NULL);
        }
    }
}

/* The announcements to ranks behind a wire that have ended; LLCL_WORD_FAILED is set if one has
 * failed. */
static uint64_t answers;
/* Announces this rank's exit to a rank behind a wire. An error counts as an answer, since that rank
 * is dead. */
static void tell_far(const struct control_at *control) {
    llcl_atomic_params_t params = LLCL_ATOMIC_PARAMS_INIT;
    llcl_status_t status;
    params.peer = control->jobrank;
    params.flags = LLCL_FLAG_PARK;
    params.target = llcl_at(control->remote, offsetof(struct control, leaving));
    params.op = LLCL_OP_ADD;
    params.type = LLCL_TYPE_U64;
    params.operand = 1;
    params.on_complete = llcl_add_on(&answers);
    while ((status = llcl_try_atomic_async(job.context, &params)) > 0) {
        sched_yield();
    }
    if (status != LLCL_OK) {
        __atomic_fetch_add(&answers, 1, __ATOMIC_RELAXED);
    }
}

/* Whether all ranks have announced their exit, and this rank's own announcements have ended: a rank
 * that is gone cannot send them. */
static bool all_have_left(uint64_t asked) {
    uint64_t answered = __atomic_load_n(&answers, __ATOMIC_ACQUIRE) & ~LLCL_WORD_FAILED;
    return atomic_load(&job.world->control->leaving.value) == job.size && answered == asked;
}

/* GASNET_EXITTIMEOUT, and when it is over. */
static uint64_t exit_timeout_ns;
static gasnett_tick_t until;

static bool all_leave(void) {
    uint64_t asked = 0;
    if (in_signal && any_far()) {
        return false; /* the announcements are calls of libllcl, which the signal may have interrupted */
    }
    for (gex_Rank_t r = 0; r < job.size; r++) {
        if (job.controls[r].here) {
            atomic_fetch_add(&job.controls[r].here->leaving.value, 1);
        } else {
            tell_far(&job.controls[r]);
            asked++;
        }
    }
    while (!all_have_left(asked)) {
        if (gasnett_ticks_now() > until) {
            return false;
        }
        if (!in_handler() && !in_signal) {
            llcl_am_poll(job.context, 16, NULL);
        }
        sched_yield();
    }
    return true;
}

/* Set in the thread that calls leave() first. */
static __thread bool leaves;

/* The thread that leaves finalizes, so no other thread may enter the conduit any more. */
static _Atomic bool closed;

/* The caller is counted already. So either it sees `closed`, or may_finalize() sees it. */
void stop_at_end(void) {
    while (atomic_load(&closed) && !leaves) {
        usleep(1000); /* may_finalize() may open again */
    }
}

bool is_at_end(void) {
    while (atomic_load(&job.leaving) && !leaves) {
        pause();
    }
    return leaves;
}

/* llcl_finalize allows no other thread inside a call of libllcl, and there may be one. Inside a
 * client's handler of a signal this thread itself may be inside such a call. */
static bool may_finalize(void) {
    /* The calling thread may be one that has not called the conduit before. */
    int own = thread_seen ? 1 : 0;
    if (in_handler() || in_signal) {
        return false;
    }
    atomic_store(&closed, true);
    bool alone = atomic_load(&threads_here) == own;
    atomic_store(&closed, alone);
    return alone;
}

/* What the client has set for SIGSEGV. */
static struct sigaction at_fault;

/* llcl_finalize unmaps the segments. A thread of the client that is not in a call may still use
 * them: it puts or gets by an inlined access, or computes there. That must not kill the process,
 * which ends in any case, with a code. So a thread that faults there from then on stops. */
static void stop(int number, siginfo_t *fault, void *state) {
    (void)state;
    while (!leaves && fault->si_code > 0 && is_in_segment(fault->si_addr)) {
        pause();
    }
    sigaction(SIGSEGV, &at_fault, NULL); /* the fault comes again, now without this function */
    if (fault->si_code <= 0) {
        raise(number); /* a process has sent it, so it does not come again */
    }
}

static void faults_stop_threads(void) {
    struct sigaction wanted = {.sa_sigaction = stop, .sa_flags = SA_SIGINFO};
    sigemptyset(&wanted.sa_mask);
    sigaction(SIGSEGV, &wanted, &at_fault);
}

/* Leaves out a stream that another thread uses now. */
static void flush_standard(void) {
    FILE *streams[] = {stdout, stderr};
    for (size_t i = 0; i < sizeof streams / sizeof *streams; i++) {
        if (ftrylockfile(streams[i]) == 0) {
            fflush(streams[i]);
            funlockfile(streams[i]);
        }
    }
}

/* fflush(NULL) waits for the lock of every stream, the newest first, and a thread that reads from a
 * pipe keeps a lock until bytes come. So a thread of its own flushes. It is made in exit_begin():
 * gasnet_exit may run in a handler of a signal that has interrupted malloc, which pthread_create()
 * needs. */
static bool can_flush;
static sem_t flush_wanted, flush_ended;

static void *flush_if_wanted(void *nothing) {
    for (;;) {
        if (sem_wait(&flush_wanted) == 0) {
            fflush(NULL);
            sem_post(&flush_ended);
        }
    }
    return nothing;
}

#define FLUSH_STACK (256 * 1024) /* a write function of fopencookie() runs there */

static void flush_begin(void) {
    pthread_t thread;
    pthread_attr_t attributes;
    sigset_t every, mask;
    sem_init(&flush_wanted, 0, 0);
    sem_init(&flush_ended, 0, 0);
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, FLUSH_STACK + PTHREAD_STACK_MIN);
    sigfillset(&every); /* the client's handlers run on the client's threads */
    pthread_sigmask(SIG_SETMASK, &every, &mask);
    can_flush = pthread_create(&thread, &attributes, flush_if_wanted, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
    pthread_attr_destroy(&attributes);
}

#define FLUSH_NS UINT64_C(1000000000)

/* fflush(NULL) has not ended in time. It keeps locks of the C library until the process ends. */
static bool flush_is_late;

/* Flushes stdout and stderr, then all other streams for FLUSH_NS at most. If that is too short
 * once, this function does not try again. Only the thread that leaves calls it. */
static void flush(void) {
    /* By this thread, without a limit: a slow reader of the output gets all of it. These are the
     * oldest streams, so fflush(NULL) might not come to them. */
    flush_standard();
    gasnett_tick_t end = gasnett_ticks_now() + FLUSH_NS;
    if (!can_flush || flush_is_late) {
        return;
    }
    sem_post(&flush_wanted);
    while (sem_trywait(&flush_ended) != 0) {
        if (gasnett_ticks_now() > end) {
            flush_is_late = true;
            return;
        }
        usleep(50);
    }
}

/* It runs after all exit handlers, and before exit() itself flushes: for a lock that the late flush
 * keeps, exit() would wait for ever. */
static void __attribute__((destructor)) end_without_flush(void) {
    if (leaves && flush_is_late) {
        _exit(job.leaving & 255);
    }
}

/* Makes this thread the one that ends the process; false: this process is no rank. */
static bool leave_begins(int code) {
    int first = 0;
    sigset_t every, mask;
    if (!job.context || !is_rank()) {
        return false;
    }
    if (leaves) {
        _exit(job.leaving & 255); /* the client's handler of a signal has interrupted this thread's leave() */
    }
    /* A handler that runs between the two assignments would wait for its own thread. */
    sigfillset(&every);
    pthread_sigmask(SIG_SETMASK, &every, &mask);
    leaves = atomic_compare_exchange_strong(&job.leaving, &first, 256 | code);
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
    while (!leaves) {
        pause(); /* another thread is already ending this process */
    }
    return true;
}

/* The process ends by exit() or a return from main. */
static bool in_exit;
#define GRACE_MS 2000 /* between SIGTERM and SIGKILL for the other ranks, as of llcl_abort */

/* `ends_all`: the job ends also if other ranks go on. */
static void leave(bool ends_all) {
    until = gasnett_ticks_now() + exit_timeout_ns;
    bool together = job.world && all_leave();
    if ((together || !ends_all) && may_finalize()) {
        faults_stop_threads();
        llcl_finalize_within(job.context, together ? -1 : 0);
    } else if (ends_all) {
        flush();
        if (in_exit && !flush_is_late) {
            llcl_exit(job.context, job.leaving & 255, GRACE_MS); /* runs the other exit handlers */
        }
        /* It flushes nothing itself, so it does not wait for a stream. If a signal has interrupted
         * a call of libllcl that holds a lock which llcl_abort takes, only SIGKILL ends the
         * process. */
        llcl_abort(job.context, job.leaving & 255);
    }
}

/* See GASNET_CATCH_EXIT in docs/gasnet.md. */
static bool exit_ends_all;

/* If another thread is in gasnet_exit, leave_begins() does not return: that thread ends the
 * process. */
static void leave_at_exit(int code, void *nothing) {
    (void)nothing;
    if (!leaves && leave_begins(code & 255)) {
        in_exit = true;
        flush();
        leave(exit_ends_all);
    }
}

void exit_begin(void) {
    process = getpid();
    signals_begin();
    double seconds = gasnett_getenv_dbl_withdefault("GASNET_EXITTIMEOUT", 5);
    exit_timeout_ns = (uint64_t)((seconds > 0 ? seconds : 0) * 1e9);
    exit_ends_all = gasnett_getenv_yesno_withdefault("GASNET_CATCH_EXIT", 1);
    flush_begin();
    on_exit(leave_at_exit, NULL);
}

void gasnet_exit(int code) {
    if (leave_begins(code & 255)) {
        /* Handlers of messages, and other threads, may write while this rank waits for the others:
         * hence a second flush. The first one is for a rank that is killed while it waits. */
        flush();
        leave(true);
        flush();
    }
    _exit(code & 255);
}
