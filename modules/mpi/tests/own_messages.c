/* With MPI_THREAD_FUNNELED a thread whose waits are ended by messages of its own rank, which have
 * come when it begins to wait, must poll MPI in each wait: no other thread may. 2 ranks. Rank 0
 * sends itself messages and waits for each, until rank 1 has written into its memory. */
#include "expect.h"
#include <time.h>
#include <unistd.h>

enum { SECONDS = 10 };

static uint64_t handled;

static void count(llcl_am_t *message, void *unused)
{
    (void)message;
    (void)unused;
    __atomic_add_fetch(&handled, 1, __ATOMIC_RELEASE);
}

int main(void)
{
    llcl_region_t *region;
    llcl_remote_t all[2];
    uint64_t one = 1;
    llcl_context_t *context = start(MPI_THREAD_FUNNELED);
    LLCL_CHECK(llcl_region_allocate_shared(context, 64, &region, all));
    LLCL_CHECK(llcl_am_register(context, 0, count, NULL));
    LLCL_CHECK(llcl_allgather_bytes(context, NULL, 0, NULL));
    if (rank == 0) {
        const uint64_t *written = llcl_region_address(region);
        const time_t limit = time(NULL) + SECONDS;
        llcl_am_params_t am = LLCL_AM_PARAMS_INIT;
        am.peer = 0;
        for (uint64_t sent = 1; __atomic_load_n(written, __ATOMIC_ACQUIRE) == 0; sent++) {
            LLCL_CHECK(llcl_am_async(context, &am));
            LLCL_CHECK(llcl_wait_word(context, &handled, sent, -1));
            EXPECT(time(NULL) < limit);
        }
    } else {
        llcl_write_params_t put = LLCL_WRITE_PARAMS_INIT;
        put.peer = 0;
        put.source = llcl_local_address(&one);
        put.destination = all[0];
        put.size = sizeof one;
        usleep(20000); /* rank 0 is in its loop by then */
        LLCL_CHECK(llcl_write(context, &put));
    }
    LLCL_CHECK(llcl_allgather_bytes(context, NULL, 0, NULL));
    LLCL_CHECK(llcl_finalize(context));
    printf("own_messages: rank %d: passed\n", rank);
    MPI_Finalize();
    return 0;
}
