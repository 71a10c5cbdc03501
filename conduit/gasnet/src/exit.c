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

/* Tells a rank behind a wire. A dead one needs no telling. */
static uint64_t answers; /* and LLCL_WORD_FAILED */
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

/* What this rank has sent must have been answered, too, before it goes. */
static bool all_have_left(uint64_t asked) {
    uint64_t answered = __atomic_load_n(&answers, __ATOMIC_ACQUIRE) & ~LLCL_WORD_FAILED;
    return atomic_load(&job.world->control->leaving.value) == job.size && answered == asked;
}

static bool all_leave(void) {
    gasnett_tick_t until = gasnett_ticks_now() + exit_timeout_ns();
    uint64_t asked = 0;
    if (in_signal && any_far()) {
        return false; /* the interrupted code may be anywhere in the library, so a signal sends nothing */
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
    bool together = job.world && all_leave();
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
