/* A remote procedure call: every rank asks its right neighbour for the sum of some numbers. The
 * numbers travel as the message's payload, the answer as its reply.
 * Run: llcl-run -n 4 ./remote_call */
#include <inttypes.h>
#include <llcl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SUM = 7 }; /* the handler's number, the same in every rank */

static void check(llcl_status_t status, const char *what)
{
    if (status != LLCL_OK) {
        fprintf(stderr, "%s: %s (%s)\n", what, llcl_status_string(status), llcl_last_error());
        exit(1);
    }
}

/* Runs at the peer that is asked: on a thread that waits in the library, or on one of its own. */
static void sum(llcl_am_t *message, void *data)
{
    llcl_am_view_t view;
    check(llcl_am_view(message, &view), "llcl_am_view");
    const uint64_t *numbers = view.payload;
    uint64_t total = 0;
    size_t i;
    (void)data;
    for (i = 0; i < view.payload_size / sizeof *numbers; i++)
        total += numbers[i];
    check(llcl_am_reply(message, &total, sizeof total), "llcl_am_reply");
}

int main(void)
{
    llcl_context_t *context;
    check(llcl_init(NULL, &context), "llcl_init");
    uint32_t rank = llcl_rank(context), size = llcl_size(context), right = (rank + 1) % size;

    check(llcl_am_register(context, SUM, sum, NULL), "llcl_am_register");
    /* Nobody asks before all have registered. */
    check(llcl_exchange(context, NULL, 0, NULL), "llcl_exchange");

    uint64_t numbers[3] = {rank, 10, 100}, answer = 0;
    llcl_am_params_t ask;
    memset(&ask, 0, sizeof ask); /* no flags, no completion: this call blocks */
    ask.peer = right;
    ask.id = SUM;
    ask.payload = numbers;
    ask.payload_size = sizeof numbers;
    ask.reply = &answer;
    ask.reply_capacity = sizeof answer;
    check(llcl_am(context, &ask), "llcl_am");

    printf("rank %" PRIu32 ": rank %" PRIu32 " answers %" PRIu64 "\n", rank, right, answer);
    check(llcl_finalize(context), "llcl_finalize");
    return answer == rank + 110 ? 0 : 1;
}
