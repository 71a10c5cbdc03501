/* A remote procedure call: every rank asks its right neighbour for the sum of some numbers. The
 * numbers travel as the message's payload, the answer as its reply.
 * Run: llcl-run -n 4 ./remote_call */
#include <inttypes.h>
#include <llcl.h>
#include <stdio.h>

enum { SUM = 7 }; /* the handler's number, the same in every rank */

/* The handler. It runs at the peer, on a thread that waits in the library or on one of the
 * library's own. */
static void sum(llcl_am_t *message, void *data)
{
    llcl_am_view_t view;
    LLCL_CHECK(llcl_am_view(message, &view));
    const uint64_t *numbers = view.payload;
    uint64_t total = 0;
    size_t i;
    (void)data;
    for (i = 0; i < view.payload_size / sizeof *numbers; i++)
        total += numbers[i];
    LLCL_CHECK(llcl_am_reply(message, &total, sizeof total));
}

int main(void)
{
    llcl_context_t *context;
    LLCL_CHECK(llcl_init(NULL, &context));
    uint32_t rank = llcl_rank(context), size = llcl_size(context), right = (rank + 1) % size;

    LLCL_CHECK(llcl_am_register(context, SUM, sum, NULL));
    /* No rank sends before all have registered the handler. */
    LLCL_CHECK(llcl_barrier(context));

    uint64_t numbers[3] = {rank, 10, 100}, answer = 0;
    llcl_am_params_t ask = {.peer = right, .id = SUM, .payload = numbers, .payload_size = sizeof numbers,
        .reply = &answer, .reply_capacity = sizeof answer}; /* no flags, no completion: this call blocks */
    LLCL_CHECK(llcl_am(context, &ask));

    printf("rank %" PRIu32 ": rank %" PRIu32 " answers %" PRIu64 "\n", rank, right, answer);
    LLCL_CHECK(llcl_finalize(context));
    return answer == rank + 110 ? 0 : 1;
}
