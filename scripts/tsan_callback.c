/* For check-install: a callback runs on the library's thread, and another thread waits for it. */
#include <llcl.h>
#include <stdio.h>

static uint64_t plain, word;

static void done(void *data, llcl_status_t status)
{
    plain++;
    __atomic_store_n((uint64_t *)data, status == LLCL_OK ? 1 : LLCL_WORD_FAILED, __ATOMIC_RELEASE);
}

int main(void)
{
    static char bytes[4096];
    llcl_context_t *context;
    llcl_region_t *region;
    llcl_remote_t all[2];
    llcl_write_params_t out = LLCL_WRITE_PARAMS_INIT;
    int i;
    LLCL_CHECK(llcl_init(NULL, &context));
    LLCL_CHECK(llcl_region_allocate_shared(context, sizeof bytes, &region, all));
    out.peer = 1 - llcl_rank(context);
    out.source = llcl_local_address(bytes);
    out.destination = all[out.peer];
    out.size = sizeof bytes;
    out.on_complete = llcl_callback(done, &word);
    for (i = 0; i < 100; i++) {
        __atomic_store_n(&word, 0, __ATOMIC_RELAXED);
        LLCL_CHECK(llcl_write_async(context, &out));
        LLCL_CHECK(llcl_wait_word(context, &word, 1, -1));
        plain++;
    }
    LLCL_CHECK(llcl_barrier(context));
    if (llcl_rank(context) == 0)
        puts(plain == 200 ? "both ranks are done" : "lost");
    LLCL_CHECK(llcl_finalize(context));
    return 0;
}
