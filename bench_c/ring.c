#include "ring.h"

#include <string.h>

static void await_room(ring_end_t *end)
{
    for (unsigned spins = 1; end->next - end->consumed >= RING_SLOTS; spins++) {
        end->consumed = __atomic_load_n(&end->ring->consumed, __ATOMIC_ACQUIRE); /* pairs with ring_receive */
        if (spins % 4096 == 0)
            sched_yield();
    }
}

static void fill(ring_slot_t *slot, uint64_t number, size_t size)
{
    slot->body[0] = 1; /* as many words as the library writes: sender, size, tag, and 8 bytes */
    slot->body[1] = size;
    slot->body[2] = 0;
    slot->body[3] = number;
    __atomic_store_n(&slot->mark, number + 1, __ATOMIC_RELEASE); /* pairs with ring_receive */
}

void ring_send(ring_end_t *end, const void *payload, size_t size)
{
    if (end->next - end->consumed >= RING_SLOTS)
        await_room(end);
    size_t at = end->next % RING_SLOTS;
    ring_slot_t *slot = &end->ring->slots[at];
    if (payload != NULL)
        memcpy(end->ring->payloads[at], payload, size);
    fill(slot, end->next++, size);
}

/* Sends the message of this number. The thread may share its core with the receiver, so it yields
 * after each look without a free slot. */
static void send_number(ring_end_t *end, uint64_t number)
{
    ring_t *ring = end->ring;
    while (number - end->consumed >= RING_SLOTS) {
        end->consumed = __atomic_load_n(&ring->consumed, __ATOMIC_ACQUIRE); /* pairs with ring_receive */
        if (number - end->consumed >= RING_SLOTS)
            sched_yield();
    }
    fill(&ring->slots[number % RING_SLOTS], number, 8);
    /* As the library does: fetches the lines of later slots by stores that overlap. */
    for (uint64_t ahead = RING_AHEAD; number % RING_AHEAD == 0 && ahead < 2 * RING_AHEAD; ahead++)
        if (number + ahead - end->consumed < RING_SLOTS)
            __atomic_store_n(&ring->slots[(number + ahead) % RING_SLOTS].reserved, 0, __ATOMIC_RELAXED);
}

void ring_send_shared(ring_end_t *end, uint64_t end_at)
{
    for (;;) {
        uint64_t number = __atomic_fetch_add(&end->ring->taken, 1, __ATOMIC_RELAXED);
        if (number >= end_at)
            return;
        send_number(end, number);
    }
}

void ring_send_in_turns(ring_end_t *end, uint64_t end_at, sem_t *mine, sem_t *next)
{
    do {
        while (sem_wait(mine) != 0) /* a signal */
            ;
        end->next = end->ring->taken;
        uint64_t turn_ends = end->next + RING_TURN < end_at ? end->next + RING_TURN : end_at;
        while (end->next < turn_ends)
            send_number(end, end->next++);
        end->ring->taken = turn_ends; /* the semaphores order this */
        sem_post(next);
    } while (end->next < end_at);
}

void ring_receive(ring_end_t *end)
{
    ring_slot_t *slot = &end->ring->slots[end->next % RING_SLOTS];
    spin_until(&slot->mark, end->next + 1);
    if (slot->body[0] != 1)
        bench_die("ring: message %llu is not what was sent", (unsigned long long)end->next);
    if (++end->next % RING_LOT == 0)
        __atomic_store_n(&end->ring->consumed, end->next, __ATOMIC_RELEASE); /* pairs with await_room, ring_drain */
}

void ring_drain(const ring_end_t *end) { spin_until(&end->ring->consumed, end->next); }
