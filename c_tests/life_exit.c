/* Broken if this fails: llcl_exit does not end the whole job with its code, from a handler, a
 * callback or several threads at once; it cuts its own process short; or ranks that ignore SIGTERM
 * live on.
 * ranks: 1 2 3
 * exit: 23
 */
#include "test.h"
#include <signal.h>

enum { HANDLER = 1 };
static llcl_context_t *job;
static uint64_t never;

/* The code is right only if the handlers of the process that ends the job have run to their end. */
static void farewell(void)
{
    sleep_ms(20);
    fflush(NULL);
    _exit(23);
}

static void leave(llcl_am_t *message, void *data)
{
    (void)message, (void)data;
    if (atexit(farewell) == 0)
        llcl_exit(job, 23, 300);
    test_fail(__FILE__, __LINE__, "llcl_exit returned");
}

static void called(void *data, llcl_status_t status)
{
    (void)status;
    leave(NULL, data);
}

static void *also(void *data)
{
    (void)data;
    leave(NULL, NULL);
    return NULL;
}

static void run(llcl_context_t *context)
{
    uint32_t last = llcl_size(context) - 1;
    pthread_t threads[2];
    job = context;
    CHECK_OK(llcl_am_register(context, HANDLER, leave, NULL));
    if (llcl_rank(context) == 1)
        CHECK(signal(SIGTERM, SIG_IGN) != SIG_ERR);
    CHECK_OK(llcl_barrier(context));
    if (last == 2 && llcl_rank(context) == 0) { /* in a handler, at rank 2 */
        llcl_am_params_t message = LLCL_AM_PARAMS_INIT;
        message.peer = last;
        message.id = HANDLER;
        CHECK_OK(llcl_am_async(context, &message));
    } else if (last == 1 && llcl_rank(context) == 1) { /* in a callback, of a process that ignores SIGTERM */
        llcl_write_value_params_t nothing = LLCL_WRITE_VALUE_PARAMS_INIT;
        llcl_region_t *region = NULL;
        CHECK_OK(llcl_region_allocate(context, 8, 0, &region));
        nothing.peer = 1;
        nothing.destination = llcl_region_remote(region, 0);
        nothing.size = 8;
        nothing.on_complete = llcl_callback(called, NULL);
        CHECK_OK(llcl_write_value_async(context, &nothing));
    } else if (last == 0) { /* by several threads at once */
        CHECK(pthread_create(&threads[0], NULL, also, NULL) == 0);
        CHECK(pthread_create(&threads[1], NULL, also, NULL) == 0);
    }
    llcl_wait_word(context, &never, 1, TEST_PATIENCE_NS);
    test_fail(__FILE__, __LINE__, "llcl_exit did not end this rank");
}

TEST_MAIN(run)
