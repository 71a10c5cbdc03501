/* Broken if this fails: a try function in a signal handler, which is forbidden and happens, waits
 * for ever for the thread that it has interrupted in its first use of a peer or of a region.
 * ranks: 2
 * modes: auto offload
 * cma: on
 * timeout: 10
 */
#include "shared.h"

#include <signal.h>
#include <sys/time.h>

#define REGIONS 400u

static llcl_context_t *handlers_context;
static llcl_remote_t theirs[REGIONS];
static volatile sig_atomic_t at;
static volatile uint64_t called, taken;

static llcl_status_t write_to(llcl_context_t *context, uint32_t region)
{
    llcl_write_value_params_t write = {0};
    write.peer = 1;
    write.size = 8;
    write.destination = theirs[region];
    write.on_complete = llcl_no_completion();
    return llcl_try_write_value_async(context, &write);
}

static void interrupt(int number)
{
    llcl_status_t status = write_to(handlers_context, (uint32_t)at);
    (void)number;
    called++;
    taken += status == LLCL_OK;
    if (status < 0)
        _exit(3);
}

static void use_all(llcl_context_t *context)
{
    struct itimerval often = {{0, 40}, {0, 40}}, never = {{0, 0}, {0, 0}};
    struct sigaction action;
    uint32_t i;
    memset(&action, 0, sizeof action);
    action.sa_handler = interrupt;
    action.sa_flags = SA_RESTART;
    handlers_context = context;
    CHECK(sigaction(SIGALRM, &action, NULL) == 0);
    CHECK(setitimer(ITIMER_REAL, &often, NULL) == 0);
    for (i = 0; i < REGIONS; i++) {
        at = (sig_atomic_t)i;
        POST(write_to(context, i));
    }
    CHECK(setitimer(ITIMER_REAL, &never, NULL) == 0);
    CHECK_OK(llcl_flush(context, 1));
    printf("%llu calls by the handler, %llu accepted\n", (unsigned long long)called,
           (unsigned long long)taken);
}

static void run(llcl_context_t *context)
{
    llcl_remote_t mine[REGIONS] = {{0, 0}}, *all = calloc(2, sizeof mine);
    llcl_region_t *region = NULL;
    uint32_t i;
    CHECK(all != NULL);
    for (i = 0; llcl_rank(context) == 1 && i < REGIONS; i++) {
        CHECK_OK(llcl_region_allocate(context, 64, 0, &region));
        mine[i] = llcl_region_remote(region, 0);
    }
    CHECK_OK(llcl_allgather_bytes(context, mine, sizeof mine, all));
    memcpy(theirs, all + REGIONS, sizeof theirs);
    if (llcl_rank(context) == 0)
        use_all(context);
    fence(context);
    free(all);
}

TEST_MAIN(run)
