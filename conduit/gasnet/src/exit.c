/* The end of the job.
 *
 * A rank tells all others that it leaves. If all do so in time, they end together; else whoever has waited long
 * enough ends the job, since gasnet_exit of one rank ends it. */
#include "internal.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* A client may have a handler for SIGQUIT, which the specification sends to ranks whose job is being ended. So what
 * ends this process otherwise runs that handler first; the launcher sends SIGTERM. */
static const int ends[] = {SIGINT, SIGTERM, SIGHUP};
static __thread bool in_signal;

static void end_by(int number) {
    struct sigaction quit;
    in_signal = true;
    if (sigaction(SIGQUIT, NULL, &quit) == 0 && quit.sa_handler != SIG_DFL && quit.sa_handler != SIG_IGN) {
        raise(SIGQUIT);
    }
    /* It has returned, or there is none. */
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

#define GRACE_MS 1000 /* that other ranks have to end after SIGTERM */
static uint64_t exit_timeout_ns(void) {
    double seconds = gasnett_getenv_dbl_withdefault("GASNET_EXITTIMEOUT", 5);
    return (uint64_t)((seconds > 0 ? seconds : 0) * 1e9);
}

static bool all_leave(void) {
    gasnett_tick_t until = gasnett_ticks_now() + exit_timeout_ns();
    for (gex_Rank_t r = 0; r < job.size; r++) {
        atomic_fetch_add(&job.controls[r]->leaving.value, 1);
    }
    while (atomic_load(&job.controls[job.rank]->leaving.value) < job.size) {
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

static void leave(int code) {
    if (!job.context) {
        return;
    }
    if (atomic_exchange(&job.leaving, 1)) {
        for (;;) {
            pause(); /* another thread of this rank ends it */
        }
    }
    fflush(NULL);
    bool together = job.controls && all_leave();
    if (together && !in_handler() && !in_signal && atomic_load(&threads_seen) == 1) {
        llcl_finalize(job.context);
        return;
    }
    /* Another thread may be in a call of the library, which llcl_finalize does not allow. */
    llcl_exit(job.context, code, together ? 0 : GRACE_MS);
}

static void leave_at_exit(int code, void *nothing) {
    (void)nothing;
    if (!atomic_load(&job.leaving)) {
        leave(code);
    }
}

void exit_begin(void) {
    signals_begin();
    on_exit(leave_at_exit, NULL);
}

void gasnet_exit(int code) {
    leave(code & 255);
    _exit(code & 255);
}
