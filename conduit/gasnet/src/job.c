/* The job: initialisation, queries, errors, polling. exit.c ends it. */
#include "internal.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct job job;
gex_TM_t gexl_world;
_Atomic int threads_here;
__thread bool thread_seen;
/* A thread that ends and has a value for it calls thread_ends(). */
static pthread_key_t end_of_thread;
static int verbose_errors = 1;

void count_thread(void) {
    thread_seen = true;
    atomic_fetch_add(&threads_here, 1);
    /* If the system refuses this, the thread stays counted. */
    pthread_setspecific(end_of_thread, &job);
    stop_at_end();
}

static void thread_ends(void *the_job) {
    (void)the_job;
    thread_seen = false;
    nonblocking_thread_ends();
    prepare_thread_ends();
    atomic_fetch_sub(&threads_here, 1);
}

static void complain(const char *format, va_list arguments) {
    char text[600];
    vsnprintf(text, sizeof text, format, arguments);
    fprintf(stderr, "gasnet (libllcl), rank %u: %s\n", job.rank, text);
    fflush(stderr);
}

void fatal(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    complain(format, arguments);
    va_end(arguments);
    gasnett_print_backtrace_ifenabled(STDERR_FILENO);
    gasnett_freezeForDebuggerErr();
    if (job.context && !is_rank()) {
        _exit(1); /* a child by fork(), which does not end the job */
    }
    fflush(stdout);
    llcl_abort(job.context, 1);
    abort();
}

void must(llcl_status_t status, const char *what) {
    if (status != LLCL_OK && !is_at_end()) {
        fatal("%s: %s: %s", what, llcl_status_string(status), llcl_last_error());
    }
}

int refuse(int code, const char *format, ...) {
    if (verbose_errors) {
        va_list arguments;
        va_start(arguments, format);
        complain(format, arguments);
        va_end(arguments);
    }
    return code;
}

void must_be_up(const char *call) {
    see_thread();
    if (!job.context) {
        fatal("%s before gasnet_init or gex_Client_Init", call);
    }
    if (in_handler()) {
        fatal("%s in a handler, where only replies may be sent", call);
    }
}

int gex_System_GetVerboseErrors(void) { return verbose_errors; }
void gex_System_SetVerboseErrors(int enable) { verbose_errors = enable; }
gex_Rank_t gex_System_QueryJobRank(void) { return job.rank; }
gex_Rank_t gex_System_QueryJobSize(void) { return job.size; }
int gex_System_QueryHiddenAMConcurrencyLevel(void) { return 0; }
char *gasnet_getenv(const char *name) { return getenv(name); }

uint64_t gex_System_QueryMaxThreads(void) {
#if defined(GASNET_SEQ)
    return 1;
#else
    return GASNET_MAX_THREADS;
#endif
}

int gex_System_QueryProgressThreads(gex_Client_t client, unsigned int *count,
                                    const gex_ProgressThreadInfo_t **info, gex_Flags_t flags) {
    if (!count || !info || flags) {
        return refuse(GASNET_ERR_BAD_ARG, "gex_System_QueryProgressThreads: count and info must be given and "
                                          "flags be 0");
    }
    if (!(client->flags & GEX_FLAG_DEFER_THREADS)) {
        return refuse(GASNET_ERR_RESOURCE, "gex_System_QueryProgressThreads without GEX_FLAG_DEFER_THREADS");
    }
    *count = 0;
    return GASNET_OK;
}

static const struct {
    int code;
    const char *name, *text;
} codes[] = {
    {GASNET_OK, "GASNET_OK", "no error"},
    {GASNET_ERR_NOT_INIT, "GASNET_ERR_NOT_INIT", "the job has not begun"},
    {GASNET_ERR_RESOURCE, "GASNET_ERR_RESOURCE", "a resource is exhausted, or is not offered"},
    {GASNET_ERR_BAD_ARG, "GASNET_ERR_BAD_ARG", "an argument has a value that it may not have"},
    {GASNET_ERR_NOT_READY, "GASNET_ERR_NOT_READY", "the operation has not ended"},
    {GASNET_ERR_BARRIER_MISMATCH, "GASNET_ERR_BARRIER_MISMATCH", "ranks gave different names to a barrier"},
};

static size_t find_code(int code) {
    size_t i = 0;
    while (i < sizeof codes / sizeof *codes && codes[i].code != code) {
        i++;
    }
    return i;
}

const char *gasnet_ErrorName(int code) {
    size_t i = find_code(code);
    return i < sizeof codes / sizeof *codes ? codes[i].name : "no code of GASNet";
}

const char *gasnet_ErrorDesc(int code) {
    size_t i = find_code(code);
    return i < sizeof codes / sizeof *codes ? codes[i].text : "no description";
}

int gasnet_set_waitmode(int mode) {
    if (mode != GASNET_WAIT_SPIN && mode != GASNET_WAIT_BLOCK && mode != GASNET_WAIT_SPINBLOCK) {
        return refuse(GASNET_ERR_BAD_ARG, "gasnet_set_waitmode: %d is no mode", mode);
    }
    job.wait_mode = mode;
    return GASNET_OK;
}

/* A poll of libllcl has failed: because the job ends, or because of the client. */
static void poll_failed(llcl_status_t status) {
    if (status != LLCL_ERR_STATE || !atomic_load(&job.leaving)) {
        must_be_up("gasnet_AMPoll");
        must(status, "gasnet_AMPoll");
    }
}

static inline void poll_once(void) {
    see_thread();
    llcl_status_t status = llcl_am_poll(job.context, 16, NULL);
    if (status != LLCL_OK) {
        poll_failed(status);
    } else if (atomic_load_explicit(&teams_open, memory_order_relaxed)) {
        teams_progress();
    }
}

int gasnet_AMPoll(void) {
    poll_once();
    return GASNET_OK;
}

/* Polls of a waiting thread in GASNET_WAIT_SPINBLOCK before it waits as in GASNET_WAIT_BLOCK, and
 * polls there before it sleeps. A peer that has a core answers within that time; a peer that waits
 * for a core gets this one by sched_yield(). */
enum { SPINS = 10000, YIELDS = 1000 };

/* Sleeps until a message comes. The caller may wait for a word that a peer stores, which does not
 * end llcl_am_wait(): so the first sleeps are short, and none is longer than 1 ms. */
static void sleep_a_while(unsigned sleeps) {
    llcl_am_wait(job.context, sleeps < 100 ? (sleeps + 1) * 10000 : 1000000);
}

/* The rest of gexl_pause(), of a thread that has polled more often than it spins. */
static __attribute__((noinline)) void wait_longer(unsigned count) {
    if (count <= YIELDS) {
        sched_yield();
    } else {
        sleep_a_while(count - YIELDS - 1);
    }
}

void gexl_pause(unsigned *rounds) {
    poll_once();
    unsigned count = ++*rounds;
    if (job.wait_mode != GASNET_WAIT_SPIN) {
        unsigned spins = job.wait_mode == GASNET_WAIT_BLOCK ? 0 : SPINS;
        if (count > spins) {
            wait_longer(count - spins);
            return;
        }
    }
    if ((count & job.yield_mask) == 0) {
        sched_yield();
    }
}

static void connect_all(void) {
    must(llcl_allgather_bytes(job.context, NULL, 0, NULL), "meeting the other ranks");
    must(llcl_connect(job.context, NULL, 0), "connecting to the other ranks");
    nodes_begin();
}

/* am.c relies on a payload being copied before llcl_am_async or llcl_am_respond returns, which in
 * offload mode it is not. Whether the environment asks for this mode. */
static bool asks_for_offload(void) {
    const char *execution = getenv("LLCL_EXECUTION");
    return execution && !strcmp(execution, "offload");
}

/* Regions of libllcl, unless LLCL_REGIONS is set. A team needs one, and each shape of its
 * collectives two more; libllcl's own default of 1,024 is less than what its some 760 teams need.
 * Each takes 64 bytes of address space, and memory only when it is used. */
#define REGIONS 32768

/* llcl_init knows ranks that llcl-run has started, and those of an MPI that it has a module for. It
 * refuses ranks of other launchers; launch_begin() knows some of these. */
static llcl_status_t begin(void) {
    llcl_config_t config = LLCL_CONFIG_INIT;
    config.am_handlers = LLCL_AM_HANDLERS_POLLED;
    if (asks_for_offload()) {
        config.execution = LLCL_EXECUTION_AUTO;
    }
    const char *regions = getenv("LLCL_REGIONS");
    config.regions = regions && *regions ? 0 : REGIONS;
    llcl_status_t status = llcl_init(&config, &job.context);
    if (status == LLCL_ERR_INVALID && (config.bootstrap = launch_begin())) {
        status = llcl_init(&config, &job.context);
        if (status != LLCL_OK) {
            launch_end(false);
        }
    }
    return status;
}

/* A handler that replies by a long message to another node waits for its end. Where only one thread
 * makes the network progress, no thread would: that one cannot poll inside a handler. So such a
 * network ends the job. */
static void query_network(void) {
    llcl_capabilities_t can = LLCL_CAPABILITIES_INIT;
    must(llcl_query(job.context, &can), "gex_Client_Init");
    job.small = can.small;
    if (can.opener_polls && any_far()) {
        fatal("gex_Client_Init: the network between the nodes allows calls of one thread only; ask MPI_Init_thread "
              "for MPI_THREAD_MULTIPLE, or use an MPI that offers it");
    }
}

int gexl_client_init(gex_Client_t *client, gex_EP_t *ep, gex_TM_t *tm, const char *name, int *argc, char ***argv,
                     gex_Flags_t flags) {
    (void)argc;
    (void)argv;
    if (job.context) {
        return refuse(GASNET_ERR_NOT_INIT, "gex_Client_Init: the job has begun already, and has one client");
    }
    if (pthread_key_create(&end_of_thread, thread_ends)) {
        fatal("gex_Client_Init: the process has no thread key left");
    }
    see_thread();
    must(begin(), "gex_Client_Init");
    job.rank = llcl_rank(job.context);
    job.size = llcl_size(job.context);
    if (job.rank == 0 && asks_for_offload()) {
        fputs("gasnet (libllcl), rank 0: LLCL_EXECUTION is \"offload\", which this conduit does not support; "
              "it uses \"auto\"\n", stderr);
    }
    job.client.name = strdup(name);
    job.client.flags = flags;
    if (!job.client.name) {
        fatal("gex_Client_Init: no memory for the client's name");
    }
    endpoint_begin();
    am_begin();
    connect_all();
    query_network();
    launch_end(true);
    /* A waiting rank that has a core to itself seldom yields, because a third program would take
     * the core for a time slice. Other ranks need the core, and at times the thread that polls a
     * wire does. */
    job.yield_mask = (!has_core_for_each_rank() ? 16 : any_far() ? 128 : 4096) - 1;
    segment_begin();
    team_begin();
    barrier_begin_world();
    exit_begin();
    *client = &job.client;
    *ep = &job.ep;
    *tm = gexl_world;
    return GASNET_OK;
}
