/* A bare ring between two processes: what a message through slots costs where there is one sender and one receiver, and nobody
   sleeps, dies or has to be told apart. Slots, payloads and lots are those of the library's defaults; no locked instruction. */
#ifndef LLCL_BENCH_RING_H
#define LLCL_BENCH_RING_H

#include <stddef.h>
#include <stdint.h>

#include "bench.h"

#define RING_SLOTS 512
#define RING_LOT 32      /* slots that the receiver gives back at a time */
#define RING_BODY 14     /* words of a slot behind its mark */
#define RING_PAYLOAD 4096

typedef struct ring_slot {
    uint64_t mark __attribute__((aligned(2 * BENCH_LINE))); /* 1 + the message's number, when it is there */
    uint64_t reserved, body[RING_BODY];
} ring_slot_t;

/* In memory that both processes have mapped; all zero: empty. */
typedef struct ring {
    uint64_t consumed __attribute__((aligned(2 * BENCH_LINE))); /* messages whose slots were given back */
    ring_slot_t slots[RING_SLOTS];
    char payloads[RING_SLOTS][RING_PAYLOAD];
} ring_t;

/* What one side knows of a ring: the number of the next message, and the last count of consumed ones that it saw or gave. */
typedef struct ring_end {
    ring_t *ring;
    uint64_t next, consumed;
} ring_end_t;

/* Both wait awake. `payload` NULL: the 8 bytes travel in the slot. */
void ring_send(ring_end_t *end, const void *payload, size_t size);
void ring_receive(ring_end_t *end);
/* Sender: until everything has been consumed; for numbers of messages that are multiples of RING_LOT. */
void ring_drain(const ring_end_t *end);

/* Waits for a word to become `value`; offers the core now and then, since the other side may need this one. */
static inline void spin_until(uint64_t *word, uint64_t value)
{
    for (unsigned spins = 1; __atomic_load_n(word, __ATOMIC_ACQUIRE) != value; spins++)
        if (spins % 4096 == 0)
            sched_yield();
}

#endif
