/* Broken if this fails: a callback or a handler on a thread of the library has less stack than
 * docs/rules.md says.
 * ranks: 1 2
 * modes: auto offload
 */
#include "test.h"

#define PROMISED ((size_t)768 << 10)

static pthread_t main_thread;
static uint64_t handled, fired;

/* Writes to each page of an array of the promised size. The kernel ends a process whose thread
 * leaves its stack. */
static void __attribute__((noinline)) use_the_stack(void)
{
    volatile unsigned char bytes[PROMISED];
    size_t i, sum = 0;
    for (i = 0; i < sizeof bytes; i += 4096)
        bytes[i] = 1;
    for (i = 0; i < sizeof bytes; i += 4096)
        sum += bytes[i];
    CHECK_EQUAL(sum, sizeof bytes / 4096);
}

static void handler(llcl_am_t *message, void *data)
{
    (void)message, (void)data;
    CHECK(!pthread_equal(pthread_self(), main_thread));
    use_the_stack();
    word_add(&handled, 1);
}

static void callback(void *data, llcl_status_t status)
{
    CHECK_OK(status);
    CHECK(data == NULL || !pthread_equal(pthread_self(), main_thread));
    use_the_stack();
    word_add(&fired, 1);
}

static void run(llcl_context_t *context)
{
    uint32_t next = (llcl_rank(context) + 1) % llcl_size(context);
    llcl_am_params_t message = LLCL_AM_PARAMS_INIT;
    llcl_write_value_params_t write = LLCL_WRITE_VALUE_PARAMS_INIT;
    llcl_region_t *region = NULL;
    main_thread = pthread_self();
    CHECK_OK(llcl_am_register(context, 1, handler, NULL));
    CHECK_OK(llcl_region_allocate(context, 8, 0, &region));
    CHECK_OK(llcl_barrier(context));
    message.peer = next;
    message.id = 1;
    POST(llcl_try_am_async(context, &message));
    write.peer = llcl_rank(context);
    write.destination = llcl_region_remote(region, 0);
    write.size = 8;
    /* In offload mode the progress thread executes what is posted. */
    write.on_complete = llcl_callback(callback, test_mode_is("offload") ? &fired : NULL);
    POST(llcl_try_write_value_async(context, &write));
    /* This thread does not wait in the library, so the library's own thread runs the handler. */
    AWAIT(&handled, 1);
    AWAIT(&fired, 1);
    CHECK_OK(llcl_barrier(context));
}

TEST_MAIN(run)
