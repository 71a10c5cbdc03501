/* A bare ring between two processes: the least that a message through slots costs. It has one
 * receiver and one sender, which never sleep and never die, and uses no locked instruction. Slots,
 * payloads and lots have the library's default sizes. Several threads may share the sending end: by
 * ring_send_shared(), which takes the number of the message by one fetch-add, or by
 * ring_send_in_turns(). */
#ifndef LLCL_BENCH_RING_H
#define LLCL_BENCH_RING_H

#include <semaphore.h>
#include <stddef.h>
#include <stdint.h>

#include "bench.h"

#define RING_SLOTS 512
#define RING_LOT 32      /* slots that the receiver returns at a time */
#define RING_TURN 8192   /* messages of a turn of ring_send_in_turns(): as many as the library's */
#define RING_AHEAD 8    /* slots whose lines a thread of ring_send_shared() fetches at a time */
#define RING_BODY 14     /* words of a slot behind its mark */
#define RING_PAYLOAD 4096

typedef struct ring_slot {
    uint64_t mark __attribute__((aligned(2 * BENCH_LINE))); /* the number of the message in the slot, plus 1 */
    uint64_t reserved, body[RING_BODY];
} ring_slot_t;

/* Lies in memory that both processes map. A ring of zeroes is empty. */
typedef struct ring {
    uint64_t taken __attribute__((aligned(2 * BENCH_LINE))); /* the number of the next message, where threads share an end */
    uint64_t consumed __attribute__((aligned(2 * BENCH_LINE))); /* messages whose slots the receiver has returned */
    ring_slot_t slots[RING_SLOTS];
    char payloads[RING_SLOTS][RING_PAYLOAD];
} ring_t;

/* One side's state: the number of the next message, and the last value of `consumed` that it has
 * read or written. */
typedef struct ring_end {
    ring_t *ring;
    uint64_t next, consumed;
} ring_end_t;

/* Both functions wait by polling. `payload` NULL: the 8 bytes travel in the slot. */
void ring_send(ring_end_t *end, const void *payload, size_t size);
void ring_receive(ring_end_t *end);
/* Sends messages of 8 bytes until their numbers reach `end_at`. Threads call it at the same time,
 * each with an end of its own. A thread that finds no free slot yields its core. */
void ring_send_shared(ring_end_t *end, uint64_t end_at);
/* Sends messages of 8 bytes until their numbers reach `end_at`, in turns of RING_TURN messages: a
 * thread waits for `mine`, sends, and posts `next`, the semaphore of another thread. A thread that
 * finds no free slot yields its core. */
void ring_send_in_turns(ring_end_t *end, uint64_t end_at, sem_t *mine, sem_t *next);
/* Sender: waits until all messages are consumed. Their number must be a multiple of RING_LOT. */
void ring_drain(const ring_end_t *end);

/* Waits for a word to become `value`. Yields now and then, since the other side may need this
 * core. */
static inline void spin_until(uint64_t *word, uint64_t value)
{
    for (unsigned spins = 1; __atomic_load_n(word, __ATOMIC_ACQUIRE) != value; spins++)
        if (spins % 4096 == 0)
            sched_yield();
}

#endif
