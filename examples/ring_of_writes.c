/* A ring: every rank writes a line of text and then a signal into its right neighbour's memory,
 * sleeps until its left neighbour has done the same, and prints what it received.
 * Run: llcl-run -n 4 ./ring_of_writes */
#include <inttypes.h>
#include <llcl.h>
#include <stdio.h>
#include <stdlib.h>

struct mailbox {
    char text[56];
    uint64_t signal; /* how many messages have arrived */
};

int main(void)
{
    llcl_context_t *context;
    LLCL_CHECK(llcl_init(NULL, &context));
    uint32_t rank = llcl_rank(context), size = llcl_size(context), right = (rank + 1) % size;

    /* Allocates a mailbox at every rank, and returns the addresses of all. */
    llcl_region_t *region;
    llcl_remote_t *mailboxes = calloc(size, sizeof *mailboxes);
    if (mailboxes == NULL)
        return 1;
    LLCL_CHECK(llcl_region_allocate_shared(context, sizeof(struct mailbox), &region, mailboxes));

    /* The text may lie on the stack, since this form of the write blocks. */
    char text[56];
    snprintf(text, sizeof text, "greetings from rank %" PRIu32, rank);
    llcl_write_signal_params_t write = {.peer = right, .size = sizeof text, .signal_value = 1, .signal_op = LLCL_SIGNAL_ADD,
        .source = llcl_local_address(text), .destination = mailboxes[right],
        .signal = llcl_at(mailboxes[right], offsetof(struct mailbox, signal))};
    LLCL_CHECK(llcl_write_signal(context, &write));

    struct mailbox *mine = llcl_region_address(region);
    LLCL_CHECK(llcl_wait_word(context, &mine->signal, 1, -1));
    printf("rank %" PRIu32 " of %" PRIu32 ": %s\n", rank, size, mine->text);

    free(mailboxes);
    LLCL_CHECK(llcl_finalize(context));
    return 0;
}
