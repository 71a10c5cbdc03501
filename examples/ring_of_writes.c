/* A ring: every rank writes a line of text and then a signal into its right neighbour's memory,
 * sleeps until its left neighbour has done the same, and prints what it received.
 * Run: llcl-run -n 4 ./ring_of_writes */
#include <inttypes.h>
#include <llcl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct mailbox {
    char text[56];
    uint64_t signal; /* how many messages have arrived */
};

static void check(llcl_status_t status, const char *what)
{
    if (status != LLCL_OK) {
        fprintf(stderr, "%s: %s (%s)\n", what, llcl_status_string(status), llcl_last_error());
        exit(1);
    }
}

int main(void)
{
    llcl_context_t *context;
    check(llcl_init(NULL, &context), "llcl_init");
    uint32_t rank = llcl_rank(context), size = llcl_size(context), right = (rank + 1) % size;

    /* One region holds two mailboxes: what arrives, and what is sent. */
    llcl_region_t *region;
    check(llcl_region_allocate(context, 2 * sizeof(struct mailbox), 0, &region), "llcl_region_allocate");
    struct mailbox *in = llcl_region_address(region), *out = in + 1;

    /* Everybody learns everybody's address. */
    llcl_remote_t mine = llcl_region_remote(region, 0);
    llcl_remote_t *all = calloc(size, sizeof *all);
    if (all == NULL)
        return 1;
    check(llcl_exchange(context, &mine, sizeof mine, all), "llcl_exchange");

    snprintf(out->text, sizeof out->text, "greetings from rank %" PRIu32, rank);
    llcl_write_signal_params_t write;
    memset(&write, 0, sizeof write);
    write.peer = right;
    write.source = llcl_region_local(region, sizeof(struct mailbox));
    write.destination = all[right];
    write.size = sizeof out->text;
    write.signal = all[right];
    write.signal.offset += offsetof(struct mailbox, signal);
    write.signal_value = 1;
    write.signal_op = LLCL_SIGNAL_ADD;
    check(llcl_write_signal(context, &write), "llcl_write_signal");

    check(llcl_wait_word(context, &in->signal, 1, -1), "llcl_wait_word");
    printf("rank %" PRIu32 " of %" PRIu32 ": %s\n", rank, size, in->text);

    free(all);
    check(llcl_finalize(context), "llcl_finalize");
    return 0;
}
