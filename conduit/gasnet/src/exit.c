/* The end of the job.
 *
 * A rank that exits announces this to all others. If all ranks announce it within
 * GASNET_EXITTIMEOUT, they end together. Otherwise the rank whose wait is over ends the job: the
 * specification lets gasnet_exit of one rank end all. */
#include "internal.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <unistd.h>

/* The specification sends SIGQUIT to ranks whose job is being ended, and a client may handle it.
 * The launcher sends SIGTERM instead. So the handler of these signals raises SIGQUIT first if the
 * client handles that. */
static const int ends[] = {SIGINT, SIGTERM, SIGHUP};
static __thread bool in_signal;

/* The process that has begun the job. A child of it by fork() is no rank: its end is not the end of
 * a rank. */
static pid_t process;

static void end_by(int number) {
    struct sigaction quit;
    in_signal = true;
    /* A client that has called gasnet_exit is not told: the launcher may send SIGTERM to ranks that
     * are about to end with another code than 0. */
    if (getpid() == process && !atomic_load(&job.leaving) && sigaction(SIGQUIT, NULL, &quit) == 0 &&
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

#define GRACE_MS 1000 /* between SIGTERM and SIGKILL for the other ranks */
static uint64_t exit_timeout_ns(void) {
    double seconds = gasnett_getenv_dbl_withdefault("GASNET_EXITTIMEOUT", 5);
    return (uint64_t)((seconds > 0 ? seconds : 0) * 1e9);
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

/* When GASNET_EXITTIMEOUT is over. */
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

#define FLUSH_MS 1000 /* that a flush waits for streams that other threads use */

/* Another thread may keep the lock of a stream: one that reads from a pipe does until bytes come.
 * This function leaves out streams whose locks it does not get. */
static void flush_standard(void) {
    FILE *streams[] = {stdout, stderr};
    gasnett_tick_t end = gasnett_ticks_now() + FLUSH_MS * UINT64_C(1000000);
    for (size_t i = 0; i < sizeof streams / sizeof *streams; i++) {
        bool locked;
        while (!(locked = ftrylockfile(streams[i]) == 0) && gasnett_ticks_now() < end) {
            sched_yield();
        }
        if (locked) {
            fflush(streams[i]);
            funlockfile(streams[i]);
        }
    }
}

/* The thread that leaves, what it does after the flush, when it stops waiting for the flush, and
 * whether it has done so. */
static pthread_t leaver;
static void (*after_flush)(void);
static gasnett_tick_t flush_end;
static volatile sig_atomic_t flush_was_late;

static void flush_is_late(int number) {
    if (!leaves) {
        pthread_kill(leaver, number);
    } else if (!flush_was_late && gasnett_ticks_now() >= flush_end) {
        flush_was_late = 1;
        after_flush();
    }
}

/* Flushes all streams and calls `then`, which ends the process. fflush(NULL) waits for the lock of
 * every stream. If it takes longer than FLUSH_MS, SIGALRM interrupts it, and the handler calls
 * `then`. A later call does not try again. */
static void flush_then(void then(void)) {
    struct sigaction late = {.sa_handler = flush_is_late, .sa_flags = SA_RESTART}, clients;
    struct itimerval time = {.it_value = {FLUSH_MS / 1000, FLUSH_MS % 1000 * 1000}}, clients_time;
    sigset_t alarm, mask;
    flush_standard();
    if (!flush_was_late) {
        after_flush = then;
        flush_end = gasnett_ticks_now() + FLUSH_MS * UINT64_C(1000000);
        sigemptyset(&late.sa_mask);
        sigemptyset(&alarm);
        sigaddset(&alarm, SIGALRM);
        sigaction(SIGALRM, &late, &clients);
        pthread_sigmask(SIG_UNBLOCK, &alarm, &mask);
        setitimer(ITIMER_REAL, &time, &clients_time);
        fflush(NULL);
        setitimer(ITIMER_REAL, &clients_time, NULL);
        if (gasnett_ticks_now() < flush_end) {
            pthread_sigmask(SIG_SETMASK, &mask, NULL);
            sigaction(SIGALRM, &clients, NULL);
        } else {
            flush_was_late = 1; /* SIGALRM may be on its way by another thread */
        }
    }
    then();
}

/* Makes this thread the one that ends the process; false: this process is no rank. */
static bool leave_begins(int code) {
    int first = 0;
    if (!job.context || getpid() != process) {
        return false;
    }
    if (leaves) {
        _exit(job.leaving & 255); /* the client's handler of a signal has interrupted this thread's leave() */
    }
    if (!atomic_compare_exchange_strong(&job.leaving, &first, 256 | code)) {
        for (;;) {
            pause(); /* another thread is already ending this process */
        }
    }
    leaver = pthread_self();
    until = gasnett_ticks_now() + exit_timeout_ns();
    leaves = true;
    return true;
}

static bool together; /* all ranks leave */

static void end_job(void) {
    /* If a signal has interrupted a call of libllcl that holds a lock for which llcl_exit waits,
     * only SIGKILL ends the process. */
    llcl_exit(job.context, job.leaving & 255, together ? 0 : GRACE_MS);
}

/* `ends_all`: the job ends also if other ranks go on. */
static void leave(bool ends_all) {
    together = job.world && all_leave();
    if ((together || !ends_all) && may_finalize()) {
        faults_stop_threads();
        llcl_finalize_within(job.context, together ? -1 : 0);
    } else if (ends_all) {
        flush_then(end_job);
    }
}

/* See GASNET_CATCH_EXIT in docs/gasnet.md. */
static bool exit_ends_all;

/* If another thread is in gasnet_exit, leave_begins() does not return: that thread ends the
 * process. */
static void leave_at_exit(int code, void *nothing) {
    (void)nothing;
    if (!leaves && leave_begins(code & 255)) {
        flush_standard();
        leave(exit_ends_all);
    }
}

void exit_begin(void) {
    process = getpid();
    signals_begin();
    exit_ends_all = gasnett_getenv_yesno_withdefault("GASNET_CATCH_EXIT", 1);
    on_exit(leave_at_exit, NULL);
}

static void end_process(void) { _exit(job.leaving & 255); }

/* Handlers of messages, and other threads, may write while this rank waits for the others: hence a
 * second flush. The first one is for a rank that is killed while it waits. */
static void leave_and_end(void) {
    leave(true);
    flush_then(end_process);
}

void gasnet_exit(int code) {
    if (leave_begins(code & 255)) {
        flush_then(leave_and_end);
    }
    _exit(code & 255);
}
