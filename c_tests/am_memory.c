/* Broken if this fails: the memory of a receiver grows with its senders, from 1 to 64 of them: what
 * the library counts as memory of messages, or what is resident.
 * ranks: 65
 * modes: auto
 * policies: acquire limit distributed
 * timeout: 40
 */
#include "am.h"

#define EACH 1280u

static void handle(llcl_am_t *message, void *data)
{
    (void)message;
    word_add(data, 1);
}

/* `senders` ranks send, as much together every time. */
static void phase(llcl_context_t *context, uint32_t senders, uint64_t *handled)
{
    uint32_t me = llcl_rank(context), i;
    static unsigned char payload[4096];
    if (me >= 1 && me <= senders) {
        for (i = 0; i < EACH * 64 / senders / 8; i++) {
            llcl_am_params_t am = am_to(0, 0, &i, sizeof i);
            am.payload = payload;
            am.payload_size = sizeof payload;
            CHECK_OK(llcl_am_async(context, &am));
        }
    }
    if (me == 0)
        AM_AWAIT(context, handled, EACH * 64 / senders / 8 * senders);
    fence(context);
}

static void run(llcl_context_t *context)
{
    static const uint32_t senders[] = {1, 2, 4, 8, 16, 32, 64};
    uint64_t handled = 0, memory = 0;
    long first = 0;
    size_t i;
    if (llcl_rank(context) == 0)
        am_register(context, 0, handle, &handled);
    fence(context);
    /* Every slot has been touched once before it counts. */
    for (i = 0; i < 2; i++) {
        phase(context, 1, &handled);
        word_set(&handled, 0);
        fence(context);
    }
    for (i = 0; i < sizeof senders / sizeof senders[0]; i++) {
        phase(context, senders[i], &handled);
        if (llcl_rank(context) == 0) {
            long kib = resident_kib();
            llcl_stats_t stats = am_stats(context);
            memory = memory ? memory : stats.am_memory;
            first = first ? first : kib;
            printf("%2u senders: am_memory %llu KiB, resident %ld KiB\n", senders[i],
                   (unsigned long long)stats.am_memory / 1024, kib);
            CHECK(stats.am_memory > 0);
            CHECK_EQUAL(stats.am_memory, memory);
            /* 64 senders with a buffer of their own each would take 64 times am_memory. */
            CHECK(kib <= first + 512);
            word_set(&handled, 0);
        }
        fence(context);
    }
}

TEST_MAIN(run)
