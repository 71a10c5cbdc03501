/* Two ranks with a mapped and a registered buffer each. Rank 0 measures, the others sleep in the
 * library. The rank of a world of one is its own peer. Only the public interface is used. */
#ifndef LLCL_BENCH_WORLD_H
#define LLCL_BENCH_WORLD_H

#include <sys/types.h>

#include "bench.h"
#include "limits.h"
#include "llcl.h"
#include "plain.h"

typedef enum bench_op { BENCH_WRITE, BENCH_READ, BENCH_FETCH_ADD } bench_op_t;
typedef enum bench_memory { BENCH_MAPPED, BENCH_REGISTERED } bench_memory_t;

typedef struct bench_world {
    llcl_context_t *context;
    limits_t *limits; /* NULL in passive ranks */
    uint32_t rank, size, peer;
    int execution;    /* the LLCL_EXECUTION_* in force */
    int pin;
    size_t bytes;     /* bytes of each buffer */
    llcl_region_t *mapped, *registered, *source;
    char *registered_memory, *source_memory;
    llcl_remote_t remote[2];   /* the peer's buffers, by bench_memory */
    char *mapped_pointer;      /* the address of the peer's mapped buffer in this process */
    pid_t peer_process;
    int behind_wire; /* the peer is on another node, so each operation takes a round trip */
    char *peer_registered;     /* the address of its registered buffer in the peer's process */
    plain_region_t plain_local, plain_remote;
} bench_world_t;

void bench_check(llcl_status_t status, const char *call);

/* Collective. Sets `options->show` if this rank measures. */
void world_open(bench_world_t *world, bench_options_t *options, size_t bytes);
/* Collective: the passive ranks sleep here until rank 0 calls it. */
void world_close(bench_world_t *world);

/* Sleeps until the progress threads sleep as well, so that a limit is measured on a quiet
 * machine. */
void world_settle(void);
/* The time of two hand-overs of a cache line (there and back), in ns. */
double world_two_hand_overs(bench_world_t *world);
/* The time of one way through a bare ring of slots, and of a message in a stream through it, in
 * ns. */
double world_ring_way(bench_world_t *world);
double world_ring_message(bench_world_t *world, size_t size);
/* The time per message of 8 bytes that this many threads send through one bare ring, all at once or
 * in turns. */
double world_ring_shared(bench_world_t *world, int threads, int in_turns);
double world_wake(bench_world_t *world, unsigned idle_us);
/* The GB/s of `count` bare copies, by memcpy or by the kernel, between this rank's memory and the
 * peer's. `memory` is the peer's. */
double world_copies(const bench_world_t *world, int is_write, bench_memory_t memory, size_t size, size_t count);
/* GB/s. */
double world_gigabytes(size_t size, size_t count, uint64_t ns);

const char *bench_op_name(bench_op_t op);

/* A request that is prepared once and posted many times. */
typedef struct bench_request {
    bench_op_t op;
    union {
        llcl_write_params_t write;
        llcl_read_params_t read;
        llcl_fetch_add_params_t fetch_add;
    } as;
} bench_request_t;

/* `offset` applies to both buffers, so that each thread has cache lines of its own. */
bench_request_t world_request(const bench_world_t *world, bench_op_t op, bench_memory_t memory, size_t offset, size_t size,
                              llcl_completion_t on_complete, uint32_t flags);
plain_params_t world_plain(const bench_world_t *world, size_t offset, size_t size);

static inline __attribute__((always_inline)) llcl_status_t bench_try(llcl_context_t *context, bench_op_t op,
                                                                     const bench_request_t *request)
{
    switch (op) { /* `op` is a constant where this is inlined */
    case BENCH_WRITE: return llcl_try_write_async(context, &request->as.write);
    case BENCH_READ: return llcl_try_read_async(context, &request->as.read);
    default: return llcl_try_fetch_add_async(context, &request->as.fetch_add);
    }
}

/* The async tier, which waits until the request is accepted. If there are more threads than cores
 * it sleeps until there is room, which a loop of tries and sched_yield() would not. */
static __attribute__((noinline, unused)) llcl_status_t bench_async(llcl_context_t *context, bench_op_t op,
                                                                     const bench_request_t *request)
{
    switch (op) { /* `op` is a constant where this is inlined */
    case BENCH_WRITE: return llcl_write_async(context, &request->as.write);
    case BENCH_READ: return llcl_read_async(context, &request->as.read);
    default: return llcl_fetch_add_async(context, &request->as.fetch_add);
    }
}

static inline __attribute__((always_inline)) void bench_post(llcl_context_t *context, bench_op_t op,
                                                             const bench_request_t *request)
{
    llcl_status_t status = bench_try(context, op, request);
    if (status > 0 && status != LLCL_DONE)
        status = bench_async(context, op, request);
    if (status < 0)
        bench_check(status, "bench_post");
}

/* Makes one more request with new contents, and ends the program if the bytes, or the word and its
 * old value, are not where they belong. Reads the peer's memory without the library where it
 * can. */
void world_verify(const bench_world_t *world, bench_op_t op, bench_memory_t memory, size_t size, uint32_t flags);

static inline __attribute__((always_inline)) int bench_plain(bench_op_t op, const plain_params_t *params)
{
    switch (op) {
    case BENCH_WRITE: return plain_write(params);
    case BENCH_READ: return plain_read(params);
    default: return plain_fetch_add(params);
    }
}

/* Waits for a word that a completion changes, as listing 6 does: by spinning, with yields. */
static inline void bench_wait(const uint64_t *word, uint64_t at_least)
{
    unsigned spins = 0;
    uint64_t seen;
    while ((seen = __atomic_load_n(word, __ATOMIC_ACQUIRE)) < at_least)
        bench_relax(&spins, 300);
    if (seen & LLCL_WORD_FAILED)
        bench_die("bench: an operation has failed (completion word %#llx)", (unsigned long long)seen);
}

#endif
