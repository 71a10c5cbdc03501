/* llcl.h - the C interface of libllcl 0.2.0
 * Generated from src/api by `make header` (cbindgen 0.29.4); changes belong there.
 * SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef LLCL_H
#define LLCL_H

/*
 * libllcl: one-sided reads, writes and atomics, active messages and persistent collectives between
 * the processes of a machine.
 *
 * Conventions, which hold for every function:
 *
 * - Statuses. LLCL_OK is 0. A positive status means "try again": nothing happened and nothing was
 *   kept; its name gives the reason. The one exception is LLCL_DONE, which only requests with
 *   LLCL_FLAG_DONE are answered: the operation has ended, and none of its completions fires. A
 *   negative status is an error; llcl_last_error() then has a sentence that names the parameter,
 *   its value and what was expected.
 * - Handles are opaque pointers, made and ended by matching calls. Contexts, regions, teams and
 *   plans that have ended are refused with LLCL_ERR_STATE, also after the end of their context,
 *   until 256 later ones of their kind have ended. Any other handle that has ended must not be
 *   passed.
 * - Parameter structs are read during the call only. Each has an initialiser for C and C++, such
 *   as LLCL_WRITE_PARAMS_INIT for llcl_write_params_t, which sets every field to 0. Flag bits and
 *   kinds that are not defined here are refused with LLCL_ERR_INVALID, and so is NULL wherever it
 *   is not allowed by name.
 * - Out-parameters are written on success only.
 * - Accepted (LLCL_OK from a function whose name ends in _async) means: each completion that the
 *   request carries fires exactly once, with a status, whatever happens. Refused means: none
 *   fires.
 * - Callbacks run on whatever thread ends the operation: the caller, before the call returns
 *   (unless LLCL_FLAG_DEFER or LLCL_FLAG_DONE is given); a thread that waits in this library; or
 *   one of its own threads. In offload mode it is the progress thread; but a thread that posts
 *   while the command queue is full, or while another thread posts, may execute commands from the
 *   queue, and then runs their callbacks.
 *   Callbacks may post requests by the try functions, and start collectives; they must not block. What a callback posts
 *   may end at once; its own callback then runs after the present one has returned, so a chain of
 *   any length needs no more stack than one link. A thread keeps at most 64 such callbacks
 *   waiting; beyond that the try functions answer LLCL_RETRY_QUEUE_FULL.
 * - Order. Operations of one thread or of several may take effect in any order, except that the
 *   signal of llcl_try_write_signal_async is never seen before its data, and that whatever was
 *   done before an operation was accepted is seen by every thread that sees its effect.
 * - First use. A peer is contacted when it is first used: its memory is mapped as soon as it has
 *   called llcl_init, which takes some 0.1 ms. Until then the try functions answer
 *   LLCL_RETRY_CONNECTING, without waiting, while the contact goes on behind them; other functions
 *   that need the peer wait. A message to a receiver with LLCL_AM_POLICY_DISTRIBUTED also contacts the rank
 *   that keeps the counter of a share. llcl_connect contacts peers beforehand.
 * - Threads. Every function may be called by any thread at any time, except where it says else. No
 *   panic leaves the library; there is no process-wide state to set up, no signal handler and no
 *   constructor.
 * - Signal handlers may call llcl_abort with NULL, and no other function of this library: the
 *   others allocate memory and take locks that the interrupted thread may hold. Let the handler
 *   set a flag, or write to a descriptor, and a thread act on it.
 * - Callbacks and handlers end by returning. One that leaves by an exception, pthread_exit or
 *   cancellation ends the process, with a message that names it; one that leaves by longjmp leaves
 *   behind what its thread held, and other threads may wait for that for ever.
 * - fork(). The child must not use what its parent has made: every call with a context, a region,
 *   a team, a plan or a world of the parent answers LLCL_ERR_STATE there, llcl_finalize in an exit
 *   handler included, and the parent's rank goes on. system(), popen() and posix_spawn() do what
 *   they always do. docs/rules.md has the whole of it.
 * - Death of a peer is reported by LLCL_ERR_PEER_DEAD on everything pending on it, never by a
 *   hang.
 */

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * 0. Statuses
 */

/** Accepted, or done. */
#define LLCL_OK 0

/** Try again: the command queue is full. Let others run, or wait for something, and repeat. */
#define LLCL_RETRY_QUEUE_FULL 1

/**
 * Try again (direct mode): as many operations wait for other ranks as LLCL_IN_FLIGHT allows.
 */
#define LLCL_RETRY_NO_TAG 2

/**
 * Try again: another thread uses what is needed (direct mode), or the region is still in use.
 */
#define LLCL_RETRY_BUSY 3

/** Try again: all message slots of the peer are taken. Let it run its handlers, and repeat. */
#define LLCL_RETRY_NO_CREDIT 4

/**
 * Try again: the peer was not contacted before, and the contact is under way; it goes on whether
 * or not you try again, and may take until the peer has come up. llcl_connect waits for it.
 */
#define LLCL_RETRY_CONNECTING 5

/**
 * The operation has ended before the call returned, and none of its completions fires. Only
 * requests with LLCL_FLAG_DONE are answered so.
 */
#define LLCL_DONE 64

/** A parameter has a value that it may not have. */
#define LLCL_ERR_INVALID (-1)

/** An offset, a size or a number lies outside of what exists. */
#define LLCL_ERR_RANGE (-2)

/** Memory, a table or a limit of the kernel is exhausted. */
#define LLCL_ERR_NO_MEMORY (-3)

/** The peer has died or has left the world. */
#define LLCL_ERR_PEER_DEAD (-4)

/** llcl_finalize ended the operation; it may or may not have taken effect. */
#define LLCL_ERR_CANCELED (-5)

/** The operation is not offered, as AND on floating-point numbers. */
#define LLCL_ERR_UNSUPPORTED (-6)

/** A system call failed; llcl_last_error() names it. */
#define LLCL_ERR_SYSTEM (-7)

/** Not now: inside a callback, during llcl_finalize, or a second time. */
#define LLCL_ERR_STATE (-8)

/** The time ran out. */
#define LLCL_ERR_TIMEOUT (-9)

/** The address names no live region of that rank: freed, forged, of another rank or context. */
#define LLCL_ERR_KEY (-10)

/** A defect of this library. Please report it. */
#define LLCL_ERR_INTERNAL (-11)

/** The peer has no handler of this number. */
#define LLCL_ERR_NO_HANDLER (-12)

/** What a call answers: 0, an error if negative, "try again" if positive; but for LLCL_DONE. */
typedef int32_t llcl_status_t;

/**
 * One line about a status.
 *
 * `status`: any number. Returns static text, never NULL; for numbers that are no status, too.
 * Any thread may call it at any time.
 */
const char *llcl_status_string(llcl_status_t status);

/**
 * The sentence of the calling thread's last error: which function was called, which parameter,
 * which value, what was expected.
 *
 * Returns text that stays valid until the thread's next failing call, never NULL; empty when none
 * has failed. Statuses of the "try again" kind leave it alone. Each thread has its own.
 */
const char *llcl_last_error(void);

/**
 * For programs that end where a call fails, by the macro LLCL_CHECK: prints what was called where,
 * the status and llcl_last_error() on stderr, and ends the process by exit(1), so that its job
 * ends.
 *
 * `status`: what the call has answered; for LLCL_OK and LLCL_DONE nothing happens. `call`: the
 * call as text;
 * `file`: where it stands, static text or NULL; `line`: the line there. Any thread may call it;
 * exit handlers run on it.
 */
void llcl_must_succeed(llcl_status_t status,
                       const char *call,
                       const char *file,
                       uint32_t line);

/*
 * 1. Completions: what happens when an operation ends.
 */

/** Nothing happens. */
#define LLCL_COMPLETE_NONE 0u

/** The function is called. */
#define LLCL_COMPLETE_CALL 1u

/**
 * The word becomes 1; or, if the operation failed, the status as a 64-bit number (bit 63 set).
 */
#define LLCL_COMPLETE_STORE 2u

/** The word grows by 1; if the operation failed, bit 63 is set as well. */
#define LLCL_COMPLETE_ADD 3u

/** The bit of a STORE or ADD word that says that an operation failed. */
#define LLCL_WORD_FAILED ((uint64_t)1 << 63)

/**
 * A function that a completion calls: with the data given beside it, and how the operation ended.
 * It may post requests by the try functions and must not block; see the conventions.
 */
typedef void (*llcl_callback_fn)(void *data, llcl_status_t status);

/**
 * What happens when an operation ends. The function, its data and the word stay the caller's and
 * must stay valid until it has happened.
 */
typedef struct llcl_completion_t {
    /** One of LLCL_COMPLETE_*. */
    uint32_t kind;
    /** 0. */
    uint32_t reserved;
    /** For CALL: the function. Else ignored. */
    llcl_callback_fn call;
    /**
     * For CALL: the data for the function, may be NULL. For STORE and ADD: a uint64_t, aligned to
     * 8 bytes. Else ignored.
     */
    void *target;
} llcl_completion_t;

/** All zeroes: `llcl_completion_t it = LLCL_COMPLETION_INIT;`. */
#define LLCL_COMPLETION_INIT {0, 0, NULL, NULL}

/**
 * The completion that does nothing. Its user learns of the end by llcl_flush.
 *
 * Returns the struct by value. Any thread may call it.
 */
llcl_completion_t llcl_no_completion(void);

/**
 * The completion that calls a function.
 *
 * `call`: the function; a request with NULL here is refused. `data`: its first argument, may be
 * NULL. Returns the struct by value. Any thread may call it; on which thread the function runs
 * is told in the conventions.
 */
llcl_completion_t llcl_callback(llcl_callback_fn call, void *data);

/**
 * The completion that sets a word: to 1, or to the negative status as a 64-bit number.
 *
 * `word`: the caller's, aligned to 8 bytes, valid until it is set; a request with NULL here is
 * refused. Set it to 0 before, and wait with llcl_wait_word(context, word, 1, ...): failures end
 * the wait as well. Returns the struct by value. Any thread may call it.
 */
llcl_completion_t llcl_store_on(uint64_t *word);

/**
 * The completion that adds 1 to a word, and sets LLCL_WORD_FAILED in it if the operation failed.
 *
 * `word`: the caller's, aligned to 8 bytes, valid until all operations that name it have ended;
 * a request with NULL here is refused. Any number of operations may share it. Returns the
 * struct by value. Any thread may call it.
 */
llcl_completion_t llcl_add_on(uint64_t *word);

/*
 * 2. Worlds and configuration: where a context is, and how it is to be.
 */

/** As the environment variable LLCL_EXECUTION says, else LLCL_EXECUTION_AUTO. */
#define LLCL_EXECUTION_FROM_ENVIRONMENT 0u

/**
 * The caller does what it can itself; the rest is done by a thread that waits or posts, at the
 * latest by the progress thread.
 */
#define LLCL_EXECUTION_AUTO 1u

/**
 * Every request goes through the queue to the progress thread. A thread that finds the queue full,
 * or another thread posting at the same moment, executes a batch of it instead, if nobody else
 * does.
 */
#define LLCL_EXECUTION_OFFLOAD 2u

/** The caller posts everything itself and is told to try again while another thread does. */
#define LLCL_EXECUTION_DIRECT 3u

/** As the environment variable LLCL_AM_POLICY says, else LLCL_AM_POLICY_ACQUIRE. */
#define LLCL_AM_POLICY_FROM_ENVIRONMENT 0u

/** A sender takes a slot by an addition to one counter of the receiver. */
#define LLCL_AM_POLICY_ACQUIRE 1u

/**
 * Counters only bound how many messages are under way; the transport's own queue carries them.
 */
#define LLCL_AM_POLICY_LIMIT 2u

/** The slots are split into shares, whose counters lie with several ranks. */
#define LLCL_AM_POLICY_DISTRIBUTED 3u

/** As the environment variable LLCL_AM_HANDLERS says, else LLCL_AM_HANDLERS_SERIAL. */
#define LLCL_AM_HANDLERS_FROM_ENVIRONMENT 0u

/** One handler of a context runs at a time. */
#define LLCL_AM_HANDLERS_SERIAL 1u

/** Handlers of different messages run at the same time, on whatever threads are at hand. */
#define LLCL_AM_HANDLERS_PARALLEL 2u

/**
 * One handler of a context runs at a time, and only on threads of the program, outside of
 * callbacks: in llcl_am_poll, llcl_am_wait, llcl_progress, and in every call that waits. A program
 * that calls none of these gets no message; what the library does for other ranks' operations on
 * memory goes on.
 */
#define LLCL_AM_HANDLERS_POLLED 3u

/** A world whose ranks are threads of this process. */
typedef struct llcl_world_t llcl_world_t;

/**
 * Gathers bytes from every rank at every rank, by means of the program: `all` becomes the `size`
 * bytes at `mine` of each rank, in their order. Returns 0 when that has been done. `data`: as in
 * llcl_bootstrap_t.
 */
typedef int32_t (*llcl_allgather_fn)(void *data, const void *mine, size_t size, void *all);

/**
 * Ends the whole job with this exit code, by means of the program, as MPI_Abort does; need not
 * return. `data`: as in llcl_bootstrap_t.
 */
typedef void (*llcl_abort_fn)(void *data, int32_t exit_code);

/**
 * The place of this process among ranks that somebody else has started and numbered: MPI, PMI, or
 * the program itself. llcl_init is then collective over them. Ranks that can hand a descriptor to
 * each other share memory; those of other machines are reached by a wire (LLCL_TRANSPORT, else
 * MPI's), without which llcl_init answers LLCL_ERR_UNSUPPORTED. All ranks of a machine run in the
 * name of one user. The lowest rank of each machine serves the others there, as llcl-run does
 * elsewhere: when it dies these hear of the death of all ranks.
 */
typedef struct llcl_bootstrap_t {
    /** Bytes of this struct, as LLCL_BOOTSTRAP_INIT sets it. */
    uint64_t struct_size;
    /** This process's number, from 0 on, below `size`. */
    uint32_t rank;
    /** How many ranks there are, 1 to 4096; the same at each. */
    uint32_t size;
    /**
     * Called two to four times, inside llcl_init and by its thread, with at most 300 bytes. It may
     * block, and must not call this library.
     */
    llcl_allgather_fn allgather;
    /**
     * Called by llcl_abort and llcl_exit, on the thread that calls that. NULL: the lowest rank of
     * each machine ends the processes there.
     */
    llcl_abort_fn abort;
    /**
     * The first argument of both functions; may be NULL. Stays valid until the context has ended.
     */
    void *data;
    /**
     * What the wire to other machines is told of these ranks; 0: nothing. MPI: MPI_Comm_c2f of the
     * communicator whose ranks they are, valid until the context has ended; 0: MPI_COMM_WORLD.
     */
    int64_t foreign;
} llcl_bootstrap_t;

/** Its size, and else zeroes: `llcl_bootstrap_t it = LLCL_BOOTSTRAP_INIT;`. */
#define LLCL_BOOTSTRAP_INIT {sizeof(llcl_bootstrap_t), 0, 0, NULL, NULL, NULL, 0}

/**
 * How a context is to be. Begin with LLCL_CONFIG_INIT, or with llcl_config_default where macros
 * are out of reach. A field that is 0 takes its value from the environment variable in brackets,
 * else its default. An empty variable counts as unset; one that begins with LLCL_ and is none of
 * the library's is named on stderr, once, with the nearest that is.
 */
typedef struct llcl_config_t {
    /** Bytes of this struct, as llcl_config_default sets it. */
    uint64_t struct_size;
    /**
     * The world of this process to take a place in. NULL: `bootstrap`, else the place that
     * llcl-run gave to this process, else a world of one rank. Must outlive the context.
     */
    llcl_world_t *world;
    /**
     * The place among ranks that somebody else has started, read during llcl_init; NULL: none. Not
     * with `world`.
     */
    const llcl_bootstrap_t *bootstrap;
    /** The place in `world`, from 0 on; without a world it is ignored. */
    uint32_t rank;
    /** One of LLCL_EXECUTION_* [LLCL_EXECUTION; auto]. */
    uint32_t execution;
    /**
     * Commands that the queue holds; a command that carries its bytes takes one more place for
     * each 120 of them, or part of 120; a power of two from 8 to 65536 [LLCL_QUEUE_ENTRIES; 1024].
     */
    uint32_t queue_entries;
    /**
     * Operations that wait for other ranks at one time; a multiple of 64 from 64 to 3904
     * [LLCL_IN_FLIGHT; 1024].
     */
    uint32_t in_flight;
    /** Regions at one time, 1 to 65535 [LLCL_REGIONS; 1024]. */
    uint32_t regions;
    /**
     * One of LLCL_AM_POLICY_*: how senders take this rank's message slots [LLCL_AM_POLICY;
     * acquire].
     */
    uint32_t am_policy;
    /**
     * Message slots of this rank, whatever the number of senders; a power of two from 1 to 65536
     * [LLCL_AM_SLOTS; 512].
     */
    uint32_t am_slots;
    /**
     * Most bytes of a payload that travels in a slot; a multiple of 64 from 64 to 65536
     * [LLCL_AM_MEDIUM; 4096].
     */
    uint32_t am_medium;
    /**
     * Shares of LLCL_AM_POLICY_DISTRIBUTED; a power of two from 1 to 16, no more are made than
     * there are ranks, nor than half the slots [LLCL_AM_SHARES; 4].
     */
    uint32_t am_shares;
    /**
     * Messages of this rank that may wait for their end at one time, each with a place for its
     * reply; a power of two from 64 to 4096 [LLCL_AM_REQUESTS; 256].
     */
    uint32_t am_requests;
    /** One of LLCL_AM_HANDLERS_* [LLCL_AM_HANDLERS; serial]. */
    uint32_t am_handlers;
    /** 0. */
    uint32_t reserved;
} llcl_config_t;

/** Its size, and else zeroes: `llcl_config_t it = LLCL_CONFIG_INIT;`. */
#define LLCL_CONFIG_INIT {sizeof(llcl_config_t), NULL, NULL, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, \
    0, 0}

/**
 * Fills a configuration with "as the environment says, else the default" throughout.
 *
 * `config`: the caller's struct to be filled; its content before does not matter.
 * LLCL_OK; LLCL_ERR_INVALID if `config` is NULL. Any thread may call it.
 */
llcl_status_t llcl_config_default(llcl_config_t *config);

/**
 * Makes a world whose ranks are threads of this process. Each rank then calls llcl_init with its
 * number in the configuration.
 *
 * `size`: ranks, 1 to 4096. `world`: where the new world goes; ended by llcl_world_free.
 * LLCL_OK; LLCL_ERR_INVALID: no such size, or NULL; LLCL_ERR_SYSTEM or LLCL_ERR_NO_MEMORY: the
 * machine refuses sockets or a thread. Any thread may call it.
 */
llcl_status_t llcl_world_create(uint32_t size,
                                llcl_world_t **world);

/**
 * Ends a world of this process.
 *
 * `world`: from llcl_world_create; ended by this call if it answers LLCL_OK.
 * LLCL_OK; LLCL_RETRY_BUSY: a rank has not been finalized; LLCL_ERR_INVALID: NULL. No other thread
 * may use the world at the same time.
 */
llcl_status_t llcl_world_free(llcl_world_t *world);

/*
 * 3. Life: contexts, from their beginning to their end.
 */

/** Major version: grows when programs must be changed. */
#define LLCL_VERSION_MAJOR 0u

/** Minor version: grows when functions are added. */
#define LLCL_VERSION_MINOR 2u

/** Patch version. */
#define LLCL_VERSION_PATCH 0u

/**
 * One rank's place in a world, with everything that hangs on it.
 *
 * What it holds is dropped by llcl_finalize, and the object itself is kept: a call with an old
 * handle finds here that the context has ended. The functions on words look at the context without
 * asking: it says by one word, which stays, that no peer can be reached.
 */
typedef struct llcl_context_t llcl_context_t;

/** What a context can do. */
typedef struct llcl_capabilities_t {
    /** Bytes of this struct, set by the caller before the call. */
    uint64_t struct_size;
    /** The execution in force, one of LLCL_EXECUTION_*. */
    uint32_t execution;
    /** Commands that the queue holds. */
    uint32_t queue_entries;
    /** Operations that may wait for other ranks at one time. */
    uint32_t in_flight;
    /** Regions that may exist at one time. */
    uint32_t regions;
    /** Most bytes of llcl_try_write_small_async. */
    uint64_t small;
    /** Bytes of a page: allocated regions begin on one. */
    uint64_t page;
    /** Message slots of this rank. */
    uint32_t am_slots;
    /** The policy in force, one of LLCL_AM_POLICY_*. */
    uint32_t am_policy;
    /** Most bytes of a payload that this rank takes in a slot, and of a reply that it takes. */
    uint32_t am_medium;
    /** Shares of its credits. */
    uint32_t am_shares;
    /** Messages that may wait for their end at one time. */
    uint32_t am_requests;
    /** One of LLCL_AM_HANDLERS_*. */
    uint32_t am_handlers;
    /**
     * Bytes that this rank may still allocate, as far as the machine tells now: the memory that is
     * available to all its processes, and no more than the limit of file sizes (ulimit -f) leaves.
     */
    uint64_t memory;
} llcl_capabilities_t;

/** Its size, and else zeroes: `llcl_capabilities_t it = LLCL_CAPABILITIES_INIT;`. */
#define LLCL_CAPABILITIES_INIT {sizeof(llcl_capabilities_t), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, \
    0, 0, 0}

/**
 * Takes this rank's place in its world. Collective only where another launcher than llcl-run has
 * started the ranks, and with a bootstrap, as over a communicator (llcl_mpi.h): else peers
 * are contacted when they are used.
 *
 * `config`: read during the call; NULL: all defaults. `context`: where the new context goes; the
 * caller ends it by llcl_finalize.
 * LLCL_OK; LLCL_ERR_INVALID: a field or an environment variable has a bad value, or the launcher's
 * variables LLCL_RANK, LLCL_SIZE and LLCL_HUB_FD are not all there, or another launcher (MPI, PMI,
 * Slurm) has started several ranks, which are neither handed over by `bootstrap` nor known to a
 * module (libllcl-mpi-*.so, which then initialises MPI, and finalises it in llcl_finalize), and
 * LLCL_ALONE=1 is not set; LLCL_ERR_UNSUPPORTED: ranks are on different machines, and no wire joins
 * them; LLCL_ERR_RANGE: there is no such rank in `world`; LLCL_ERR_STATE: the place is or was taken;
 * LLCL_ERR_NO_MEMORY or LLCL_ERR_SYSTEM: the machine refuses memory, a thread or a socket.
 * Any thread may call it. It starts the progress thread and one that hears of deaths; both block
 * all signals and sleep while there is nothing to do.
 */
llcl_status_t llcl_init(const llcl_config_t *config,
                        llcl_context_t **context);

/**
 * Makes a second context of the same ranks: with its own regions, handlers, message slots, teams,
 * threads and configuration. For a library beside a runtime that both use this one, or for a
 * thread that wants a context of its own. Collective over all ranks of `context`, which meet as in
 * llcl_allgather_bytes.
 *
 * The two know nothing of each other: keys, regions and flushes of one mean nothing in the other,
 * and each is ended by a llcl_finalize of its own, in any order. In the second one rank 0 serves
 * the others: when it dies they hear of the death of all ranks there.
 * `context`: a live context. `config`: read during the call, with `world` and `bootstrap` NULL;
 * `rank` is not looked at; NULL: all defaults. `duplicate`: where the new context goes.
 * LLCL_OK; LLCL_ERR_INVALID: NULL, or a field or an environment variable has a bad value;
 * LLCL_ERR_PEER_DEAD: a rank has died or has left; LLCL_ERR_STATE: inside a callback, or the
 * context is being finalized; LLCL_ERR_NO_MEMORY or
 * LLCL_ERR_SYSTEM: the machine refuses memory, a thread or a socket. Where one rank is refused the
 * others are, too, or find that it has left. Threads of one rank must not call collective
 * functions of one context at the same time. As MPI_Comm_dup, and the several clients of
 * GASNet-EX.
 */
llcl_status_t llcl_context_duplicate(llcl_context_t *context,
                                     const llcl_config_t *config,
                                     llcl_context_t **duplicate);

/**
 * Leaves the world. Collective: returns when every living rank has come here.
 *
 * Operations under way end first: by success if they can within LLCL_FINALIZE_MS, else with
 * LLCL_ERR_CANCELED; each once. Meanwhile other ranks are still served, and messages that were
 * sent before, and responses to them, are handled. All regions, teams and plans of the context end
 * with it, and every pointer into their memory; nothing of it need be freed before.
 * `context`: ended by this call, whatever it answers, except LLCL_ERR_INVALID (it is NULL) and
 * LLCL_ERR_STATE (inside a callback, ended before, or in a forked child). LLCL_OK;
 * LLCL_ERR_SYSTEM: the launcher has gone; LLCL_ERR_TIMEOUT: a callback or handler on a thread of
 * the library has not returned within LLCL_FINALIZE_MS and a second or two: what waits behind it
 * is not told, and memory and threads of the context stay for it. One that does not return on the
 * calling thread is waited for. No other thread may be in a call on this context, or begin one;
 * callbacks may run on the calling thread and on the progress thread until it returns, and what
 * they post is refused.
 */
llcl_status_t llcl_finalize(llcl_context_t *context);

/**
 * Leaves the world as llcl_finalize does, but waits for the other ranks no longer than a time.
 *
 * `context`: as of llcl_finalize. `timeout_ns`: nanoseconds; negative: for ever.
 * LLCL_ERR_TIMEOUT: not all ranks have come in time, or a call of llcl_allgather_bytes_within that
 * has timed out was not gone on with; or as of llcl_finalize, which the sentence tells. The context
 * has ended all the same. Ranks that have not come find that this one has left
 * (LLCL_ERR_PEER_DEAD), and may until then touch memory that it had registered. LLCL_OK, other
 * statuses, and threads: as of llcl_finalize.
 * After the time that each call of GASPI takes.
 */
llcl_status_t llcl_finalize_within(llcl_context_t *context,
                                   int64_t timeout_ns);

/**
 * Ends the whole job at once: every rank is killed, and llcl-run returns `exit_code`, of which a
 * system has the low 8 bits: 0 is success, other codes in which these bits are 0 count as 1.
 *
 * `context`: any context of the job; NULL: only this process ends. Does not return. Any thread may
 * call it, also inside a callback. No exit handler runs.
 */
void llcl_abort(llcl_context_t *context,
                int32_t exit_code);

/**
 * Ends the whole job in order, with an exit code: this process by exit(), which runs exit handlers
 * and writes what is buffered; the others by SIGTERM, and by SIGKILL where they have not ended in
 * time. llcl-run returns the code.
 *
 * The first call of a job decides; further ones, by whatever thread of whatever rank, do not
 * return either.
 * `context`: any context of the job; NULL: only this process ends. `exit_code`: as of llcl_abort.
 * `grace_ms`: milliseconds that the processes of the job have to end. Where the context was made
 * with an llcl_bootstrap_t::abort, this function writes the buffered output of this process and
 * then calls that one, which ends the job.
 * Does not return. Any thread may call it, also inside a callback or a handler. Operations under
 * way are not waited for. It is GASNet's gasnet_exit.
 */
void llcl_exit(llcl_context_t *context,
               int32_t exit_code,
               uint32_t grace_ms);

/**
 * This rank's number, from 0 on.
 *
 * `context`: a live context; for NULL and one that has ended the answer is 0. Any thread may call
 * it.
 */
uint32_t llcl_rank(const llcl_context_t *context);

/**
 * How many ranks the world has.
 *
 * `context`: a live context; for NULL and one that has ended the answer is 0. Any thread may call
 * it.
 */
uint32_t llcl_size(const llcl_context_t *context);

/**
 * The version of the library that runs: major << 16 | minor << 8 | patch. Any thread may call it.
 */
uint32_t llcl_version(void);

/**
 * The version of the library that runs, as text. Static, never NULL. Any thread may call it.
 */
const char *llcl_version_string(void);

/**
 * What the context can do, and the values in force.
 *
 * `context`: a live context. `capabilities`: the caller's struct with its struct_size set; filled.
 * LLCL_OK; LLCL_ERR_INVALID: NULL, or an unknown struct_size. Any thread may call it.
 */
llcl_status_t llcl_query(llcl_context_t *context,
                         llcl_capabilities_t *capabilities);

/*
 * 4. Peers: whether they live, how they are reached, and contact beforehand.
 */

/** The peer is this rank itself. */
#define LLCL_TRANSPORT_LOOPBACK 1u

/** The peer is reached through shared memory. */
#define LLCL_TRANSPORT_SHM 2u

/** The peer is reached by a network. */
#define LLCL_TRANSPORT_WIRE 3u

/** Memory is reached by loads and stores. */
#define LLCL_ACCESS_MAPPED 1u

/** Memory is reached by process_vm_readv and process_vm_writev. */
#define LLCL_ACCESS_KERNEL 2u

/** Memory is reached by messages to its owner's progress thread. */
#define LLCL_ACCESS_MESSAGE 3u

/**
 * A network reads and writes the memory, without a thread of its owner. Memory that the peer
 * allocated is then reached so as well.
 */
#define LLCL_ACCESS_WIRE 4u

/** How a peer is reached. */
typedef struct llcl_peer_info_t {
    /** Bytes of this struct, set by the caller before the call. */
    uint64_t struct_size;
    /** One of LLCL_TRANSPORT_*. */
    uint32_t transport;
    /**
     * How memory that the peer registered is read: one of LLCL_ACCESS_*. Memory that it
     * allocated is mapped, but where `transport` is LLCL_TRANSPORT_WIRE.
     */
    uint32_t registered_access;
    /** Its process id. */
    uint32_t process;
    /** Most bytes of a LLCL_AM_MEDIUM payload to it, or of a response. */
    uint32_t am_payload;
    /** Most bytes of a reply to it, and of a payload that takes one of its LLCL_AM_SLOTS. */
    uint32_t am_medium;
    /**
     * Why registered_access is LLCL_ACCESS_MESSAGE: the errno with which the kernel refused
     * process_vm_readv (EPERM: Yama's ptrace_scope above 1, another user, no dumpable process;
     * ENOSYS: a filter); 0: LLCL_CMA is off. 0 for every other access.
     */
    int32_t kernel_error;
    /**
     * How memory that the peer registered is written: one of LLCL_ACCESS_*. It is
     * registered_access, but LLCL_ACCESS_MESSAGE where a sandbox refuses process_vm_writev alone.
     */
    uint32_t registered_writes;
    /**
     * Why registered_writes is LLCL_ACCESS_MESSAGE: the errno with which the kernel refused
     * process_vm_writev, or kernel_error where it refuses both. 0 as there.
     */
    int32_t kernel_write_error;
    /**
     * The number of the node on which it runs: ranks with one number share memory. 0 where no
     * network leads anywhere, so that the world lies on one machine; else some number. The
     * variable LLCL_NODE_ID sets it: a number, or a list with one for each rank.
     */
    uint32_t node;
    /** Its message slots, whatever the number of senders. */
    uint32_t am_slots;
    /** How senders take them: one of LLCL_AM_POLICY_*. */
    uint32_t am_policy;
    /** 0. */
    uint32_t reserved;
} llcl_peer_info_t;

/** Its size, and else zeroes: `llcl_peer_info_t it = LLCL_PEER_INFO_INIT;`. */
#define LLCL_PEER_INFO_INIT {sizeof(llcl_peer_info_t), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}

/**
 * Whether a peer lives, as far as is known here: the kernel tells of a death within milliseconds.
 *
 * `context`: a live context. `peer`: a rank below llcl_size.
 * LLCL_OK: it lives, or has not been started yet; LLCL_ERR_PEER_DEAD: it has died or has left, or
 * the network has not reached it for a second;
 * LLCL_ERR_INVALID: `context` is NULL or there is no such rank. Any thread may call it.
 */
llcl_status_t llcl_peer_alive(llcl_context_t *context,
                              uint32_t peer);

/**
 * Contacts peers, so that no later request has to wait for that, nor is answered by
 * LLCL_RETRY_CONNECTING. All are contacted at the same time, by one request to the launcher. A
 * peer that was contacted before costs nothing.
 *
 * A program need not call this: a peer is contacted when it is first used.
 *
 * `context`: a live context. `peers`: `count` ranks, in any order, which may repeat; NULL: every
 * rank of the world, `count` is then ignored. Read during the call only.
 * Blocks until each of them has come up and was contacted, or has died; not inside a callback.
 * LLCL_OK: all were contacted; LLCL_ERR_INVALID: NULL, or `peers` holds no rank, and nobody was
 * contacted;
 * LLCL_ERR_PEER_DEAD: one of them has died or has left, LLCL_ERR_NO_MEMORY, LLCL_ERR_SYSTEM: the
 * memory of one of them cannot be mapped, as where too many files are open, or
 * LLCL_ERR_UNSUPPORTED: one of them runs on another node, to which no network leads; the others
 * were contacted;
 * LLCL_ERR_STATE: inside a callback, or the context is being finalized. Any thread may call it.
 * As the connection that UCX, verbs and libfabric programs make before they measure.
 */
llcl_status_t llcl_connect(llcl_context_t *context,
                           const uint32_t *peers,
                           uint32_t count);

/**
 * How a peer is reached. Contacts it if that has not happened yet, which may take until it has
 * come up.
 *
 * `context`: a live context. `peer`: a rank below llcl_size. `info`: the caller's struct with its
 * struct_size set; filled.
 * LLCL_OK; LLCL_RETRY_CONNECTING: inside a callback, the peer was not contacted before, call again
 * later;
 * LLCL_ERR_INVALID: NULL, an unknown struct_size or no such rank; LLCL_ERR_PEER_DEAD: it has died
 * or has left;
 * LLCL_ERR_STATE: the context is being finalized; LLCL_ERR_NO_MEMORY, LLCL_ERR_SYSTEM: its memory
 * cannot be mapped; LLCL_ERR_UNSUPPORTED: it runs on another node, to which no network leads. Any thread may call it.
 */
llcl_status_t llcl_query_peer(llcl_context_t *context,
                              uint32_t peer,
                              llcl_peer_info_t *info);

/*
 * 5. Memory: regions, the addresses that name places in them, and how ranks tell each other.
 */

/**
 * Flag of llcl_region_allocate and llcl_region_register: atomics on the region are executed by
 * network adapters, not by processors, and nothing else changes its words. Without it processors
 * execute them, of the caller or of the owner; llcl_atomic_query tells which. There is no wire yet
 * that offers it: LLCL_ERR_UNSUPPORTED.
 */
#define LLCL_REGION_DEVICE_ATOMICS 1u

/** A piece of this rank's memory that operations may name, here and at peers. */
typedef struct llcl_region_t llcl_region_t;

/**
 * A place in the calling rank's own memory, for the near side of operations. Means something only
 * in the context that made it.
 */
typedef struct llcl_local_t {
    /** Bytes from the beginning of the region. */
    uint64_t offset;
    /** Names the region; 0 names none. */
    uint64_t key;
} llcl_local_t;

/** All zeroes: `llcl_local_t it = LLCL_LOCAL_INIT;`. */
#define LLCL_LOCAL_INIT {0, 0}

/**
 * A place in a rank's memory: plain bytes, which mean the same in every rank and may be sent
 * around in any way. Add to `offset` to go further; leave `key` alone.
 */
typedef struct llcl_remote_t {
    /** Bytes from the beginning of the region. */
    uint64_t offset;
    /** Names the region; 0 names none. */
    uint64_t key;
} llcl_remote_t;

/** All zeroes: `llcl_remote_t it = LLCL_REMOTE_INIT;`. */
#define LLCL_REMOTE_INIT {0, 0}

/**
 * The place at an address of this process, for the near side of this process's operations: stack,
 * heap, static or mapped memory that was never made a region of. Nothing is registered, and
 * nothing need be ended.
 *
 * Not for LLCL_AM_BULK, whose payload the receiver reads, and for no far side: what peers are to
 * reach lies in a region. In `send` and `receive` of a collective it is treated as registered
 * memory.
 * `pointer`: the first byte, of any alignment; the memory stays the caller's, who keeps it until
 * the operation has ended. NULL: the place fits nothing, but size 0. Not checked: the address of
 * nothing ends the process where the operation touches it, or the operation with LLCL_ERR_SYSTEM.
 * Any thread may call it.
 * After the local buffers of MPI's and OpenSHMEM's puts, which need not be in a window either.
 */
llcl_local_t llcl_local_address(const void *pointer);

/**
 * The place some bytes further on in a peer's memory.
 *
 * `remote`: a place. `offset`: bytes, modulo 2 to the 64th; checked when the place is used, not
 * here. Any thread may call it.
 */
llcl_remote_t llcl_at(llcl_remote_t remote, uint64_t offset);

/**
 * The place some bytes further on in one's own memory.
 *
 * `local`: a place. `offset`: bytes, modulo 2 to the 64th; checked when the place is used, not
 * here. Any thread may call it.
 */
llcl_local_t llcl_local_at(llcl_local_t local, uint64_t offset);

/**
 * Allocates a region of zeroed memory that the peers of the machine map when they first use it:
 * their operations then are loads, stores and atomic instructions.
 *
 * `context`: a live context. `size`: bytes, at least 1; memory is taken page by page as it is
 * touched, huge pages are asked for from 2 MiB on. `flags`: 0 (see
 * LLCL_REGION_DEVICE_ATOMICS). `region`: where the new region
 * goes; ended by llcl_region_free or with the context.
 * Memory of freed regions is used again; that of a region which peers have used when they have let
 * go of it, which they do without their program's help. Where there is no other memory, because
 * the kernel limits the size of files (ulimit -f), the call waits for that up to 2 seconds.
 * LLCL_OK; LLCL_ERR_INVALID: NULL, size 0 or unknown flags; LLCL_ERR_UNSUPPORTED:
 * LLCL_REGION_DEVICE_ATOMICS; LLCL_ERR_NO_MEMORY: more than the
 * machine has, a limit of the kernel, or all regions of the configuration exist; LLCL_ERR_TIMEOUT:
 * a peer that is stopped has not let go of the memory that is needed: call again when it goes on;
 * LLCL_RETRY_BUSY: inside a callback where the call would have to wait for a peer; LLCL_ERR_STATE:
 * the context is being finalized. Any thread may call it.
 */
llcl_status_t llcl_region_allocate(llcl_context_t *context,
                                   size_t size,
                                   uint32_t flags,
                                   llcl_region_t **region);

/**
 * Allocates a region at every rank and tells every rank where all of them are. Collective.
 *
 * `context`: a live context. `size`: bytes of this rank's region, at least 1; ranks may give
 * different ones.
 * `region`: where the new region goes, as of llcl_region_allocate. `remotes`: place for llcl_size
 * addresses, filled in the order of ranks: the beginning of each rank's region.
 * LLCL_OK; else as llcl_region_allocate and llcl_allgather_bytes. Where one rank is refused all
 * are: that one with its reason, the others with its status, and no region is made. A rank that is
 * refused before it can tell the others, because `context` is NULL, inside a callback or during
 * llcl_finalize, is refused alone.
 * Threads of one rank must not call collective functions of the world at the same time. The
 * calling thread sleeps meanwhile. As shmem_malloc of OpenSHMEM and MPI_Win_allocate, with
 * addresses that are plain bytes.
 */
llcl_status_t llcl_region_allocate_shared(llcl_context_t *context,
                                          size_t size,
                                          llcl_region_t **region,
                                          llcl_remote_t *remotes);

/**
 * Makes a region of memory that the caller owns: heap, stack or static. Peers reach it through the
 * kernel, or by messages to this rank's progress thread; atomics on it are executed by this rank.
 *
 * `context`: a live context. `address`: the first byte; stays valid until llcl_region_free has
 * answered LLCL_OK. For atomics of n bytes it is aligned to n. `size`: bytes, at least 1. Regions
 * may overlap. `flags`: 0 (see
 * LLCL_REGION_DEVICE_ATOMICS). `region`: where the new region goes; ended by llcl_region_free or with
 * the context.
 * LLCL_OK; LLCL_ERR_INVALID: NULL, size 0 or unknown flags; LLCL_ERR_UNSUPPORTED:
 * LLCL_REGION_DEVICE_ATOMICS; LLCL_ERR_RANGE: the memory would leave
 * the address space; LLCL_ERR_NO_MEMORY: all regions of the configuration exist; LLCL_ERR_STATE:
 * the context is being finalized. Any thread may call it.
 */
llcl_status_t llcl_region_register(llcl_context_t *context,
                                   void *address,
                                   size_t size,
                                   uint32_t flags,
                                   llcl_region_t **region);

/**
 * Ends a region. Its addresses fit nothing from now on, at any rank; memory that it allocated is
 * gone when this returns, memory that was registered is the caller's alone again.
 *
 * Waits for the operations of this rank that were accepted before, not for those of peers: agree
 * with your peers first. A peer that is in the middle of a copy by the kernel may still touch
 * registered memory. A late store of a peer into allocated memory is lost: no other region gets
 * the bytes before every living peer that has used this one has let go of them (the memory itself
 * goes back to the kernel at once); a peer's read that this overtakes may bring zeros.
 * `region`: ended by this call if it answers LLCL_OK. Any other answer than those named here is a
 * failure of the wait: the region has ended, but its memory stays mapped here until a later free.
 * LLCL_OK; LLCL_RETRY_BUSY: inside a callback while operations are under way, call again later;
 * LLCL_ERR_STATE: it was freed before (found out unless a newer object has
 * been given the same handle);
 * LLCL_ERR_INVALID: NULL. Any thread may call it, once.
 */
llcl_status_t llcl_region_free(llcl_region_t *region);

/**
 * The first byte of a region, in this process.
 *
 * `region`: a handle of a live context. NULL for NULL and for a region that was freed. Any thread
 * may call it.
 */
void *llcl_region_address(const llcl_region_t *region);

/**
 * The bytes of a region.
 *
 * `region`: a handle of a live context. 0 for NULL and for a region that was freed. Any thread may
 * call it.
 */
size_t llcl_region_size(const llcl_region_t *region);

/**
 * The place at `offset` bytes of a region, for the near side of this context's operations.
 *
 * `region`: a handle of a live context; for NULL or a region that was freed the place fits
 * nothing.
 * `offset`: bytes; checked when the place is used, not here. Any thread may call it.
 */
llcl_local_t llcl_region_local(const llcl_region_t *region, uint64_t offset);

/**
 * The place at `offset` bytes of a region, as every rank may use it for the far side of
 * operations.
 *
 * `region`: a handle of a live context; for NULL or a region that was freed the place fits
 * nothing.
 * `offset`: bytes; checked when the place is used, not here. Any thread may call it.
 */
llcl_remote_t llcl_region_remote(const llcl_region_t *region, uint64_t offset);

/**
 * Gathers bytes from every rank at every rank. Collective; meant for addresses and small tables.
 *
 * `context`: a live context. `mine`: `size` bytes of this rank; may be NULL if `size` is 0.
 * `size`: bytes, the same at every rank, at most 1 GiB for all ranks together; 0 makes it a fence.
 * `all`: place for llcl_size times `size` bytes, filled in the order of ranks; may be NULL if
 * `size` is 0; must not overlap `mine`.
 * LLCL_OK; LLCL_ERR_INVALID: NULL, or the ranks gave different sizes; LLCL_ERR_RANGE: `size` is
 * too large;
 * LLCL_ERR_NO_MEMORY: no room to gather so much; LLCL_ERR_PEER_DEAD: a rank has died or has left,
 * and this call will never succeed again: the others go on with llcl_team_create and
 * llcl_allgather; LLCL_ERR_STATE: inside a callback, or the context is being finalized;
 * LLCL_ERR_SYSTEM: the launcher has gone. Threads of one rank must not call it at the same time:
 * which call of this rank would meet which call of another one is then open. The calling thread
 * sleeps meanwhile.
 */
llcl_status_t llcl_allgather_bytes(llcl_context_t *context,
                                   const void *mine,
                                   size_t size,
                                   void *all);

/**
 * Gathers bytes from every rank as llcl_allgather_bytes does, but waits for the others no longer
 * than a time.
 *
 * `context`, `mine`, `size`, `all`: as there. `timeout_ns`: nanoseconds; negative: for ever; 0:
 * only looks.
 * LLCL_ERR_TIMEOUT: some rank has not made its call yet, and `all` is unchanged. This rank's bytes
 * have been given: a further call with the `size` of this one, of either function, goes on waiting,
 * and its `mine` must hold what this one's did. Until one has ended no other collective function
 * of the world may be called, but llcl_finalize_within; one of another size answers
 * LLCL_ERR_STATE. LLCL_OK, other statuses, and threads: as there.
 * After gaspi_barrier and gaspi_allreduce of GASPI, which are called again after a time-out.
 */
llcl_status_t llcl_allgather_bytes_within(llcl_context_t *context,
                                          const void *mine,
                                          size_t size,
                                          void *all,
                                          int64_t timeout_ns);

/**
 * Where a peer's memory is mapped in this process: loads, stores and atomic instructions through
 * the pointer are the caller's own, as on memory that threads share.
 *
 * A store through it does not wake a thread that sleeps in llcl_wait_word: call llcl_wake after
 * it. The pointer stays readable until the context ends or the region's place is used for another
 * one; what it shows after the owner has freed the region is undefined, and what is stored there
 * is lost.
 * `context`: a live context. `peer`: whose memory. `remote`: the place. `size`: bytes that are
 * meant to be used from there.
 * NULL, with a sentence in llcl_last_error(), where the memory is not mapped (registered memory of
 * another rank) or the peer, the key or the range is wrong, or inside a callback where the peer
 * was not contacted before. Waits for the first contact with the peer, but for that. Any thread
 * may call it.
 */
void *llcl_remote_pointer(llcl_context_t *context,
                          uint32_t peer,
                          llcl_remote_t remote,
                          size_t size);

/*
 * 6. Reads and writes
 */

/**
 * Flag: the request goes through the command queue, whatever the execution in force, and its
 * completion never fires inside the call. For large copies that are to run beside the caller's
 * work, and for callers that hold locks which their callbacks take.
 */
#define LLCL_FLAG_DEFER 1u

/**
 * Flag: where a try function would answer "try again" the request is accepted all the same: the
 * library keeps it and posts it when there is room, in the order of one peer's kept requests. So a
 * callback that posts the next request needs no list of its own. Sources stay as they are until
 * the completion that tells so, also where they are copied in the call otherwise; but for the
 * values and small writes, which the library copies. Errors that show only when the request is
 * posted are told by its completions. As many as LLCL_PARKED are kept at one time
 * (llcl_stats_t::parked_high_water); beyond that the answer is "try again". It may be combined
 * with LLCL_FLAG_DEFER.
 */
#define LLCL_FLAG_PARK 2u

/**
 * Flag: where the operation ends before the call returns, the call answers LLCL_DONE, and none of
 * the request's completions fires. Otherwise as without the flag: LLCL_OK, and they fire; so in
 * offload mode, with LLCL_FLAG_DEFER, and where the owner of the memory must do its part. Blocking
 * functions answer LLCL_OK with it as without it. It saves the price of a completion that has
 * nothing to tell.
 */
#define LLCL_FLAG_DONE 4u

/** The signal word is set to the value. */
#define LLCL_SIGNAL_SET 1u

/** The value is added to the signal word. */
#define LLCL_SIGNAL_ADD 2u

/** A read: from a peer's memory into a region of the caller. */
typedef struct llcl_read_params_t {
    /** The rank to read from. */
    uint32_t peer;
    /** LLCL_FLAG_*, or 0. */
    uint32_t flags;
    /** Where to read. */
    llcl_remote_t source;
    /** Where the bytes go. */
    llcl_local_t destination;
    /** How many bytes; 0 checks both places and touches nothing. */
    size_t size;
    /** Fires when the bytes are there. */
    llcl_completion_t on_complete;
} llcl_read_params_t;

/** All zeroes: `llcl_read_params_t it = LLCL_READ_PARAMS_INIT;`. */
#define LLCL_READ_PARAMS_INIT {0, 0, LLCL_REMOTE_INIT, LLCL_LOCAL_INIT, 0, \
    LLCL_COMPLETION_INIT}

/** A write: from a region of the caller into a peer's memory. */
typedef struct llcl_write_params_t {
    /** The rank to write to. */
    uint32_t peer;
    /** LLCL_FLAG_*, or 0. */
    uint32_t flags;
    /** The bytes. */
    llcl_local_t source;
    /** Where they go. */
    llcl_remote_t destination;
    /** How many bytes; 0 checks both places and touches nothing. */
    size_t size;
    /** Fires when the source may be reused. */
    llcl_completion_t on_local;
    /** Fires when the bytes can be seen at the peer. */
    llcl_completion_t on_complete;
} llcl_write_params_t;

/** All zeroes: `llcl_write_params_t it = LLCL_WRITE_PARAMS_INIT;`. */
#define LLCL_WRITE_PARAMS_INIT {0, 0, LLCL_LOCAL_INIT, LLCL_REMOTE_INIT, 0, \
    LLCL_COMPLETION_INIT, LLCL_COMPLETION_INIT}

/** A write, followed by a change of a word at the same peer. */
typedef struct llcl_write_signal_params_t {
    /** The rank to write to. */
    uint32_t peer;
    /** LLCL_FLAG_*, or 0. */
    uint32_t flags;
    /** The bytes. */
    llcl_local_t source;
    /** Where they go. */
    llcl_remote_t destination;
    /** How many bytes; 0 makes it a signal alone, both places still being checked. */
    size_t size;
    /** The word: a uint64_t of the same peer, aligned to 8 bytes. */
    llcl_remote_t signal;
    /** What the word is set to, or what is added to it. */
    uint64_t signal_value;
    /** LLCL_SIGNAL_SET or LLCL_SIGNAL_ADD. */
    uint32_t signal_op;
    /** 0. */
    uint32_t reserved;
    /** Fires when the source may be reused. */
    llcl_completion_t on_local;
    /** Fires when bytes and signal can be seen at the peer. */
    llcl_completion_t on_complete;
} llcl_write_signal_params_t;

/** All zeroes: `llcl_write_signal_params_t it = LLCL_WRITE_SIGNAL_PARAMS_INIT;`. */
#define LLCL_WRITE_SIGNAL_PARAMS_INIT {0, 0, LLCL_LOCAL_INIT, LLCL_REMOTE_INIT, 0, \
    LLCL_REMOTE_INIT, 0, 0, 0, LLCL_COMPLETION_INIT, LLCL_COMPLETION_INIT}

/**
 * Reads from a peer, if that is possible now.
 *
 * Source and destination may overlap, where they are memory of one process, as for memmove. The
 * destination is undefined until `on_complete`.
 * `context`: a live context. `params`: read during the call only.
 * LLCL_OK: accepted; LLCL_RETRY_QUEUE_FULL, LLCL_RETRY_NO_TAG, LLCL_RETRY_BUSY,
 * LLCL_RETRY_CONNECTING: try again;
 * LLCL_ERR_INVALID, LLCL_ERR_RANGE, LLCL_ERR_KEY: the sentence of llcl_last_error() says what is
 * wrong with `params`; LLCL_ERR_PEER_DEAD: the peer has died or has left; LLCL_ERR_STATE: the
 * context is being finalized; LLCL_ERR_NO_MEMORY, LLCL_ERR_SYSTEM: the peer's memory cannot be
 * mapped. The completion may report LLCL_ERR_PEER_DEAD, LLCL_ERR_KEY (the owner has freed the
 * region) or LLCL_ERR_CANCELED.
 * Any thread may call it, also inside a callback. Where it runs the completions: see the
 * conventions. The interface is that of Endo and Taura's low-level communication layer (listing 1
 * there), with the reason of a refusal added.
 */
llcl_status_t llcl_try_read_async(llcl_context_t *context,
                                  const llcl_read_params_t *params);

/**
 * Reads from a peer: like llcl_try_read_async, but tries until it is accepted, and helps with
 * progress meanwhile.
 *
 * `context` and `params`: as there. LLCL_OK or an error as there, never a "try again"; inside a
 * callback LLCL_ERR_STATE. Any thread may call it.
 */
llcl_status_t llcl_read_async(llcl_context_t *context, const llcl_read_params_t *params);

/**
 * Reads from a peer and waits for the end, helping with progress meanwhile and sleeping if it
 * takes long.
 *
 * `context` and `params`: as for llcl_try_read_async; the completions must be
 * llcl_no_completion(). LLCL_OK: done; else an error as there, or the one with which the operation
 * ended; inside a callback LLCL_ERR_STATE. Any thread may call it.
 */
llcl_status_t llcl_read(llcl_context_t *context,
                        const llcl_read_params_t *params);

/**
 * Writes to a peer, if that is possible now.
 *
 * The source must not change until `on_local` or `on_complete`. Source and destination may
 * overlap, where they are memory of one process, as for memmove.
 * `context`: a live context. `params`: read during the call only.
 * LLCL_OK: accepted; LLCL_RETRY_QUEUE_FULL, LLCL_RETRY_NO_TAG, LLCL_RETRY_BUSY,
 * LLCL_RETRY_CONNECTING: try again;
 * LLCL_ERR_INVALID, LLCL_ERR_RANGE, LLCL_ERR_KEY: the sentence of llcl_last_error() says what is
 * wrong with `params`; LLCL_ERR_PEER_DEAD: the peer has died or has left; LLCL_ERR_STATE: the
 * context is being finalized; LLCL_ERR_NO_MEMORY, LLCL_ERR_SYSTEM: the peer's memory cannot be
 * mapped. The completion may report LLCL_ERR_PEER_DEAD, LLCL_ERR_KEY (the owner has freed the
 * region) or LLCL_ERR_CANCELED.
 * Any thread may call it, also inside a callback. Where it runs the completions: see the
 * conventions. The interface is that of Endo and Taura's low-level communication layer (listing 1
 * there), with the reason of a refusal added.
 */
llcl_status_t llcl_try_write_async(llcl_context_t *context,
                                   const llcl_write_params_t *params);

/**
 * Writes to a peer: like llcl_try_write_async, but tries until it is accepted, and helps with
 * progress meanwhile.
 *
 * `context` and `params`: as there. LLCL_OK or an error as there, never a "try again"; inside a
 * callback LLCL_ERR_STATE. Any thread may call it.
 */
llcl_status_t llcl_write_async(llcl_context_t *context,
                               const llcl_write_params_t *params);

/**
 * Writes to a peer and waits for the end, helping with progress meanwhile and sleeping if it takes
 * long.
 *
 * `context` and `params`: as for llcl_try_write_async; the completions must be
 * llcl_no_completion(). LLCL_OK: done; else an error as there, or the one with which the operation
 * ended; inside a callback LLCL_ERR_STATE. Any thread may call it.
 */
llcl_status_t llcl_write(llcl_context_t *context,
                         const llcl_write_params_t *params);

/**
 * Writes to a peer and then changes a word there, if that is possible now.
 *
 * A thread that sees the word changed sees the bytes. The source must not change until `on_local`
 * or `on_complete`. A thread of the peer waits for the word by llcl_wait_word.
 * `context`: a live context. `params`: read during the call only.
 * LLCL_OK: accepted; LLCL_RETRY_QUEUE_FULL, LLCL_RETRY_NO_TAG, LLCL_RETRY_BUSY,
 * LLCL_RETRY_CONNECTING: try again;
 * LLCL_ERR_INVALID, LLCL_ERR_RANGE, LLCL_ERR_KEY: the sentence of llcl_last_error() says what is
 * wrong with `params`; LLCL_ERR_PEER_DEAD: the peer has died or has left; LLCL_ERR_STATE: the
 * context is being finalized; LLCL_ERR_NO_MEMORY, LLCL_ERR_SYSTEM: the peer's memory cannot be
 * mapped. The completion may report LLCL_ERR_PEER_DEAD, LLCL_ERR_KEY (the owner has freed the
 * region) or LLCL_ERR_CANCELED.
 * Any thread may call it, also inside a callback. Where it runs the completions: see the
 * conventions. The form is that of the put with signal of OpenSHMEM 1.5 and of the notification of
 * GASPI.
 */
llcl_status_t llcl_try_write_signal_async(llcl_context_t *context,
                                          const llcl_write_signal_params_t *params);

/**
 * Writes to a peer and then changes a word there: like llcl_try_write_signal_async, but tries
 * until it is accepted, and helps with progress meanwhile.
 *
 * `context` and `params`: as there. LLCL_OK or an error as there, never a "try again"; inside a
 * callback LLCL_ERR_STATE. Any thread may call it.
 */
llcl_status_t llcl_write_signal_async(llcl_context_t *context,
                                      const llcl_write_signal_params_t *params);

/**
 * Writes to a peer and then changes a word there and waits for the end, helping with progress
 * meanwhile and sleeping if it takes long.
 *
 * `context` and `params`: as for llcl_try_write_signal_async; the completions must be
 * llcl_no_completion(). LLCL_OK: done; else an error as there, or the one with which the operation
 * ended; inside a callback LLCL_ERR_STATE. Any thread may call it.
 */
llcl_status_t llcl_write_signal(llcl_context_t *context,
                                const llcl_write_signal_params_t *params);

/*
 * 7. Writes of bytes that the request carries itself
 */

/** A write of one to eight bytes that are in the struct itself. */
typedef struct llcl_write_value_params_t {
    /** The rank to write to. */
    uint32_t peer;
    /** LLCL_FLAG_*, or 0. */
    uint32_t flags;
    /** Where the bytes go. */
    llcl_remote_t destination;
    /** The value: its `size` low-order bytes are written, in this machine's byte order. */
    uint64_t value;
    /** How many bytes, 1 to 8. */
    size_t size;
    /** Fires when the value can be seen at the peer. */
    llcl_completion_t on_complete;
} llcl_write_value_params_t;

/** All zeroes: `llcl_write_value_params_t it = LLCL_WRITE_VALUE_PARAMS_INIT;`. */
#define LLCL_WRITE_VALUE_PARAMS_INIT {0, 0, LLCL_REMOTE_INIT, 0, 0, LLCL_COMPLETION_INIT}

/** A write of a few bytes from anywhere. */
typedef struct llcl_write_small_params_t {
    /** The rank to write to. */
    uint32_t peer;
    /** LLCL_FLAG_*, or 0. */
    uint32_t flags;
    /**
     * The bytes: any memory of the caller, who may reuse it when the call returns. May be NULL if
     * `size` is 0.
     */
    const void *source;
    /** Where the bytes go. */
    llcl_remote_t destination;
    /**
     * How many bytes, at most `small` of llcl_capabilities_t; 0 checks the place and touches
     * nothing.
     */
    size_t size;
    /** Fires when the bytes can be seen at the peer. */
    llcl_completion_t on_complete;
} llcl_write_small_params_t;

/** All zeroes: `llcl_write_small_params_t it = LLCL_WRITE_SMALL_PARAMS_INIT;`. */
#define LLCL_WRITE_SMALL_PARAMS_INIT {0, 0, NULL, LLCL_REMOTE_INIT, 0, LLCL_COMPLETION_INIT}

/**
 * Writes a value to a peer, if that is possible now.
 *
 * No source region is needed; `params` may be reused at once.
 * `context`: a live context. `params`: read during the call only.
 * LLCL_OK: accepted; LLCL_RETRY_QUEUE_FULL, LLCL_RETRY_NO_TAG, LLCL_RETRY_BUSY,
 * LLCL_RETRY_CONNECTING: try again;
 * LLCL_ERR_INVALID, LLCL_ERR_RANGE, LLCL_ERR_KEY: the sentence of llcl_last_error() says what is
 * wrong with `params`; LLCL_ERR_PEER_DEAD: the peer has died or has left; LLCL_ERR_STATE: the
 * context is being finalized; LLCL_ERR_NO_MEMORY, LLCL_ERR_SYSTEM: the peer's memory cannot be
 * mapped. The completion may report LLCL_ERR_PEER_DEAD, LLCL_ERR_KEY (the owner has freed the
 * region) or LLCL_ERR_CANCELED.
 * Any thread may call it, also inside a callback. Where it runs the completions: see the
 * conventions. It is the tiny on-the-fly send (AOTF) of the DIMMnet interfaces, as the Fagus
 * system uses it.
 */
llcl_status_t llcl_try_write_value_async(llcl_context_t *context,
                                         const llcl_write_value_params_t *params);

/**
 * Writes a value to a peer: like llcl_try_write_value_async, but tries until it is accepted, and
 * helps with progress meanwhile.
 *
 * `context` and `params`: as there. LLCL_OK or an error as there, never a "try again"; inside a
 * callback LLCL_ERR_STATE. Any thread may call it.
 */
llcl_status_t llcl_write_value_async(llcl_context_t *context,
                                     const llcl_write_value_params_t *params);

/**
 * Writes a value to a peer and waits for the end, helping with progress meanwhile and sleeping if
 * it takes long.
 *
 * `context` and `params`: as for llcl_try_write_value_async; the completions must be
 * llcl_no_completion(). LLCL_OK: done; else an error as there, or the one with which the operation
 * ended; inside a callback LLCL_ERR_STATE. Any thread may call it.
 */
llcl_status_t llcl_write_value(llcl_context_t *context,
                               const llcl_write_value_params_t *params);

/**
 * Writes a few bytes to a peer, if that is possible now.
 *
 * The bytes are copied during the call; no source region is needed.
 * `context`: a live context. `params`: read during the call only.
 * LLCL_OK: accepted; LLCL_RETRY_QUEUE_FULL, LLCL_RETRY_NO_TAG, LLCL_RETRY_BUSY,
 * LLCL_RETRY_CONNECTING: try again;
 * LLCL_ERR_INVALID, LLCL_ERR_RANGE, LLCL_ERR_KEY: the sentence of llcl_last_error() says what is
 * wrong with `params`; LLCL_ERR_PEER_DEAD: the peer has died or has left; LLCL_ERR_STATE: the
 * context is being finalized; LLCL_ERR_NO_MEMORY, LLCL_ERR_SYSTEM: the peer's memory cannot be
 * mapped. The completion may report LLCL_ERR_PEER_DEAD, LLCL_ERR_KEY (the owner has freed the
 * region) or LLCL_ERR_CANCELED.
 * Any thread may call it, also inside a callback. Where it runs the completions: see the
 * conventions. It is the block on-the-fly send (BOTF) of the DIMMnet interfaces, as the Fagus
 * system uses it.
 */
llcl_status_t llcl_try_write_small_async(llcl_context_t *context,
                                         const llcl_write_small_params_t *params);

/**
 * Writes a few bytes to a peer: like llcl_try_write_small_async, but tries until it is accepted,
 * and helps with progress meanwhile.
 *
 * `context` and `params`: as there. LLCL_OK or an error as there, never a "try again"; inside a
 * callback LLCL_ERR_STATE. Any thread may call it.
 */
llcl_status_t llcl_write_small_async(llcl_context_t *context,
                                     const llcl_write_small_params_t *params);

/**
 * Writes a few bytes to a peer and waits for the end, helping with progress meanwhile and sleeping
 * if it takes long.
 *
 * `context` and `params`: as for llcl_try_write_small_async; the completions must be
 * llcl_no_completion(). LLCL_OK: done; else an error as there, or the one with which the operation
 * ended; inside a callback LLCL_ERR_STATE. Any thread may call it.
 */
llcl_status_t llcl_write_small(llcl_context_t *context,
                               const llcl_write_small_params_t *params);

/*
 * 8. Atomics: on words of a peer. All changes of a word have one order, whichever rank makes them.
 */

/** int32_t */
#define LLCL_TYPE_I32 1u

/** uint32_t */
#define LLCL_TYPE_U32 2u

/** int64_t */
#define LLCL_TYPE_I64 3u

/** uint64_t */
#define LLCL_TYPE_U64 4u

/** float */
#define LLCL_TYPE_F32 5u

/** double */
#define LLCL_TYPE_F64 6u

/** Fetches the word. */
#define LLCL_OP_LOAD 1u

/** Sets the word to the operand. */
#define LLCL_OP_STORE 2u

/** Sets the word to the operand and fetches what it was; as STORE with a result. */
#define LLCL_OP_SWAP 3u

/** Sets the word to the operand if its bits equal those of `compare`. */
#define LLCL_OP_COMPARE_SWAP 4u

/** Adds; integers wrap around. */
#define LLCL_OP_ADD 5u

/** Subtracts; integers wrap around. */
#define LLCL_OP_SUB 6u

/** Bitwise and, of integers. */
#define LLCL_OP_AND 7u

/** Bitwise or, of integers. */
#define LLCL_OP_OR 8u

/** Bitwise exclusive or, of integers. */
#define LLCL_OP_XOR 9u

/** The smaller one; of a number and a NaN the number. */
#define LLCL_OP_MIN 10u

/** The larger one; of a number and a NaN the number. */
#define LLCL_OP_MAX 11u

/**
 * Any processor of the machine changes the word, by its atomic instructions; so may the program,
 * through pointers, with the atomics of C.
 */
#define LLCL_DOMAIN_PROCESSOR 1u

/**
 * Only the process that owns the word changes it, in the name of the others; so may the owner's
 * program with the atomics of C.
 */
#define LLCL_DOMAIN_OWNER 2u

/**
 * One atomic instruction of the calling processor: some 5 ns on a word that no other core uses.
 */
#define LLCL_COST_INSTRUCTION 1u

/**
 * A loop of the calling processor around a compare-and-swap, because it has no instruction for the
 * operation: as LLCL_COST_INSTRUCTION, and once more for each other change that comes between.
 */
#define LLCL_COST_LOOP 2u

/**
 * A request to the owner and its answer: some 0.3 us where a thread of the owner is awake, and the
 * time to wake one, 10 us and more, where none is.
 */
#define LLCL_COST_MESSAGES 3u

/** How an atomic operation would be executed. */
typedef struct llcl_atomic_info_t {
    /** Bytes of this struct, set by the caller before the call. */
    uint64_t struct_size;
    /** 1: the operation is offered for the type; 0: it makes no sense for it. */
    uint32_t supported;
    /** One of LLCL_DOMAIN_*; 0 where it is not supported. */
    uint32_t domain;
    /**
     * One of LLCL_COST_*; 0 where it is not supported. Beside LLCL_EXECUTION_OFFLOAD, which hands
     * everything to the progress thread first.
     */
    uint32_t cost;
    /** 0. */
    uint32_t reserved;
} llcl_atomic_info_t;

/** Its size, and else zeroes: `llcl_atomic_info_t it = LLCL_ATOMIC_INFO_INIT;`. */
#define LLCL_ATOMIC_INFO_INIT {sizeof(llcl_atomic_info_t), 0, 0, 0, 0}

/** An atomic operation. */
typedef struct llcl_atomic_params_t {
    /** The rank whose word it is. */
    uint32_t peer;
    /** LLCL_FLAG_*, or 0. */
    uint32_t flags;
    /** The word, aligned to its size. */
    llcl_remote_t target;
    /** One of LLCL_OP_LOAD to LLCL_OP_PROD. */
    uint32_t op;
    /**
     * One of LLCL_TYPE_I8 to LLCL_TYPE_I64, of the unsigned types beside them, LLCL_TYPE_F32 and
     * LLCL_TYPE_F64.
     */
    uint32_t type;
    /** The operand: its bits, in the low-order part. Ignored by LOAD. */
    uint64_t operand;
    /** What COMPARE_SWAP compares with, in the same form. Else ignored. */
    uint64_t compare;
    /**
     * Where the word's former value goes: 4 or 8 bytes of any memory of the caller, as the type
     * says, aligned, written before `on_complete` fires. NULL: it is not fetched (not with LOAD).
     */
    void *result;
    /** Fires when it has happened. */
    llcl_completion_t on_complete;
} llcl_atomic_params_t;

/** All zeroes: `llcl_atomic_params_t it = LLCL_ATOMIC_PARAMS_INIT;`. */
#define LLCL_ATOMIC_PARAMS_INIT {0, 0, LLCL_REMOTE_INIT, 0, 0, 0, 0, NULL, \
    LLCL_COMPLETION_INIT}

/**
 * How an atomic operation on a word would be executed.
 *
 * `context`: a live context. `peer`: whose word. `target`: the word. `op` and
 * `type`: as of llcl_atomic_params_t. `info`: the caller's struct with its struct_size set; filled.
 * LLCL_OK, also where the operation makes no sense for the type; LLCL_ERR_INVALID: NULL, or no
 * such peer, operation or type; LLCL_ERR_KEY, LLCL_ERR_RANGE: there is no such word;
 * LLCL_ERR_PEER_DEAD: the peer has died or has left; LLCL_ERR_STATE: the context is being
 * finalized;
 * LLCL_RETRY_CONNECTING: inside a callback, the peer was not contacted before.
 * Waits for the first contact with the peer, but for that. Any thread may call it.
 */
llcl_status_t llcl_atomic_query(llcl_context_t *context,
                                uint32_t peer,
                                llcl_remote_t target,
                                uint32_t op,
                                uint32_t type,
                                llcl_atomic_info_t *info);

/**
 * Changes or fetches a word of a peer atomically, if that is possible now.
 *
 * The change is an acquire and a release. The result's place must stay valid until `on_complete`.
 * `context`: a live context. `params`: read during the call only.
 * LLCL_OK: accepted; LLCL_RETRY_QUEUE_FULL, LLCL_RETRY_NO_TAG, LLCL_RETRY_BUSY,
 * LLCL_RETRY_CONNECTING: try again;
 * LLCL_ERR_INVALID, LLCL_ERR_RANGE, LLCL_ERR_KEY: the sentence of llcl_last_error() says what is
 * wrong with `params`; LLCL_ERR_PEER_DEAD: the peer has died or has left; LLCL_ERR_STATE: the
 * context is being finalized; LLCL_ERR_NO_MEMORY, LLCL_ERR_SYSTEM: the peer's memory cannot be
 * mapped.
 * LLCL_ERR_UNSUPPORTED: the operation makes no sense for the type.
 * The completion may report LLCL_ERR_PEER_DEAD, LLCL_ERR_KEY (the owner has freed the region) or
 * LLCL_ERR_CANCELED.
 * Any thread may call it, also inside a callback. Where it runs the completions: see the
 * conventions. The reasons to have them, and what they cost beside other traffic, are those of
 * Akimoto and others' evaluation of the InfiniBand atomics; unlike there, local and remote changes
 * share one domain.
 */
llcl_status_t llcl_try_atomic_async(llcl_context_t *context,
                                    const llcl_atomic_params_t *params);

/**
 * Changes or fetches a word of a peer atomically: like llcl_try_atomic_async, but tries until it
 * is accepted, and helps with progress meanwhile.
 *
 * `context` and `params`: as there. LLCL_OK or an error as there, never a "try again"; inside a
 * callback LLCL_ERR_STATE. Any thread may call it.
 */
llcl_status_t llcl_atomic_async(llcl_context_t *context,
                                const llcl_atomic_params_t *params);

/**
 * Changes or fetches a word of a peer atomically and waits for the end, helping with progress
 * meanwhile and sleeping if it takes long.
 *
 * `context` and `params`: as for llcl_try_atomic_async; the completions must be
 * llcl_no_completion(). LLCL_OK: done; else an error as there, or the one with which the operation
 * ended; inside a callback LLCL_ERR_STATE. Any thread may call it.
 */
llcl_status_t llcl_atomic(llcl_context_t *context,
                          const llcl_atomic_params_t *params);

/*
 * 9. Atomics on 64-bit words, by names of their own: the two that runtimes are built from.
 */

/** A fetch-add on a uint64_t. */
typedef struct llcl_fetch_add_params_t {
    /** The rank whose word it is. */
    uint32_t peer;
    /** LLCL_FLAG_*, or 0. */
    uint32_t flags;
    /** The word, aligned to 8 bytes. */
    llcl_remote_t target;
    /** What is added, modulo 2 to the 64th. */
    uint64_t operand;
    /** Where the former value goes, written before `on_complete` fires; may be NULL. */
    uint64_t *result;
    /** Fires when it has happened. */
    llcl_completion_t on_complete;
} llcl_fetch_add_params_t;

/** All zeroes: `llcl_fetch_add_params_t it = LLCL_FETCH_ADD_PARAMS_INIT;`. */
#define LLCL_FETCH_ADD_PARAMS_INIT {0, 0, LLCL_REMOTE_INIT, 0, NULL, LLCL_COMPLETION_INIT}

/** A compare-and-swap on a uint64_t. */
typedef struct llcl_compare_swap_params_t {
    /** The rank whose word it is. */
    uint32_t peer;
    /** LLCL_FLAG_*, or 0. */
    uint32_t flags;
    /** The word, aligned to 8 bytes. */
    llcl_remote_t target;
    /** What the word must be for the exchange to happen. */
    uint64_t compare;
    /** What it then becomes. */
    uint64_t desired;
    /**
     * Where the former value goes, written before `on_complete` fires; may be NULL. The exchange
     * happened if it equals `compare`.
     */
    uint64_t *result;
    /** Fires when it has happened, or not. */
    llcl_completion_t on_complete;
} llcl_compare_swap_params_t;

/** All zeroes: `llcl_compare_swap_params_t it = LLCL_COMPARE_SWAP_PARAMS_INIT;`. */
#define LLCL_COMPARE_SWAP_PARAMS_INIT {0, 0, LLCL_REMOTE_INIT, 0, 0, NULL, \
    LLCL_COMPLETION_INIT}

/**
 * Adds to a uint64_t of a peer atomically, if that is possible now.
 *
 * The change is an acquire and a release. The result's place must stay valid until `on_complete`.
 * `context`: a live context. `params`: read during the call only.
 * LLCL_OK: accepted; LLCL_RETRY_QUEUE_FULL, LLCL_RETRY_NO_TAG, LLCL_RETRY_BUSY,
 * LLCL_RETRY_CONNECTING: try again;
 * LLCL_ERR_INVALID, LLCL_ERR_RANGE, LLCL_ERR_KEY: the sentence of llcl_last_error() says what is
 * wrong with `params`; LLCL_ERR_PEER_DEAD: the peer has died or has left; LLCL_ERR_STATE: the
 * context is being finalized; LLCL_ERR_NO_MEMORY, LLCL_ERR_SYSTEM: the peer's memory cannot be
 * mapped. The completion may report LLCL_ERR_PEER_DEAD, LLCL_ERR_KEY (the owner has freed the
 * region) or LLCL_ERR_CANCELED.
 * Any thread may call it, also inside a callback. Where it runs the completions: see the
 * conventions. The reasons to have them, and what they cost beside other traffic, are those of
 * Akimoto and others' evaluation of the InfiniBand atomics; unlike there, local and remote changes
 * share one domain.
 */
llcl_status_t llcl_try_fetch_add_async(llcl_context_t *context,
                                       const llcl_fetch_add_params_t *params);

/**
 * Adds to a uint64_t of a peer atomically: like llcl_try_fetch_add_async, but tries until it is
 * accepted, and helps with progress meanwhile.
 *
 * `context` and `params`: as there. LLCL_OK or an error as there, never a "try again"; inside a
 * callback LLCL_ERR_STATE. Any thread may call it.
 */
llcl_status_t llcl_fetch_add_async(llcl_context_t *context,
                                   const llcl_fetch_add_params_t *params);

/**
 * Adds to a uint64_t of a peer atomically and waits for the end, helping with progress meanwhile
 * and sleeping if it takes long.
 *
 * `context` and `params`: as for llcl_try_fetch_add_async; the completions must be
 * llcl_no_completion(). LLCL_OK: done; else an error as there, or the one with which the operation
 * ended; inside a callback LLCL_ERR_STATE. Any thread may call it.
 */
llcl_status_t llcl_fetch_add(llcl_context_t *context,
                             const llcl_fetch_add_params_t *params);

/**
 * Exchanges a uint64_t of a peer if it has an expected value, atomically, if that is possible now.
 *
 * The change is an acquire and a release. The result's place must stay valid until `on_complete`.
 * `context`: a live context. `params`: read during the call only.
 * LLCL_OK: accepted; LLCL_RETRY_QUEUE_FULL, LLCL_RETRY_NO_TAG, LLCL_RETRY_BUSY,
 * LLCL_RETRY_CONNECTING: try again;
 * LLCL_ERR_INVALID, LLCL_ERR_RANGE, LLCL_ERR_KEY: the sentence of llcl_last_error() says what is
 * wrong with `params`; LLCL_ERR_PEER_DEAD: the peer has died or has left; LLCL_ERR_STATE: the
 * context is being finalized; LLCL_ERR_NO_MEMORY, LLCL_ERR_SYSTEM: the peer's memory cannot be
 * mapped. The completion may report LLCL_ERR_PEER_DEAD, LLCL_ERR_KEY (the owner has freed the
 * region) or LLCL_ERR_CANCELED.
 * Any thread may call it, also inside a callback. Where it runs the completions: see the
 * conventions. The reasons to have them, and what they cost beside other traffic, are those of
 * Akimoto and others' evaluation of the InfiniBand atomics; unlike there, local and remote changes
 * share one domain.
 */
llcl_status_t llcl_try_compare_swap_async(llcl_context_t *context,
                                          const llcl_compare_swap_params_t *params);

/**
 * Exchanges a uint64_t of a peer if it has an expected value, atomically: like
 * llcl_try_compare_swap_async, but tries until it is accepted, and helps with progress meanwhile.
 *
 * `context` and `params`: as there. LLCL_OK or an error as there, never a "try again"; inside a
 * callback LLCL_ERR_STATE. Any thread may call it.
 */
llcl_status_t llcl_compare_swap_async(llcl_context_t *context,
                                      const llcl_compare_swap_params_t *params);

/**
 * Exchanges a uint64_t of a peer if it has an expected value, atomically and waits for the end,
 * helping with progress meanwhile and sleeping if it takes long.
 *
 * `context` and `params`: as for llcl_try_compare_swap_async; the completions must be
 * llcl_no_completion(). LLCL_OK: done; else an error as there, or the one with which the operation
 * ended; inside a callback LLCL_ERR_STATE. Any thread may call it.
 */
llcl_status_t llcl_compare_swap(llcl_context_t *context,
                                const llcl_compare_swap_params_t *params);

/*
 * 10. Waiting
 */

/** Of llcl_flush_within: every peer. */
#define LLCL_ALL_PEERS 4294967295u

/** Of llcl_awaited_t::flags: only `peer` can change the word. */
#define LLCL_WAIT_FROM_PEER 1u

/** Of llcl_wait_any and llcl_wait_fd: handlers that have run end the wait as well. */
#define LLCL_WAIT_MESSAGES 1u

/** A word that is waited for, beside others. */
typedef struct llcl_awaited_t {
    /** Any uint64_t of this process, aligned to 8 bytes; changed by atomic stores only. */
    const uint64_t *word;
    /** The value to be reached, compared unsigned. */
    uint64_t at_least;
    /** With LLCL_WAIT_FROM_PEER: the rank that is to change the word. Else ignored. */
    uint32_t peer;
    /** 0 or LLCL_WAIT_FROM_PEER. */
    uint32_t flags;
} llcl_awaited_t;

/** All zeroes: `llcl_awaited_t it = LLCL_AWAITED_INIT;`. */
#define LLCL_AWAITED_INIT {NULL, 0, 0, 0}

/**
 * Waits until the operations of this context towards one peer that were accepted before have
 * ended.
 *
 * `context`: a live context. `peer`: a rank below llcl_size.
 * LLCL_OK: their effects can be seen at the peer, except of those whose completions have told a
 * failure;
 * LLCL_ERR_PEER_DEAD: the peer has died or has left; LLCL_ERR_INVALID: NULL, or no such rank;
 * LLCL_ERR_STATE: inside a callback, or the context is being finalized.
 * Any other status is that of the first operation with this peer that was accepted without a
 * completion, has failed since the last flush, and of which nobody was told; llcl_last_error()
 * says which operation that was, and how many failed after it. Everything has ended then, too, and
 * the next flush does not tell it again. Any thread may call it; it covers what any thread has
 * posted before. Helps with progress meanwhile, and sleeps if it takes long.
 */
llcl_status_t llcl_flush(llcl_context_t *context,
                         uint32_t peer);

/**
 * Waits until the operations of this context that were accepted before have ended, whatever the
 * peer.
 *
 * `context`: a live context.
 * LLCL_OK: all have ended; LLCL_ERR_INVALID: NULL; LLCL_ERR_STATE: inside a callback, or the
 * context is being finalized. Any other status, LLCL_ERR_PEER_DEAD included, is that of the first
 * operation without a completion that has failed, whatever the peer, as with llcl_flush.
 * Any thread may call it; it covers what any thread has posted before. Helps with progress
 * meanwhile, and sleeps if it takes long.
 */
llcl_status_t llcl_flush_all(llcl_context_t *context);

/**
 * Waits until a word has reached a value: helping with progress for LLCL_SPIN_US, then asleep.
 *
 * Whatever changes the word through this library wakes the sleeper: a completion, a callback, a
 * handler, any operation of a peer. Two things do not: a store through a pointer, after which
 * llcl_wake is to be called; and what a read or a fetch brings, whose completion is to be waited
 * for instead. Atomics, signals, values and writes of 8 aligned bytes also tell that what was done
 * before is there; a word inside a larger write ends the wait when its own bytes are there; the
 * bytes around it may come later.
 * `context`: a live context. `word`: any uint64_t of this process, aligned to 8 bytes; changed by
 * atomic stores only while this waits. `at_least`: the value to be reached, compared unsigned (so
 * a STORE or ADD word that reports a failure ends any wait). `timeout_ns`: nanoseconds; negative:
 * for ever; 0: only looks.
 * LLCL_OK: reached, and what was done before the word was changed is seen; LLCL_ERR_TIMEOUT: not
 * reached in time; LLCL_ERR_PEER_DEAD: not reached, and a death has left no rank that could change
 * it: all other ranks are dead, or all that have ever used the region in which the word lies (a
 * living rank that has not touched the region yet does not count: name it by llcl_wait_word_from),
 * what they had sent is handled, and the operations of this rank have ended that were under way
 * (one with a living peer that is slow delays this answer, since its completion may change the
 * word); LLCL_ERR_INVALID: NULL or misaligned; LLCL_ERR_STATE: inside a callback, or the context
 * is being finalized, and the value has not been reached.
 * Any number of threads may wait, for the same word or others. A sleeping thread is looked after
 * by storing threads: after its first second it runs no more until it is woken, and stores to
 * other words cost what they cost without it. Up to 255 words of a rank can be slept on in this
 * way; the threads of further ones are woken by every store into the rank's memory. A word that
 * lies in several regions is looked at each millisecond.
 */
llcl_status_t llcl_wait_word(llcl_context_t *context,
                             const uint64_t *word,
                             uint64_t at_least,
                             int64_t timeout_ns);

/**
 * Waits until a word has reached a value, but not longer than the one rank lives that is to change
 * it.
 *
 * As llcl_wait_word in everything but deaths: only that of `peer` counts, and it counts whether or
 * not others live. Prefer it where one peer is waited for: a word whose writer dies is told of, in
 * a world of any size.
 * `context`, `word`, `at_least`, `timeout_ns`: as of llcl_wait_word. `peer`: a rank below
 * llcl_size; one's own never dies.
 * LLCL_OK, also where the peer has died after it has brought the value; LLCL_ERR_PEER_DEAD: not
 * reached, the peer has died or has left, and this rank's operations have ended as there;
 * LLCL_ERR_TIMEOUT, LLCL_ERR_STATE: as of llcl_wait_word; LLCL_ERR_INVALID: NULL, misaligned, or
 * no such rank.
 * Any number of threads may wait, as for llcl_wait_word.
 * After GASPI's gaspi_notify_waitsome with its health vector: a thread that waits for a peer names
 * it.
 */
llcl_status_t llcl_wait_word_from(llcl_context_t *context,
                                  const uint64_t *word,
                                  uint64_t at_least,
                                  int64_t timeout_ns,
                                  uint32_t peer);

/**
 * Waits until the operations of this context that were accepted before have ended, but not for
 * longer than a time.
 *
 * `context`: a live context. `peer`: a rank below llcl_size, or LLCL_ALL_PEERS. `timeout_ns`:
 * nanoseconds; negative: for ever; 0: only looks.
 * LLCL_OK, and every other status: as of llcl_flush and llcl_flush_all; LLCL_ERR_TIMEOUT: not all
 * have ended in time. Nothing has changed then: they go on, and their completions fire as ever.
 * Any thread may call it. Helps with progress meanwhile, and sleeps if it takes long.
 * After gaspi_wait of GASPI, each of whose calls takes a time.
 */
llcl_status_t llcl_flush_within(llcl_context_t *context,
                                uint32_t peer,
                                int64_t timeout_ns);

/**
 * Waits until one of several words has reached its value, or until handlers have run: helping with
 * progress for LLCL_SPIN_US, then asleep.
 *
 * What wakes the sleeper is that of llcl_wait_word, for each of the words.
 * `context`: a live context. `words`: `count` words, read during the call only; NULL if `count` is
 * 0. `count`: how many; with more than some 250 in all threads' waits together every store into
 * the rank's memory wakes the thread. `flags`: 0 or LLCL_WAIT_MESSAGES: the wait ends also when
 * handlers have run since the calling thread's last llcl_am_wait or the like, on whatever thread.
 * `timeout_ns`: nanoseconds; negative: for ever; 0: only looks. `which`: where the number of the
 * word goes, the first in the list that has its value; `count` where none has and handlers have
 * run. May be NULL.
 * LLCL_OK: handlers have run, or a word has reached its value: the caller then sees what was done
 * before the word was changed; LLCL_ERR_TIMEOUT: neither in time; LLCL_ERR_PEER_DEAD: no word has
 * its value, and nobody is left to change one of them, as of llcl_wait_word and, with
 * LLCL_WAIT_FROM_PEER, llcl_wait_word_from; leave it out to wait for the others;
 * LLCL_ERR_INVALID: NULL, a misaligned word, unknown flags, no such rank, or neither words nor
 * LLCL_WAIT_MESSAGES; LLCL_ERR_STATE: inside a callback, or the context is being finalized.
 * Any number of threads may wait.
 * After MPI_Waitany and GASPI's gaspi_notify_waitsome.
 */
llcl_status_t llcl_wait_any(llcl_context_t *context,
                            const llcl_awaited_t *words,
                            uint32_t count,
                            uint32_t flags,
                            int64_t timeout_ns,
                            uint32_t *which);

/**
 * Arms a descriptor, for programs whose event loop waits by epoll, poll or select: it becomes
 * readable when llcl_wait_any with these parameters would return.
 *
 * It is armed for once: before each wait of the event loop arm it again, which also makes it
 * unreadable. If what it is armed for has happened before, it becomes readable at once, so nothing
 * is missed between a look and the arming. The way to use it: arm; wait in the event loop; where
 * it is readable, call llcl_wait_any with the same words and the time 0, and act; begin again.
 * Where handlers run only in polls (LLCL_AM_HANDLERS_POLLED), LLCL_WAIT_MESSAGES makes it readable
 * when a message waits: llcl_am_poll then runs its handler. A death after which a word can never
 * have its value makes it readable, too.
 * The first call makes the descriptor, an eventfd, and starts a thread that sleeps on the words;
 * so an event costs a wake-up more than in llcl_wait_any.
 * `context`: a live context. `words`: as of llcl_wait_any, but they stay valid until the
 * descriptor was readable or the next arming has returned. `count`, `flags`: as there; `count` 0
 * and `flags` 0: disarms. `descriptor`: where its number goes, the same in all calls. It is the
 * library's: wait for it to be readable, and neither write to it nor close it; it ends with the
 * context.
 * LLCL_OK; LLCL_ERR_INVALID: as of llcl_wait_any; LLCL_ERR_STATE: inside a callback, or the
 * context is being finalized; LLCL_ERR_SYSTEM, LLCL_ERR_NO_MEMORY: the machine refuses a
 * descriptor or a thread. Any thread may call it; a context has one arming, and the last call
 * counts.
 * After ibv_req_notify_cq of verbs and ucp_worker_arm of UCX.
 */
llcl_status_t llcl_wait_fd(llcl_context_t *context,
                           const llcl_awaited_t *words,
                           uint32_t count,
                           uint32_t flags,
                           int32_t *descriptor);

/**
 * Wakes the threads of a rank that sleep in the library, so that they look again at what they wait
 * for.
 *
 * To be called after a store through a pointer (one of llcl_remote_pointer, or into memory of this
 * process itself) into a word that a thread may wait for by llcl_wait_word: nothing else tells it.
 * `context`: a live context. `peer`: a rank below llcl_size, this one included: whose threads.
 * LLCL_OK: woken, or nobody sleeps, or the rank was never talked to; LLCL_ERR_INVALID: NULL, or no
 * such rank; LLCL_ERR_STATE: the context is being finalized.
 * Any thread may call it, also inside a callback or a handler. Costs two loads where nobody
 * sleeps, else a system call for each word that is slept on.
 * After FUTEX_WAKE of Linux, and gaspi_notify's sleepers, which are woken by notifications only.
 */
llcl_status_t llcl_wake(llcl_context_t *context,
                        uint32_t peer);

/**
 * Helps with progress for one round. Never needed: whatever must advance does so by itself.
 *
 * `context`: a live context.
 * LLCL_OK, whether there was anything to do or not; in offload mode nothing is done;
 * LLCL_ERR_INVALID: NULL; LLCL_ERR_STATE: inside a callback, or the context is being finalized.
 * Any thread may call it; callbacks may run on it.
 */
llcl_status_t llcl_progress(llcl_context_t *context);

/*
 * 11. Active messages: a function at the peer is called with a few bytes, and may answer.
 *
 * A receiver owns a fixed number of message slots, whatever the number of senders; a sender takes
 * a slot by an atomic operation on a counter before it sends, and is told LLCL_RETRY_NO_CREDIT
 * while there is none. docs/flow-control.md has the protocol and its policies.
 *
 * Messages of one sender to one peer may be handled in any order.
 */

/** Handlers have numbers below this one. */
#define LLCL_AM_IDS 256u

/** Most bytes of a header. */
#define LLCL_AM_HEADER 64u

/**
 * The payload travels with the message: up to llcl_peer_info_t::am_payload bytes, or none. Those
 * of more than its am_medium bytes have fewer slots, LLCL_AM_CHUNKS.
 */
#define LLCL_AM_MEDIUM 0u

/** The payload is written to an address of the peer before the handler runs. */
#define LLCL_AM_LONG 1u

/** The payload, of any size, stays where it is; the receiver reads it when it wants to. */
#define LLCL_AM_BULK 2u

/** A message, as its handler sees it. */
typedef struct llcl_am_t llcl_am_t;

/**
 * A handler. `message` is valid until the handler returns; see llcl_am_retain. It may post
 * requests by the try functions, messages included, and must not block.
 */
typedef void (*llcl_am_handler_fn)(llcl_am_t *message, void *data);

/** A message to be sent. Begin with LLCL_AM_PARAMS_INIT, and set what is wanted. */
typedef struct llcl_am_params_t {
    /** The rank to send to; it may be the calling one. */
    uint32_t peer;
    /** 0, or bits of LLCL_FLAG_DEFER and LLCL_FLAG_PARK. */
    uint32_t flags;
    /** The number of the handler at the peer. */
    uint32_t id;
    /** One of LLCL_AM_MEDIUM, LLCL_AM_LONG, LLCL_AM_BULK. */
    uint32_t kind;
    /** A number of the caller's, which the handler finds in llcl_am_view_t; any. */
    uint16_t tag;
    /** Bytes for the handler, copied during the call. NULL if there are none. */
    const void *header;
    /** How many, at most LLCL_AM_HEADER. */
    size_t header_size;
    /**
     * MEDIUM: the payload, any memory of the caller; NULL if there is none, which the handler can
     * tell from one of 0 bytes. Else NULL.
     */
    const void *payload;
    /** Bytes of the payload, of any kind. */
    size_t payload_size;
    /** LONG and BULK: the payload, in a region of the caller. */
    llcl_local_t source;
    /** LONG: where it is written, in a region of the peer. */
    llcl_remote_t destination;
    /** Where the bytes of the reply go; NULL: none are wanted. */
    void *reply;
    /** How many bytes there is place for. */
    size_t reply_capacity;
    /** Where the size of the reply goes before `on_complete` fires; may be NULL. */
    size_t *reply_size;
    /**
     * Fires when payload and source may be reused; of a BULK message when the peer has done with
     * it.
     */
    llcl_completion_t on_local;
    /**
     * Fires when the handler has returned; if it has retained the message, when it has been
     * answered or released. The reply is there then.
     */
    llcl_completion_t on_complete;
} llcl_am_params_t;

/** All zeroes: `llcl_am_params_t it = LLCL_AM_PARAMS_INIT;`. */
#define LLCL_AM_PARAMS_INIT {0, 0, 0, 0, 0, NULL, 0, NULL, 0, LLCL_LOCAL_INIT, \
    LLCL_REMOTE_INIT, NULL, 0, NULL, LLCL_COMPLETION_INIT, LLCL_COMPLETION_INIT}

/**
 * Sets, replaces or removes a handler.
 *
 * `context`: a live context. `id`: below LLCL_AM_IDS. `handler`: the function; NULL: removes it,
 * and messages for this number end with LLCL_ERR_NO_HANDLER at their senders. `data`: its second
 * argument, may be NULL; stays the caller's.
 * LLCL_OK: from now on the new handler runs, and no call of the old one is under way, except the
 * one in which this is called; LLCL_RETRY_BUSY: inside a callback or handler, while another thread
 * runs a handler of this context: nothing has changed; LLCL_ERR_INVALID: NULL or no such number;
 * LLCL_ERR_STATE: the context is being finalized; LLCL_ERR_SYSTEM: the thread that runs handlers,
 * which the first call starts, cannot be started.
 * Any thread may call it. Handlers run where the configuration's am_handlers says,
 * LLCL_AM_HANDLERS_*: on a thread that waits in this library (not in offload mode) or on one of
 * the library's own, one at a time in a context or several at once; or only on threads of the
 * program that poll or wait. llcl_progress runs handlers, too, in every mode but offload (there
 * only polled ones).
 */
llcl_status_t llcl_am_register(llcl_context_t *context,
                               uint32_t id,
                               llcl_am_handler_fn handler,
                               void *data);

/**
 * Sends an active message, if that is possible now.
 *
 * The header is copied; the payload is the caller's again when `on_local` fires, which in auto and
 * direct mode is before the call returns, except for BULK.
 * `context`: a live context. `params`: read during the call only.
 * LLCL_OK: accepted; the handler will run once, unless the peer dies or leaves;
 * LLCL_RETRY_NO_CREDIT: all slots of the peer hold messages; LLCL_RETRY_QUEUE_FULL: the command
 * queue is full (offload mode, or LLCL_FLAG_DEFER); LLCL_RETRY_NO_TAG: as many messages wait for
 * their end as LLCL_AM_REQUESTS allows; LLCL_RETRY_BUSY: another thread uses what is needed
 * (direct mode);
 * LLCL_RETRY_CONNECTING: the first contact with the peer is under way, or with the rank that keeps
 * the counter by which this one sends to it. On a "try again" nothing has happened, but that the
 * destination of a LONG message may have been written. LLCL_ERR_INVALID, LLCL_ERR_RANGE,
 * LLCL_ERR_KEY: llcl_last_error() says what is wrong with `params`;
 * LLCL_ERR_NO_HANDLER: the peer has no handler of this number; LLCL_ERR_PEER_DEAD: the peer has
 * died or has left; LLCL_ERR_STATE: the context is being finalized; LLCL_ERR_NO_MEMORY,
 * LLCL_ERR_SYSTEM: the peer's memory cannot be mapped.
 * The completion may report LLCL_ERR_NO_HANDLER (removed meanwhile, or a network leads to the peer), LLCL_ERR_RANGE (the reply has
 * more bytes than there is place for; none were copied), LLCL_ERR_KEY, LLCL_ERR_PEER_DEAD or
 * LLCL_ERR_CANCELED.
 * Any thread may call it, also inside a callback or a handler. Where the completions run: see the
 * conventions.
 * The slots and their credits follow Sumimoto and others' design of memory-saving communication by
 * remote atomics; registration and handlers are those of von Eicken's active messages.
 */
llcl_status_t llcl_try_am_async(llcl_context_t *context,
                                const llcl_am_params_t *params);

/**
 * Sends an active message: like llcl_try_am_async, but tries until it is accepted, meanwhile
 * running handlers and helping with progress, and sleeping if it takes long.
 *
 * `context` and `params`: as there. LLCL_OK or an error as there, never a "try again"; inside a
 * callback or handler LLCL_ERR_STATE. Any thread may call it.
 */
llcl_status_t llcl_am_async(llcl_context_t *context, const llcl_am_params_t *params);

/**
 * Sends an active message and waits until its handler has run and its reply is here: a remote
 * procedure call.
 *
 * `context` and `params`: as for llcl_try_am_async; the completions must be llcl_no_completion().
 * LLCL_OK: done; else an error as there, or the one with which the message ended; inside a
 * callback or handler LLCL_ERR_STATE. Any thread may call it.
 */
llcl_status_t llcl_am(llcl_context_t *context,
                      const llcl_am_params_t *params);

/**
 * Sends an active message and waits for its end as llcl_am does, but not for longer than a time.
 *
 * `context` and `params`: as for llcl_am; of the flags only LLCL_FLAG_DEFER counts. `timeout_ns`:
 * nanoseconds; negative: for ever; 0: tries once.
 * LLCL_OK, and every other status: as of llcl_am; LLCL_ERR_TIMEOUT: the end has not come in time.
 * The message may have been sent: its handler may have run, or run later. `reply` and `reply_size`
 * are then not written any more; payload and source stay in use until a llcl_flush with this peer
 * has answered. Any thread may call it.
 */
llcl_status_t llcl_am_within(llcl_context_t *context,
                             const llcl_am_params_t *params,
                             int64_t timeout_ns);

/**
 * Runs the handlers of messages that have come, on the calling thread, whatever am_handlers says.
 *
 * A poll that finds nothing takes some nanoseconds; now and then one of them offers its core to
 * other threads. Of several threads that poll at the same time one runs handlers, unless they are
 * parallel.
 * `context`: a live context. `most`: messages to be taken at most, from 1 on; more than 64 count
 * as 64.
 * `handled`: where their number goes, those without a handler included; may be NULL. It is 0 where
 * nothing has come or another thread is running a handler.
 * LLCL_OK, whether there was anything or not; LLCL_ERR_INVALID: `context` is NULL, or `most` is 0;
 * LLCL_ERR_STATE: inside a callback or handler, or the context is being finalized.
 * Any thread may call it; handlers run on it, and callbacks (not in offload mode).
 * It is GASNet's gasnet_AMPoll with a bound.
 */
llcl_status_t llcl_am_poll(llcl_context_t *context,
                           uint32_t most,
                           uint32_t *handled);

/**
 * Waits until a handler of this context has run: polling at first, then asleep until a message
 * comes.
 *
 * To wait for something that handlers do, look at it, and while it is not there call this and look
 * again: handlers that have run since the calling thread's last llcl_am_wait, or llcl_am_poll that
 * took something, on whatever thread, end the wait at once. Where the handlers set a word,
 * llcl_wait_word does the same in one call.
 * `context`: a live context. `timeout_ns`: nanoseconds; negative: for ever; 0: polls once.
 * LLCL_OK: handlers have run, or may have; LLCL_ERR_TIMEOUT: none within the time;
 * LLCL_ERR_INVALID: NULL;
 * LLCL_ERR_STATE: inside a callback or handler, or the context is being finalized.
 * Any thread may call it; handlers run on it as am_handlers says, and callbacks (not in offload
 * mode).
 */
llcl_status_t llcl_am_wait(llcl_context_t *context,
                           int64_t timeout_ns);

/*
 * 12. Messages at their receiver: what a handler reads, and how it answers.
 */

/**
 * A bit of llcl_am_view_t::flags: the sender waits for the end of the message, or for a reply.
 */
#define LLCL_AM_WANTS_REPLY 1u

/** A bit of llcl_am_view_t::flags: the message is a response, from llcl_am_respond. */
#define LLCL_AM_RESPONSE 2u

/** What a message brings. */
typedef struct llcl_am_view_t {
    /** The rank that sent it. */
    uint32_t source;
    /** The number of its handler. */
    uint32_t id;
    /** One of LLCL_AM_MEDIUM, LLCL_AM_LONG, LLCL_AM_BULK. */
    uint32_t kind;
    /** The sender's own number. */
    uint16_t tag;
    /** LLCL_AM_WANTS_REPLY, LLCL_AM_RESPONSE. */
    uint16_t flags;
    /** The bytes of its header, aligned to 8. */
    const void *header;
    /** How many. */
    size_t header_size;
    /**
     * MEDIUM: the payload; NULL: there is none, other than one of 0 bytes. LONG: where the sender
     * has written it. BULK: NULL.
     */
    const void *payload;
    /** Bytes of the payload, of any kind. */
    size_t payload_size;
    /**
     * BULK: where the payload lies at the sender, to be read by llcl_try_read_async: in the
     * handler, or later if the message is retained. The sender keeps it until the message is
     * answered or released. Else 0.
     */
    llcl_remote_t address;
} llcl_am_view_t;

/** All zeroes: `llcl_am_view_t it = LLCL_AM_VIEW_INIT;`. */
#define LLCL_AM_VIEW_INIT {0, 0, 0, 0, 0, NULL, 0, NULL, 0, LLCL_REMOTE_INIT}

/**
 * Tells all of a message in one call.
 *
 * `message`: as the handler got it, or retained; what the view points to is valid as long as the
 * message, but for the payload of LONG, which is the program's own memory. `view`: the caller's
 * struct, filled.
 * LLCL_OK; LLCL_ERR_INVALID: NULL. Any thread may call it.
 * It is the token of GASNet-EX, gex_Token_Info, with the message's arguments.
 */
llcl_status_t llcl_am_view(const llcl_am_t *message,
                           llcl_am_view_t *view);

/**
 * Answers a message by one that runs a handler at its sender: once, in the message's handler,
 * which may not answer otherwise as well. Where the sender waits for the end of its message, that
 * comes when the response's handler has returned.
 *
 * Never waits: a response without credit waits in this library while the handler returns. A rank
 * with 256 of those handles no further message until one of them is sent.
 * `message`: as the handler got it, neither retained nor a response. `params`: id, tag, header and
 * payload, which are copied during the call, kind LLCL_AM_MEDIUM, and nothing else: peer is not
 * looked at, the rest is 0.
 * LLCL_OK: the handler will run once, unless the sender dies or leaves; LLCL_ERR_STATE: the
 * message has been answered or retained before, or is a response; LLCL_ERR_NO_HANDLER: the sender
 * has no handler of this number, as far as it has been contacted and shares memory with this rank;
 * LLCL_ERR_INVALID or LLCL_ERR_RANGE: llcl_last_error() says what is wrong with `params`. After an
 * error nothing has happened, and the message may be answered. A response for which there is no
 * handler when it comes is dropped; the message then ends with LLCL_ERR_NO_HANDLER.
 * To be called by the handler's thread. A response's handler sends nothing, by no means:
 * LLCL_ERR_STATE. It is GASNet's gasnet_AMReply.
 */
llcl_status_t llcl_am_respond(llcl_am_t *message,
                              const llcl_am_params_t *params);

/**
 * Answers a message: its bytes are copied to the sender, whose `on_complete` fires.
 *
 * Never waits and needs no credit: the sender has set a place aside.
 * `message`: as the handler got it, or retained. `data`: the bytes, the caller's again when this
 * returns; NULL if there are none. `size`: how many, at most llcl_capabilities_t::am_medium.
 * LLCL_OK, also if the sender did not ask for an answer or is dead; LLCL_ERR_STATE: it has been
 * answered before; LLCL_ERR_INVALID: NULL; LLCL_ERR_RANGE: more bytes than fit. Any thread may
 * call it, in the handler, or later if the message is retained.
 */
llcl_status_t llcl_am_reply(llcl_am_t *message,
                            const void *data,
                            size_t size);

/**
 * Keeps a message beyond its handler: makes a copy, which takes over the right to answer.
 *
 * `message`: as the handler got it. Returns the copy, to be ended by llcl_am_release; NULL if
 * `message` is NULL, was answered or retained before, or as many messages are retained as
 * LLCL_AM_RETAINED allows. Its slot is free again when the handler returns, so that keeping
 * messages takes no credit from the senders. To be called in the handler, by its thread.
 */
llcl_am_t *llcl_am_retain(llcl_am_t *message);

/**
 * Ends a retained message. If it has not been answered, an empty answer is sent.
 *
 * `message`: from llcl_am_retain; ended by this call. To be ended before llcl_finalize of the
 * context.
 * LLCL_OK; LLCL_ERR_INVALID: NULL. Any thread may call it.
 */
llcl_status_t llcl_am_release(llcl_am_t *message);

/*
 * 13. Teams: which ranks take part in a collective, and in what order.
 */

/** The colour of ranks that go into no team. */
#define LLCL_TEAM_NONE 4294967295u

/** Some ranks of the world, numbered from 0 on. Ends by llcl_team_free or with its context. */
typedef struct llcl_team_t llcl_team_t;

/**
 * The team of all ranks, numbered as in the world.
 *
 * Local: no other rank is contacted and nobody is waited for. Ranks meet when they first use the
 * team, each with log2 n others.
 * `context`: a live context. `team`: where the team goes, the same at each call; it belongs to the
 * context, and freeing it is allowed and does nothing.
 * LLCL_OK; LLCL_ERR_INVALID: NULL; LLCL_ERR_UNSUPPORTED: the world has more than 4,095 ranks;
 * LLCL_ERR_NO_MEMORY: no room for the team's board (16 KiB, with more than 512 ranks 32 bytes for
 * each), or no region left; LLCL_ERR_STATE: inside a callback, or the context is being finalized.
 * Any thread may call it.
 */
llcl_status_t llcl_team_world(llcl_context_t *context,
                              llcl_team_t **team);

/**
 * Splits a team: ranks that give the same colour make a new one. Collective over `team`.
 *
 * `team`: a live team. `colour`: any number, or LLCL_TEAM_NONE. `key`: the new ranks follow the
 * keys in rising order; among equal keys the ranks in `team`. `new_team`: where the new team goes;
 * NULL is stored for the colour LLCL_TEAM_NONE.
 * LLCL_OK; LLCL_ERR_INVALID: NULL; LLCL_ERR_STATE: `team` was freed, inside a callback, or the
 * context is being finalized; LLCL_ERR_PEER_DEAD: a rank of `team` has died or has left, so
 * nothing collective can be done with `team` any more: the others go on with llcl_team_create;
 * LLCL_ERR_NO_MEMORY: as llcl_team_world, at this rank or at another one. Threads of one rank must
 * not call collective functions of one team at the same time: which call of this rank would meet
 * which call of another one is then open.
 */
llcl_status_t llcl_team_split(llcl_team_t *team,
                              uint32_t colour,
                              uint32_t key,
                              llcl_team_t **new_team);

/**
 * Makes a team from a list of ranks. Collective over the ranks on the list, and over nobody else:
 * this is how the living go on after a death, which ends everything collective of every team with
 * the dead rank, and llcl_allgather_bytes.
 *
 * All ranks on the list must call it with the same list in the same order. A list may be used
 * again; its n-th call at one rank meets the n-th call at the others.
 * After a death: take the dead (llcl_peer_alive) out of the list and call this. Ranks may hear of
 * a death at different times; where a rank on the list is dead this answers LLCL_ERR_PEER_DEAD,
 * and the caller tries again with a shorter list, until all living ranks have come to the same
 * one. Instead of llcl_allgather_bytes use llcl_allgather over the new team.
 * `context`: a live context. `ranks`: `n` numbers of ranks of the world, each once, the caller's
 * among them; the new ranks follow this order. Read during the call only. `n`: 1 to 4,095. `team`:
 * where the new team goes; it ends by llcl_team_free or with its context.
 * LLCL_OK; LLCL_ERR_INVALID: NULL, n is 0, a rank stands on the list twice, or the caller is not
 * on it;
 * LLCL_ERR_RANGE: no such rank; LLCL_ERR_UNSUPPORTED: n is too large, or the ranks run on several
 * nodes; LLCL_ERR_PEER_DEAD: a rank on the list has died or has left; LLCL_ERR_NO_MEMORY: as
 * llcl_team_world, at this rank or at another one; LLCL_ERR_STATE: inside a callback, or the context is being finalized. Any thread
 * may call it; calls with the same list by several threads of a rank meet those of others in
 * arbitrary order. The way to a team without the dead is that of MPI's ULFM (shrink), but for the
 * list, which comes from the caller.
 */
llcl_status_t llcl_team_create(llcl_context_t *context,
                               const uint32_t *ranks,
                               uint32_t n,
                               llcl_team_t **team);

/**
 * Ends a team. Plans that were made with it live on. Local: the other ranks need not call it now.
 *
 * `team`: ended by this call. The team of all ranks is not ended, its memory goes with the
 * context.
 * LLCL_OK; LLCL_ERR_INVALID: NULL; LLCL_ERR_STATE: it was freed before (recognised until 256 later
 * ones of its kind have ended). No other thread may use the team at the same time.
 */
llcl_status_t llcl_team_free(llcl_team_t *team);

/**
 * The calling rank's number in a team.
 *
 * `team`: a live team; for NULL and for one that was freed the answer is 0xffffffff. Any thread
 * may call it.
 */
uint32_t llcl_team_rank(const llcl_team_t *team);

/**
 * How many ranks a team has.
 *
 * `team`: a live team; for NULL and for one that was freed the answer is 0. Any thread may call
 * it.
 */
uint32_t llcl_team_size(const llcl_team_t *team);

/**
 * The number in the world of a team's rank: the `peer` of all other operations.
 *
 * `team`: a live team. `rank`: a number below llcl_team_size. For NULL, a team that was freed and
 * any other number the answer is 0xffffffff. Any thread may call it.
 */
uint32_t llcl_team_peer(const llcl_team_t *team,
                        uint32_t rank);

/**
 * The number in a team of a rank of the world: the reverse of llcl_team_peer.
 *
 * `team`: a live team. `world_rank`: a number below llcl_size. For NULL, a team that was freed and
 * a rank that is not in the team the answer is 0xffffffff. Any thread may call it; it takes a look
 * at each rank of the team at most.
 */
uint32_t llcl_team_find(const llcl_team_t *team,
                        uint32_t world_rank);

/*
 * 14. Plans: a collective that was planned once runs any number of times.
 *
 * A plan is made by one of the _init functions of the next chapter, at all ranks of a team. Each
 * rank then starts it, computes, and waits for it; the k-th start of one rank meets the k-th start
 * of every other. Several plans of a team may be under way at once and may be started in any
 * order. The thread that started a plan is not needed for it to advance: what an arriving signal
 * releases is done by the thread that delivered it, on any rank, or by a thread that waits, or by
 * the progress thread.
 */

/** int8_t; also plain bytes. */
#define LLCL_TYPE_I8 7u

/** uint8_t; also plain bytes. */
#define LLCL_TYPE_U8 8u

/** int16_t */
#define LLCL_TYPE_I16 9u

/** uint16_t */
#define LLCL_TYPE_U16 10u

/**
 * Elements of `element_size` bytes, for operations that only move data and for LLCL_OP_USER. They
 * are never cut apart.
 */
#define LLCL_TYPE_BYTES 11u

/**
 * _Bool of C, bool of C++: one byte. AND, OR and XOR are the logical ones: 0 is false, everything
 * else true, and results are 0 or 1.
 */
#define LLCL_TYPE_BOOL 12u

/**
 * IEEE binary16, _Float16 of some compilers: ADD, PROD, MIN, MAX. Every combination is rounded
 * once, to nearest and ties to even, with denormal numbers, whatever the thread's floating-point
 * environment.
 */
#define LLCL_TYPE_F16 13u

/** The upper 16 bits of an IEEE binary32, __bf16 of some compilers. As LLCL_TYPE_F16. */
#define LLCL_TYPE_BF16 14u

/**
 * long double, 16 bytes: ADD, PROD, MIN, MAX on x86-64, where it is the x87's format (the 6 bytes
 * behind a result are 0); elsewhere LLCL_ERR_UNSUPPORTED for them, and only moved and given to
 * LLCL_OP_USER.
 */
#define LLCL_TYPE_LONG_DOUBLE 15u

/**
 * float _Complex: ADD, PROD. The product by its definition, without C's recovery of infinities.
 */
#define LLCL_TYPE_COMPLEX_F32 16u

/**
 * double _Complex: ADD, PROD. The product by its definition, without C's recovery of infinities.
 */
#define LLCL_TYPE_COMPLEX_F64 17u

/** struct { float value; int32_t index; } of 8 bytes: MINLOC, MAXLOC, as for all pairs. */
#define LLCL_TYPE_F32_I32 18u

/** struct { double value; int32_t index; } of 16 bytes. */
#define LLCL_TYPE_F64_I32 19u

/** struct { int32_t value, index; } of 8 bytes. */
#define LLCL_TYPE_I32_I32 20u

/** struct { int64_t value; int32_t index; } of 16 bytes. */
#define LLCL_TYPE_I64_I32 21u

/** struct { int64_t value, index; } of 16 bytes. */
#define LLCL_TYPE_I64_I64 22u

/** struct { double value; int64_t index; } of 16 bytes. */
#define LLCL_TYPE_F64_I64 23u

/** struct { int16_t value; int32_t index; } of 8 bytes. */
#define LLCL_TYPE_I16_I32 24u

/**
 * struct { long double value; int32_t index; } of 32 bytes; where it can be combined, see
 * LLCL_TYPE_LONG_DOUBLE.
 */
#define LLCL_TYPE_LONG_DOUBLE_I32 25u

/** Multiplies; integers wrap around. For collectives only. */
#define LLCL_OP_PROD 12u

/** Calls the user's function. For collectives only. */
#define LLCL_OP_USER 13u

/**
 * Of two pairs the one with the smaller value; of equal values the one with the lower index, and
 * of a number and a NaN the number. For pairs in collectives only.
 */
#define LLCL_OP_MINLOC 14u

/** Of two pairs the one with the larger value; else as LLCL_OP_MINLOC. */
#define LLCL_OP_MAXLOC 15u

/** As the environment variable LLCL_COLL_ENGINE says, else LLCL_ENGINE_OFFLOAD. */
#define LLCL_ENGINE_FROM_ENVIRONMENT 0u

/**
 * All commands are made at init; the thread that delivers a signal runs the commands that it
 * releases.
 */
#define LLCL_ENGINE_OFFLOAD 1u

/**
 * The progress thread of each rank makes and runs the commands of that rank when they are ready.
 */
#define LLCL_ENGINE_THREAD 2u

/**
 * The input lies in the output buffer: at every rank, and for gather, reduce and scatter at the
 * root only. `send` is ignored there; for scatter it is `receive` that is ignored, and the root's
 * block stays where it is.
 */
#define LLCL_COLL_IN_PLACE 1u

/**
 * The function of LLCL_OP_USER may be called several times at the same time, on threads of its
 * rank and for different elements; the same at every rank. Without it the calls for a plan follow
 * each other, and a rank has one queue for its steps.
 */
#define LLCL_COLL_CONCURRENT 2u

/**
 * Each start of the plan may name other buffers, by llcl_coll_start_with; the same at every rank.
 * The blocking forms, which may do so in any case, ignore it.
 */
#define LLCL_COLL_REBIND 4u

/** A plan. Ends by llcl_coll_free or with its context. */
typedef struct llcl_coll_t llcl_coll_t;

/** What a plan consists of. */
typedef struct llcl_coll_info_t {
    /** Bytes of this struct, set by the caller before the call. */
    uint64_t struct_size;
    /** The algorithm's name; valid as long as the plan. */
    const char *algorithm;
    /** Why it was chosen, one sentence; valid as long as the plan. */
    const char *reason;
    /** LLCL_ENGINE_OFFLOAD or LLCL_ENGINE_THREAD. */
    uint32_t engine;
    /**
     * 1: any rank may run this rank's steps. 0: only this rank's own threads, because the engine,
     * a user's function, more than 32 KiB in memory that peers do not map, a neighbour on another
     * node or a team of more than 64 ranks wants it so.
     */
    uint32_t any_rank;
    /** Queues of this rank's program. */
    uint32_t queues;
    /** Steps of this rank's program. */
    uint32_t steps;
    /**
     * Bytes that the plan takes at this rank until it is freed: steps, signal words, scratch,
     * copies of what peers do not map, and what this process keeps of the other ranks.
     */
    uint64_t memory;
    /** How often the plan was started. */
    uint64_t rounds;
} llcl_coll_info_t;

/** Its size, and else zeroes: `llcl_coll_info_t it = LLCL_COLL_INFO_INIT;`. */
#define LLCL_COLL_INFO_INIT {sizeof(llcl_coll_info_t), NULL, NULL, 0, 0, 0, 0, 0, 0}

/**
 * A user's reduction: `result[i] = left[i] op right[i]` for `count` elements of the plan's type,
 * whole ones. `result` is `right`, `left`, or overlaps neither; all are aligned as elements of the
 * buffers are, or as the elements of an array that begins at a multiple of 64. The order of ranks
 * is kept: the operation must be associative and need not commute. Runs on a thread of the rank to
 * which it was given, one call for a plan at a time (see LLCL_COLL_CONCURRENT), in the
 * floating-point environment of the thread that made the plan; must not block, must not call this
 * library and must not leave it by an exception or a jump.
 */
typedef void (*llcl_reduce_fn)(const void *left,
                               const void *right,
                               void *result,
                               uint64_t count,
                               void *data);

/**
 * What a collective is to do. Fields that an operation has no use for are ignored. Which rank
 * gives what is told with each _init function.
 */
typedef struct llcl_coll_params_t {
    /** The ranks that take part. */
    llcl_team_t *team;
    /**
     * The input, in a region of this rank; with `count` 0 any value. It is read and never written,
     * so it may be read-only; so may what a rank only sends of its output: the data of a
     * broadcast's root, and its own block in place. It may lie in gaps of the output but not
     * overlap its blocks.
     */
    llcl_local_t send;
    /**
     * The output, in a region of this rank; with `count` 0 any value. Bytes outside of the blocks
     * are left alone: the user, or another plan, may use them meanwhile.
     */
    llcl_local_t receive;
    /** Elements; the same at every rank. */
    uint64_t count;
    /** One of LLCL_TYPE_*; the same at every rank. */
    uint32_t type;
    /**
     * For operations that combine: one of LLCL_OP_ADD, PROD, MIN, MAX, AND, OR, XOR, MINLOC,
     * MAXLOC that the type has, or LLCL_OP_USER, which every type has. Integers have the first
     * seven; floating-point numbers ADD, PROD, MIN, MAX; see LLCL_TYPE_* for the others. The same
     * at every rank.
     */
    uint32_t op;
    /** The root, by rank in the team; the same at every rank. */
    uint32_t root;
    /** One of LLCL_ENGINE_*. */
    uint32_t engine;
    /**
     * 0 or some of LLCL_COLL_IN_PLACE, LLCL_COLL_CONCURRENT, LLCL_COLL_REBIND; the same at every
     * rank.
     */
    uint32_t flags;
    /** Bytes of an element of LLCL_TYPE_BYTES, the same at every rank; for other types 0. */
    uint32_t element_size;
    /**
     * How many rounds may be under way at one time, 0 to 64, the same at every rank; 0 counts as 1.
     * Each of them takes the memory of a plan. The blocking forms ignore it.
     */
    uint32_t depth;
    /** For the v forms: elements for each rank of the team, read during the call. */
    const uint64_t *send_counts;
    /**
     * For the v forms: where each rank's block begins in the input, in elements; of an empty block
     * any value.
     */
    const uint64_t *send_offsets;
    /** For the v forms: elements from each rank of the team. */
    const uint64_t *receive_counts;
    /**
     * For the v forms: where each rank's block goes in the output, in elements; of an empty
     * block any value.
     */
    const uint64_t *receive_offsets;
    /** For LLCL_OP_USER: the function. Else ignored. */
    llcl_reduce_fn function;
    /** Its last argument; may be NULL. */
    void *function_data;
    /**
     * The algorithm by name, the same at every rank; NULL: as the environment says, else the best
     * known. The names are those of the LLCL_COLL_* variables, which llcl-info -c lists.
     */
    const char *algorithm;
    /**
     * Fires at the end of every round, at this rank. A word (LLCL_COMPLETE_STORE,
     * LLCL_COMPLETE_ADD) in allocated memory is changed by whichever rank runs the last step, also
     * while this one computes, if `send` and `receive` lie in such memory too; any other
     * completion waits for a thread of this rank. If that other rank is killed at that moment, the
     * word says so, and may have been changed before.
     */
    llcl_completion_t on_complete;
} llcl_coll_params_t;

/** All zeroes: `llcl_coll_params_t it = LLCL_COLL_PARAMS_INIT;`. */
#define LLCL_COLL_PARAMS_INIT {NULL, LLCL_LOCAL_INIT, LLCL_LOCAL_INIT, 0, 0, 0, 0, 0, 0, 0, \
    0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, LLCL_COMPLETION_INIT}

/**
 * Starts the next round of a plan: publishes that this rank's buffers are ready, and returns. What
 * is ready at once and small is done in the call; its cost does not grow with the size of the
 * message.
 *
 * From here until the round has ended the input must not be changed and the output not be used; so
 * rounds that are under way together (see `depth`) have buffers of their own, by
 * llcl_coll_start_with, unless they only read.
 * `plan`: a live plan.
 * LLCL_OK; LLCL_ERR_STATE: as many rounds as `depth` says have not been waited for, the plan was
 * freed, or the context is being finalized; LLCL_ERR_PEER_DEAD: a rank of the plan has died or has left, the
 * plan can only be freed;
 * LLCL_ERR_INVALID: NULL. Any thread may call it, also inside a callback; for one plan one thread
 * at a time.
 * From: persistent collectives, MPI 4.0 section 6.12; the session-mode queue of Tofu2.
 */
llcl_status_t llcl_coll_start(llcl_coll_t *plan);

/**
 * Starts the next round of a plan that was made with LLCL_COLL_REBIND, with its input and output
 * at other places. They stay those of the rounds that follow, until another call names new ones.
 * Each rank names places of its own, or starts the same round by llcl_coll_start. A buffer that
 * lies in a registered region, which peers do not map, is copied by this rank: the input in this
 * call, whose time then grows with it, the output at the end of the round.
 *
 * `plan`: a live plan. `send`, `receive`: as in llcl_coll_params_t when the plan was made; each is
 * ignored where it was ignored then. The buffers of the round before are the user's again when
 * that has ended.
 * LLCL_OK; LLCL_ERR_KEY: a buffer names no live region of this rank; LLCL_ERR_RANGE: it leaves its
 * region;
 * LLCL_ERR_INVALID: the two overlap, the plan was made without LLCL_COLL_REBIND, or NULL;
 * LLCL_ERR_NO_MEMORY: a copy would exceed LLCL_COLL_MEMORY; then the round has not begun, and the
 * call may be made again. Other statuses, and threads: as llcl_coll_start.
 */
llcl_status_t llcl_coll_start_with(llcl_coll_t *plan,
                                   llcl_local_t send,
                                   llcl_local_t receive);

/**
 * Whether the oldest round that was not waited for has ended at this rank. Works for the plan for a moment.
 *
 * `plan`: a live plan that was started.
 * LLCL_OK: it has ended; the buffers are the user's again, and the next round may be started;
 * LLCL_RETRY_BUSY: not yet, and for a moment after a STORE or ADD completion has changed its word,
 * while the thread that changed it has no core; LLCL_ERR_PEER_DEAD: a rank of the plan has died or
 * has left, the round will not end; LLCL_ERR_KEY: a buffer's region was freed meanwhile, here or at
 * a peer; LLCL_ERR_STATE: it was not started, or was freed; LLCL_ERR_INVALID: NULL. After an error
 * of a round the plan can only be freed.
 * Any thread may call it, also inside a callback; for one plan one thread at a time.
 */
llcl_status_t llcl_coll_test(llcl_coll_t *plan);

/**
 * Waits until the oldest round that was not waited for has ended at this rank: working for the plan, also on behalf of other
 * ranks, for
 * LLCL_SPIN_US; then asleep.
 *
 * `plan`: a live plan that was started. `timeout_ns`: nanoseconds; negative: for ever; 0: only
 * looks. LLCL_OK, LLCL_ERR_PEER_DEAD, LLCL_ERR_KEY: as llcl_coll_test; LLCL_ERR_TIMEOUT: not in
 * time, wait again;
 * LLCL_ERR_STATE: it was not started or was freed, or inside a callback; LLCL_ERR_INVALID: NULL.
 * Any thread may call it; for one plan one thread at a time.
 */
llcl_status_t llcl_coll_wait(llcl_coll_t *plan,
                             int64_t timeout_ns);

/**
 * Ends a plan. Local: the other ranks need not call it now; the plan's memory comes back when all
 * have.
 *
 * `plan`: ended by this call if it answers LLCL_OK.
 * LLCL_OK; LLCL_ERR_STATE: a round has not been waited for, or the plan was freed before (found
 * out unless a newer object has been given the same handle); LLCL_ERR_INVALID: NULL. No other
 * thread may use the plan at the same time; not inside a callback (LLCL_ERR_STATE).
 */
llcl_status_t llcl_coll_free(llcl_coll_t *plan);

/**
 * What a plan consists of, and why.
 *
 * `plan`: a live plan. `info`: the caller's struct with its struct_size set; filled.
 * LLCL_OK; LLCL_ERR_INVALID: NULL, or an unknown struct_size; LLCL_ERR_STATE: the plan was freed.
 * Any thread may call it.
 */
llcl_status_t llcl_coll_query(const llcl_coll_t *plan,
                              llcl_coll_info_t *info);

/*
 * 15. Collectives: making plans.
 *
 * Every _init function is collective over its team and blocks until all its ranks have called it,
 * in the same order if they make several; buffers, counts and names are given once, here. What
 * does not fit together (counts, types, roots, operations, algorithms) is told to every rank by
 * LLCL_ERR_INVALID, and no plan is made. If one rank is refused, all are, with its status. Except
 * where the library cannot tell the others: a rank that gives NULL for `params` or its `team`, a
 * team that was freed, or that calls inside a callback or during llcl_finalize, is refused alone,
 * and the others wait for it.
 * Floating-point numbers are combined in the environment of the threads that make the plan:
 * direction of rounding, and whether denormal numbers count as zero (x86-64: MXCSR without its
 * exceptions, and the control word of x87; AArch64: FPCR). It must be the same at every rank, or
 * no plan is made; it is set around every combination on whatever thread that runs, and that of
 * the thread is put back.
 * Buffers may lie in any region. Where one was registered and not allocated, peers do not map it;
 * what others need of it is then copied to and from memory of the plan, by its owner.
 */

/**
 * Nobody's round ends before every rank has started it.
 *
 * `params`: read during the call. Uses nothing but `team`, `engine`, `algorithm` and
 * `on_complete`.
 * `plan`: where the plan goes; ended by llcl_coll_free or with the context.
 * LLCL_OK; LLCL_ERR_INVALID: NULL, a value that is not allowed, or ranks that do not agree;
 * LLCL_ERR_RANGE: a buffer leaves its region; LLCL_ERR_KEY: a buffer names no live region of this
 * rank;
 * LLCL_ERR_UNSUPPORTED: the algorithm that was asked for cannot do this, as those that read other
 * ranks' memory where the team's ranks run on several nodes; LLCL_ERR_NO_MEMORY: the plan would
 * exceed LLCL_COLL_MEMORY or LLCL_REGIONS, told with the numbers; LLCL_ERR_PEER_DEAD: a rank of the
 * team has died or has left; LLCL_ERR_STATE: the team was freed, inside a callback, or the context
 * is being finalized. If one rank is refused, all are. Threads of one rank must not call collective
 * functions of one team at the same time: which call of this rank would meet which call of another
 * one is then open.
 * From: Dissemination: Hensgen, Finkel and Manber 1988.
 */
llcl_status_t llcl_barrier_init(const llcl_coll_params_t *params,
                                llcl_coll_t **plan);

/**
 * The root's data for every rank.
 *
 * `params`: read during the call. `receive`: `count` elements at every rank; the data at the root.
 * `plan`: where the plan goes; ended by llcl_coll_free or with the context.
 * LLCL_OK; other statuses, and threads: as llcl_barrier_init.
 * From: Trinaryx3 of the K computer: three fragments through three ternary pipelines. There three
 * trees without a common edge lie in a torus; here no rank but the root is inside two of them.
 */
llcl_status_t llcl_broadcast_init(const llcl_coll_params_t *params,
                                  llcl_coll_t **plan);

/**
 * The elements of all ranks, combined one by one, at the root.
 *
 * `params`: read during the call. `send`: `count` elements at every rank. `receive`: the same at
 * the root. `op`, and `function` for LLCL_OP_USER. `plan`: where the plan goes; ended by
 * llcl_coll_free or with the context.
 * LLCL_OK; other statuses, and threads: as llcl_barrier_init.
 */
llcl_status_t llcl_reduce_init(const llcl_coll_params_t *params,
                               llcl_coll_t **plan);

/**
 * The elements of all ranks, combined one by one, for every rank.
 *
 * `params`: read during the call. `send` and `receive`: `count` elements at every rank. `op`, and
 * `function` for LLCL_OP_USER. All ranks get the same bits. `plan`: where the plan goes; ended by
 * llcl_coll_free or with the context.
 * LLCL_OK; other statuses, and threads: as llcl_barrier_init.
 * From: Rabenseifner 2004; Thakur, Rabenseifner and Gropp 2005.
 */
llcl_status_t llcl_allreduce_init(const llcl_coll_params_t *params,
                                  llcl_coll_t **plan);

/**
 * A block of every rank, one after the other, at the root.
 *
 * `params`: read during the call. `send`: `count` elements at every rank. `receive`: `count` times
 * the team's size at the root. `plan`: where the plan goes; ended by llcl_coll_free or with the
 * context.
 * LLCL_OK; other statuses, and threads: as llcl_barrier_init.
 */
llcl_status_t llcl_gather_init(const llcl_coll_params_t *params,
                               llcl_coll_t **plan);

/**
 * A block of every rank at the root, with a length for each.
 *
 * `params`: read during the call. `send`: `count` elements, which may differ from rank to rank.
 * `receive`,
 * `receive_counts`, `receive_offsets`: at the root, a block for each rank. `plan`: where the plan
 * goes; ended by llcl_coll_free or with the context.
 * LLCL_OK; other statuses, and threads: as llcl_barrier_init.
 */
llcl_status_t llcl_gatherv_init(const llcl_coll_params_t *params,
                                llcl_coll_t **plan);

/**
 * A block of the root's for every rank.
 *
 * `params`: read during the call. `send`: `count` times the team's size at the root. `receive`:
 * `count` elements at every rank. `plan`: where the plan goes; ended by llcl_coll_free or with the
 * context.
 * LLCL_OK; other statuses, and threads: as llcl_barrier_init.
 */
llcl_status_t llcl_scatter_init(const llcl_coll_params_t *params,
                                llcl_coll_t **plan);

/**
 * A block of the root's for every rank, with a length for each.
 *
 * `params`: read during the call. `send`, `send_counts`, `send_offsets`: at the root, a block for
 * each rank. `receive`: `count` elements, which may differ from rank to rank. `plan`: where the
 * plan goes; ended by llcl_coll_free or with the context.
 * LLCL_OK; other statuses, and threads: as llcl_barrier_init.
 */
llcl_status_t llcl_scatterv_init(const llcl_coll_params_t *params,
                                 llcl_coll_t **plan);

/**
 * A block of every rank, one after the other, for every rank.
 *
 * `params`: read during the call. `send`: `count` elements. `receive`: `count` times the team's
 * size.
 * `plan`: where the plan goes; ended by llcl_coll_free or with the context.
 * LLCL_OK; other statuses, and threads: as llcl_barrier_init.
 * From: Bruck et al. 1997.
 */
llcl_status_t llcl_allgather_init(const llcl_coll_params_t *params, llcl_coll_t **plan);

/**
 * A block of every rank for every rank, with a length for each.
 *
 * `params`: read during the call. `send`: `count` elements, which may differ from rank to rank.
 * `receive`,
 * `receive_counts`, `receive_offsets`: a block for each rank. `plan`: where the plan goes; ended
 * by llcl_coll_free or with the context.
 * LLCL_OK; other statuses, and threads: as llcl_barrier_init.
 */
llcl_status_t llcl_allgatherv_init(const llcl_coll_params_t *params,
                                   llcl_coll_t **plan);

/**
 * A block of every rank for each other.
 *
 * `params`: read during the call. `send` and `receive`: `count` times the team's size: the r-th
 * block goes to, or comes from, rank r. `plan`: where the plan goes; ended by llcl_coll_free or
 * with the context.
 * LLCL_OK; other statuses, and threads: as llcl_barrier_init.
 * From: Bruck et al. 1997.
 */
llcl_status_t llcl_alltoall_init(const llcl_coll_params_t *params, llcl_coll_t **plan);

/**
 * A block of every rank for each other, with lengths of their own.
 *
 * `params`: read during the call. `send`, `send_counts`, `send_offsets`, `receive`,
 * `receive_counts`,
 * `receive_offsets`: a block for each rank. In place the `receive` ones serve for both. `plan`:
 * where the plan goes; ended by llcl_coll_free or with the context.
 * LLCL_OK; other statuses, and threads: as llcl_barrier_init.
 */
llcl_status_t llcl_alltoallv_init(const llcl_coll_params_t *params, llcl_coll_t **plan);

/**
 * The elements of all ranks, combined one by one; each rank gets a block of the result.
 *
 * `params`: read during the call. `send`: `count` times the team's size. `receive`: `count`
 * elements. In place the input lies in `receive`, which then has room for it, and the result goes
 * to its beginning. `op`, and `function` for LLCL_OP_USER. `plan`: where the plan goes; ended by
 * llcl_coll_free or with the context.
 * LLCL_OK; other statuses, and threads: as llcl_barrier_init.
 */
llcl_status_t llcl_reduce_scatter_init(const llcl_coll_params_t *params,
                                       llcl_coll_t **plan);

/**
 * As the function without v, with a length for each rank's block.
 *
 * `params`: read during the call. `send`: all blocks, one after the other in the order of ranks.
 * `receive`: this rank's block. `receive_counts`: the length of each rank's block, the same at
 * every rank. `op`, and `function` for LLCL_OP_USER. `plan`: where the plan goes; ended by
 * llcl_coll_free or with the context.
 * LLCL_OK; other statuses, and threads: as llcl_barrier_init.
 */
llcl_status_t llcl_reduce_scatterv_init(const llcl_coll_params_t *params,
                                        llcl_coll_t **plan);

/**
 * For each rank the elements of all ranks up to and including it, combined one by one.
 *
 * `params`: read during the call. `send` and `receive`: `count` elements. `op`, and `function` for
 * LLCL_OP_USER. `plan`: where the plan goes; ended by llcl_coll_free or with the context.
 * LLCL_OK; other statuses, and threads: as llcl_barrier_init.
 * From: Hillis and Steele 1986.
 */
llcl_status_t llcl_scan_init(const llcl_coll_params_t *params,
                             llcl_coll_t **plan);

/**
 * For each rank but the first the elements of all ranks before it, combined one by one.
 *
 * `params`: read during the call. `send` and `receive`: `count` elements. Rank 0's output is left
 * as it is; in place that is its input. `op`, and `function` for LLCL_OP_USER. `plan`: where the
 * plan goes; ended by llcl_coll_free or with the context.
 * LLCL_OK; other statuses, and threads: as llcl_barrier_init.
 * From: Hillis and Steele 1986; MPI 4.0 section 6.11.2.
 */
llcl_status_t llcl_exscan_init(const llcl_coll_params_t *params,
                               llcl_coll_t **plan);

/*
 * 16. Collectives for the occasional call: one call makes, starts and waits.
 *
 * Each takes what its _init function takes, without a completion, and answers what that and
 * llcl_coll_wait answer; collective over the team; not inside a callback. A team keeps the plans
 * of its last LLCL_COLL_CACHE different calls. A call that has the operation, count, type, op,
 * root, flags and algorithm of an earlier one runs that plan, also with other buffers, another
 * `function` and other `function_data`. In a v form the ranks vote first, in about as long as an
 * allreduce takes: all must have the counts and offsets of the earlier call. Three things follow. All ranks must give
 * the same parameters: a difference is told at every rank where none of them has kept a plan for
 * its call, and else some ranks may wait for ever; with LLCL_COLL_CACHE=0 it is always told. A
 * call that is refused at one rank only, say for a buffer that is none, fails the plan that the
 * others have kept; they, and all further such calls, answer the status of the refusal until the
 * plan has been displaced. And `engine` counts in the call that makes the plan.
 */

/**
 * Waits until every rank of the world has called it: llcl_team_barrier of the team of all ranks.
 *
 * `context`: a live context.
 * LLCL_OK; other statuses, and threads: as llcl_team_world, llcl_barrier_init and llcl_coll_wait.
 */
llcl_status_t llcl_barrier(llcl_context_t *context);

/**
 * Waits until every rank of a team has called it. The plan behind it is made at the first call and
 * kept.
 *
 * `team`: a live team.
 * LLCL_OK; other statuses, and threads: as llcl_barrier_init and llcl_coll_wait.
 */
llcl_status_t llcl_team_barrier(llcl_team_t *team);

/**
 * The root's data for every rank. Blocking.
 *
 * `params`: as llcl_broadcast_init. LLCL_OK; other statuses, and threads: as there, and as
 * llcl_coll_wait.
 */
llcl_status_t llcl_broadcast(const llcl_coll_params_t *params);

/**
 * The elements of all ranks, combined one by one, at the root. Blocking.
 *
 * `params`: as llcl_reduce_init. LLCL_OK; other statuses, and threads: as there, and as
 * llcl_coll_wait.
 */
llcl_status_t llcl_reduce(const llcl_coll_params_t *params);

/**
 * The elements of all ranks, combined one by one, for every rank. Blocking.
 *
 * `params`: as llcl_allreduce_init. LLCL_OK; other statuses, and threads: as there, and as
 * llcl_coll_wait.
 */
llcl_status_t llcl_allreduce(const llcl_coll_params_t *params);

/**
 * A block of every rank, one after the other, at the root. Blocking.
 *
 * `params`: as llcl_gather_init. LLCL_OK; other statuses, and threads: as there, and as
 * llcl_coll_wait.
 */
llcl_status_t llcl_gather(const llcl_coll_params_t *params);

/**
 * A block of every rank at the root, with a length for each. Blocking.
 *
 * `params`: as llcl_gatherv_init. LLCL_OK; other statuses, and threads: as there, and as
 * llcl_coll_wait.
 */
llcl_status_t llcl_gatherv(const llcl_coll_params_t *params);

/**
 * A block of the root's for every rank. Blocking.
 *
 * `params`: as llcl_scatter_init. LLCL_OK; other statuses, and threads: as there, and as
 * llcl_coll_wait.
 */
llcl_status_t llcl_scatter(const llcl_coll_params_t *params);

/**
 * A block of the root's for every rank, with a length for each. Blocking.
 *
 * `params`: as llcl_scatterv_init. LLCL_OK; other statuses, and threads: as there, and as
 * llcl_coll_wait.
 */
llcl_status_t llcl_scatterv(const llcl_coll_params_t *params);

/**
 * A block of every rank, one after the other, for every rank. Blocking.
 *
 * `params`: as llcl_allgather_init. LLCL_OK; other statuses, and threads: as there, and as
 * llcl_coll_wait.
 */
llcl_status_t llcl_allgather(const llcl_coll_params_t *params);

/**
 * A block of every rank for every rank, with a length for each. Blocking.
 *
 * `params`: as llcl_allgatherv_init. LLCL_OK; other statuses, and threads: as there, and as
 * llcl_coll_wait.
 */
llcl_status_t llcl_allgatherv(const llcl_coll_params_t *params);

/**
 * A block of every rank for each other. Blocking.
 *
 * `params`: as llcl_alltoall_init. LLCL_OK; other statuses, and threads: as there, and as
 * llcl_coll_wait.
 */
llcl_status_t llcl_alltoall(const llcl_coll_params_t *params);

/**
 * A block of every rank for each other, with lengths of their own. Blocking.
 *
 * `params`: as llcl_alltoallv_init. LLCL_OK; other statuses, and threads: as there, and as
 * llcl_coll_wait.
 */
llcl_status_t llcl_alltoallv(const llcl_coll_params_t *params);

/**
 * The elements of all ranks, combined one by one; each rank gets a block of the result. Blocking.
 *
 * `params`: as llcl_reduce_scatter_init. LLCL_OK; other statuses, and threads: as there, and as
 * llcl_coll_wait.
 */
llcl_status_t llcl_reduce_scatter(const llcl_coll_params_t *params);

/**
 * As the function without v, with a length for each rank's block. Blocking.
 *
 * `params`: as llcl_reduce_scatterv_init. LLCL_OK; other statuses, and threads: as there, and as
 * llcl_coll_wait.
 */
llcl_status_t llcl_reduce_scatterv(const llcl_coll_params_t *params);

/**
 * For each rank the elements of all ranks up to and including it, combined one by one. Blocking.
 *
 * `params`: as llcl_scan_init. LLCL_OK; other statuses, and threads: as there, and as
 * llcl_coll_wait.
 */
llcl_status_t llcl_scan(const llcl_coll_params_t *params);

/**
 * For each rank but the first the elements of all ranks before it, combined one by one. Blocking.
 *
 * `params`: as llcl_exscan_init. LLCL_OK; other statuses, and threads: as there, and as
 * llcl_coll_wait.
 */
llcl_status_t llcl_exscan(const llcl_coll_params_t *params);

/*
 * 17. Insight: what a context has counted.
 */

/** Most shares of a receiver's credits. */
#define LLCL_AM_SHARES 16u

/**
 * What a context has counted since it began. Counters of the near side count what this rank did,
 * to whomever; those of the receiving side what came in.
 */
typedef struct llcl_stats_t {
    /** Bytes of this struct, set by the caller before the call. */
    uint64_t struct_size;
    /** Active messages sent. */
    uint64_t am_sent;
    /** Active messages taken from this rank's slots and handled. */
    uint64_t am_handled;
    /** Those for which there was no handler. */
    uint64_t am_unknown;
    /** Replies and acknowledgements sent. */
    uint64_t am_replies;
    /** How often a request was answered by LLCL_RETRY_NO_CREDIT. */
    uint64_t retry_no_credit;
    /** By LLCL_RETRY_QUEUE_FULL. */
    uint64_t retry_queue_full;
    /** By LLCL_RETRY_NO_TAG. */
    uint64_t retry_no_tag;
    /** By LLCL_RETRY_BUSY. */
    uint64_t retry_busy;
    /** By LLCL_RETRY_CONNECTING. */
    uint64_t retry_connecting;
    /** Requests with LLCL_FLAG_PARK that found no room and were kept until there was some. */
    uint64_t parked;
    /** The most of them at one time; see LLCL_PARKED. */
    uint64_t parked_high_water;
    /** How often a peer's RecvCNT was read because the cached one said "full". */
    uint64_t credit_reads;
    /** Atomic exchanges by which this rank tried to take peers' tickets, by share. */
    uint64_t credit_updates[16];
    /**
     * Slots of this rank that were passed over, because their senders had died or had stopped.
     */
    uint64_t skips;
    /**
     * Wake-ups of a sleeping receiver that this rank's messages and replies caused: a system call
     * each.
     */
    uint64_t wake_ups;
    /** How often a thread of this rank slept for want of credit. */
    uint64_t credit_sleeps;
    /** The most messages that were found waiting in this rank's slots. */
    uint64_t slots_high_water;
    /**
     * The most requests that were seen to wait for their end at one time; at least what any one
     * thread has had waiting, up to 64.
     */
    uint64_t requests_high_water;
    /**
     * Bytes of this rank's memory that message slots and reply slots take at most, whatever the
     * number of ranks.
     */
    uint64_t am_memory;
    /**
     * Collectives without a plan of the user's, blocking or not, that found the plan of an earlier
     * call; see LLCL_COLL_CACHE. Without llcl_barrier.
     */
    uint64_t coll_cache_hits;
    /** Those that made one to be kept. */
    uint64_t coll_cache_misses;
    /**
     * Places for messages from a network that ranks which have died may still use, so that nobody
     * else does. Where the network can say when nothing of a rank comes any more, for a moment only.
     */
    uint64_t am_kept_aside;
} llcl_stats_t;

/** Its size, and else zeroes: `llcl_stats_t it = LLCL_STATS_INIT;`. */
#define LLCL_STATS_INIT {sizeof(llcl_stats_t), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, {0}, 0, \
    0, 0, 0, 0, 0, 0, 0, 0}

/**
 * What a context has counted.
 *
 * `context`: a live context. `stats`: the caller's struct with its struct_size set; filled. The
 * numbers are read one after the other while others may count on.
 * LLCL_OK; LLCL_ERR_INVALID: NULL, or an unknown struct_size. Any thread may call it.
 */
llcl_status_t llcl_stats_get(llcl_context_t *context, llcl_stats_t *stats);

/*
 * 18. Reads and writes of many pieces: boxes with strides on both sides, and lists of places on
 *     both sides.
 *
 * Each is one request with one completion. Where all of the peer's side is mapped and neither
 * LLCL_FLAG_DEFER nor offload mode asks for the queue, the caller copies everything in the call.
 * Otherwise the request goes through the command queue as one command, and the thread that executes
 * it does its pieces one after the other: a copy by the kernel for each of those in memory that its
 * owner has registered, or, where the kernel does not copy, messages to the owner with as many
 * pieces of one region as 32 KiB hold, 16 bytes for each beside its own.
 * A write may change a word of the peer when all of its bytes are there.
 */

/** Most dimensions of a box with strides. */
#define LLCL_STRIDED_DIMENSIONS 8u

/**
 * A box with strides on both sides: pieces of `size` bytes, `extents[0]` of them in a row,
 * `extents[1]` rows, and so on. Piece (i0, i1, ...) lies `i0 * strides[0] + i1 * strides[1] + ...`
 * bytes behind the first one.
 */
typedef struct llcl_strided_params_t {
    /** The rank to read from or to write to. */
    uint32_t peer;
    /** LLCL_FLAG_*, or 0. */
    uint32_t flags;
    /**
     * The first piece in the caller's memory: the source of a write, the destination of a read.
     */
    llcl_local_t local;
    /** The first piece in the peer's memory. */
    llcl_remote_t remote;
    /** Bytes of a piece; 0 moves nothing, both places still being checked. */
    size_t size;
    /** How many of the following are used: 1 to LLCL_STRIDED_DIMENSIONS. */
    uint32_t dimensions;
    /**
     * Of a write: what happens to the word `signal` when all bytes are there, LLCL_SIGNAL_SET or
     * LLCL_SIGNAL_ADD; 0: nothing. Of a read 0.
     */
    uint32_t signal_op;
    /** Numbers of pieces, the innermost dimension first; 0 moves nothing. */
    uint64_t extents[8];
    /**
     * Bytes from one piece to the next in the caller's memory, never negative. Of the source of
     * any size; pieces of the destination must not overlap.
     */
    uint64_t local_strides[8];
    /** Bytes from one piece to the next in the peer's memory, as above. */
    uint64_t remote_strides[8];
    /** The word: a uint64_t of the same peer, aligned to 8 bytes. */
    llcl_remote_t signal;
    /** What the word is set to, or what is added to it. */
    uint64_t signal_value;
    /** Fires when all bytes are there; the source may then be reused. */
    llcl_completion_t on_complete;
} llcl_strided_params_t;

/** All zeroes: `llcl_strided_params_t it = LLCL_STRIDED_PARAMS_INIT;`. */
#define LLCL_STRIDED_PARAMS_INIT {0, 0, LLCL_LOCAL_INIT, LLCL_REMOTE_INIT, 0, 0, 0, {0}, \
    {0}, {0}, LLCL_REMOTE_INIT, 0, LLCL_COMPLETION_INIT}

/** Bytes in the caller's memory. */
typedef struct llcl_local_span_t {
    /** The first byte. */
    llcl_local_t place;
    /** How many bytes, may be 0. */
    size_t size;
} llcl_local_span_t;

/** All zeroes: `llcl_local_span_t it = LLCL_LOCAL_SPAN_INIT;`. */
#define LLCL_LOCAL_SPAN_INIT {LLCL_LOCAL_INIT, 0}

/** Bytes in a peer's memory. */
typedef struct llcl_remote_span_t {
    /** The first byte. */
    llcl_remote_t place;
    /** How many bytes, may be 0. */
    size_t size;
} llcl_remote_span_t;

/** All zeroes: `llcl_remote_span_t it = LLCL_REMOTE_SPAN_INIT;`. */
#define LLCL_REMOTE_SPAN_INIT {LLCL_REMOTE_INIT, 0}

/**
 * Lists of places on both sides. The bytes of one list, in its order, are those of the other in
 * its order; where one place ends and the next begins may differ.
 */
typedef struct llcl_vector_params_t {
    /** The rank to read from or to write to. */
    uint32_t peer;
    /** LLCL_FLAG_*, or 0. */
    uint32_t flags;
    /**
     * The places in the caller's memory; NULL if `local_count` is 0. Read during the call only.
     */
    const llcl_local_span_t *locals;
    /** How many there are. */
    size_t local_count;
    /**
     * The places in the peer's memory; NULL if `remote_count` is 0. Read during the call only.
     */
    const llcl_remote_span_t *remotes;
    /** How many there are. */
    size_t remote_count;
    /**
     * Of a write: the word that changes when all bytes are there, a uint64_t of the same peer,
     * aligned to 8 bytes.
     */
    llcl_remote_t signal;
    /** What the word is set to, or what is added to it. */
    uint64_t signal_value;
    /** LLCL_SIGNAL_SET or LLCL_SIGNAL_ADD; 0: no word changes. Of a read 0. */
    uint32_t signal_op;
    /** 0. */
    uint32_t reserved;
    /** Fires when all bytes are there; the source may then be reused. */
    llcl_completion_t on_complete;
} llcl_vector_params_t;

/** All zeroes: `llcl_vector_params_t it = LLCL_VECTOR_PARAMS_INIT;`. */
#define LLCL_VECTOR_PARAMS_INIT {0, 0, NULL, 0, NULL, 0, LLCL_REMOTE_INIT, 0, 0, 0, \
    LLCL_COMPLETION_INIT}

/**
 * Writes a box with strides to a peer, and then changes a word there if `signal_op` says so, if
 * that is possible now.
 *
 * A thread that sees the word changed sees all bytes, as with llcl_try_write_signal_async.
 * The source must not change until `on_complete`. Pieces are copied in any order, and source and
 * destination must not overlap. Overlap of the destination is refused where the sizes alone show
 * it; else which piece wins is undefined.
 * `context`: a live context. `params`: read during the call only.
 * LLCL_OK: accepted; LLCL_RETRY_QUEUE_FULL, LLCL_RETRY_BUSY, LLCL_RETRY_CONNECTING: nothing has
 * been done, try again;
 * LLCL_ERR_INVALID: NULL, unknown flags or a completion that is none; or `dimensions` is 0 or more
 * than LLCL_STRIDED_DIMENSIONS, `signal_op` is wrong, the signal word is not aligned, or pieces of
 * the destination overlap;
 * LLCL_ERR_RANGE: a box leaves its region, or its extents and strides (negative ones are huge
 * here) leave 64 bits;
 * LLCL_ERR_KEY: a place is in no live region; LLCL_ERR_PEER_DEAD: the peer has died or has left;
 * LLCL_ERR_STATE: the context is being finalized; LLCL_ERR_NO_MEMORY: no memory for the list of
 * pieces, or the peer's memory cannot be mapped; LLCL_ERR_SYSTEM: it cannot be mapped. All but
 * LLCL_ERR_KEY are answered before anything moves. The completion may report LLCL_ERR_PEER_DEAD,
 * LLCL_ERR_KEY (the owner has freed the region), LLCL_ERR_SYSTEM or LLCL_ERR_CANCELED, the first
 * failure of all pieces; a part of the bytes may then have moved. Any thread may call it, also
 * inside a callback. Where it runs the completion: see the conventions. After the strided put and
 * get of ARMCI and of GASNet (VIS), with the size of an element apart from the extents.
 */
llcl_status_t llcl_try_write_strided_async(llcl_context_t *context,
                                           const llcl_strided_params_t *params);

/**
 * Tries llcl_try_write_strided_async until it is accepted, and helps with progress meanwhile.
 *
 * `context` and `params`: as there. LLCL_OK or an error as there, never a "try again"; inside a
 * callback LLCL_ERR_STATE. Any thread may call it.
 */
llcl_status_t llcl_write_strided_async(llcl_context_t *context,
                                       const llcl_strided_params_t *params);

/**
 * Does what llcl_try_write_strided_async begins and waits for the end, helping with progress
 * meanwhile and sleeping if it takes long.
 *
 * `context` and `params`: as there; `on_complete` must be llcl_no_completion().
 * LLCL_OK: done; else an error as there, or the one with which the operation ended; inside a
 * callback LLCL_ERR_STATE. Any thread may call it.
 */
llcl_status_t llcl_write_strided(llcl_context_t *context,
                                 const llcl_strided_params_t *params);

/**
 * Reads a box with strides from a peer, if that is possible now.
 *
 * The destination is undefined until `on_complete`.
 * `context` and `params`: as of llcl_try_write_strided_async, with `signal_op` 0; order and
 * overlap: as there. LLCL_OK and all other statuses, and what the completion reports: as there.
 * Any thread may call it, also inside a callback. After the strided get of ARMCI and of GASNet.
 */
llcl_status_t llcl_try_read_strided_async(llcl_context_t *context,
                                          const llcl_strided_params_t *params);

/**
 * Tries llcl_try_read_strided_async until it is accepted, and helps with progress meanwhile.
 *
 * `context` and `params`: as there. LLCL_OK or an error as there, never a "try again"; inside a
 * callback LLCL_ERR_STATE. Any thread may call it.
 */
llcl_status_t llcl_read_strided_async(llcl_context_t *context,
                                      const llcl_strided_params_t *params);

/**
 * Does what llcl_try_read_strided_async begins and waits for the end, helping with progress
 * meanwhile and sleeping if it takes long.
 *
 * `context` and `params`: as there; `on_complete` must be llcl_no_completion().
 * LLCL_OK: done; else an error as there, or the one with which the operation ended; inside a
 * callback LLCL_ERR_STATE. Any thread may call it.
 */
llcl_status_t llcl_read_strided(llcl_context_t *context,
                                const llcl_strided_params_t *params);

/**
 * Writes a list of places to a list of places of a peer, and then changes a word there if
 * `signal_op` says so, if that is possible now.
 *
 * A thread that sees the word changed sees all bytes, as with llcl_try_write_signal_async.
 * The source must not change until `on_complete`. Pieces are copied in any order, and source and
 * destination must not overlap. Where places of the destination overlap, which of them wins is
 * undefined.
 * `context`: a live context. `params`: read during the call only.
 * LLCL_OK: accepted; LLCL_RETRY_QUEUE_FULL, LLCL_RETRY_BUSY, LLCL_RETRY_CONNECTING: nothing has
 * been done, try again;
 * LLCL_ERR_INVALID: NULL, unknown flags or a completion that is none; or
 * a list is NULL and not empty, the lists differ in bytes, `reserved` is not 0, `signal_op` is
 * wrong, or the signal word is not aligned;
 * LLCL_ERR_RANGE: a place leaves its region, or the sizes leave 64 bits;
 * LLCL_ERR_KEY: a place is in no live region; LLCL_ERR_PEER_DEAD: the peer has died or has left;
 * LLCL_ERR_STATE: the context is being finalized; LLCL_ERR_NO_MEMORY: no memory for the list of
 * pieces, or the peer's memory cannot be mapped; LLCL_ERR_SYSTEM: it cannot be mapped. All but
 * LLCL_ERR_KEY are answered before anything moves. The completion may report LLCL_ERR_PEER_DEAD,
 * LLCL_ERR_KEY (the owner has freed the region), LLCL_ERR_SYSTEM or LLCL_ERR_CANCELED, the first
 * failure of all pieces; a part of the bytes may then have moved. Any thread may call it, also
 * inside a callback. Where it runs the completion: see the conventions. After the vector put and
 * get of GASNet (VIS) and ARMCI, and POSIX's readv and writev.
 */
llcl_status_t llcl_try_writev_async(llcl_context_t *context,
                                    const llcl_vector_params_t *params);

/**
 * Tries llcl_try_writev_async until it is accepted, and helps with progress meanwhile.
 *
 * `context` and `params`: as there. LLCL_OK or an error as there, never a "try again"; inside a
 * callback LLCL_ERR_STATE. Any thread may call it.
 */
llcl_status_t llcl_writev_async(llcl_context_t *context,
                                const llcl_vector_params_t *params);

/**
 * Does what llcl_try_writev_async begins and waits for the end, helping with progress
 * meanwhile and sleeping if it takes long.
 *
 * `context` and `params`: as there; `on_complete` must be llcl_no_completion().
 * LLCL_OK: done; else an error as there, or the one with which the operation ended; inside a
 * callback LLCL_ERR_STATE. Any thread may call it.
 */
llcl_status_t llcl_writev(llcl_context_t *context, const llcl_vector_params_t *params);

/**
 * Reads a list of places of a peer into a list of places, if that is possible now.
 *
 * The destination is undefined until `on_complete`.
 * `context` and `params`: as of llcl_try_writev_async, with `signal_op` 0; order and overlap: as
 * there. LLCL_OK and all other statuses, and what the completion reports: as there.
 * Any thread may call it, also inside a callback. After POSIX's readv.
 */
llcl_status_t llcl_try_readv_async(llcl_context_t *context,
                                   const llcl_vector_params_t *params);

/**
 * Tries llcl_try_readv_async until it is accepted, and helps with progress meanwhile.
 *
 * `context` and `params`: as there. LLCL_OK or an error as there, never a "try again"; inside a
 * callback LLCL_ERR_STATE. Any thread may call it.
 */
llcl_status_t llcl_readv_async(llcl_context_t *context,
                               const llcl_vector_params_t *params);

/**
 * Does what llcl_try_readv_async begins and waits for the end, helping with progress
 * meanwhile and sleeping if it takes long.
 *
 * `context` and `params`: as there; `on_complete` must be llcl_no_completion().
 * LLCL_OK: done; else an error as there, or the one with which the operation ended; inside a
 * callback LLCL_ERR_STATE. Any thread may call it.
 */
llcl_status_t llcl_readv(llcl_context_t *context, const llcl_vector_params_t *params);

/*
 * 19. Placed memory: regions at addresses of the program's choice, and second mappings of a
 *     region, for symmetric heaps and for shared memory that is managed page by page.
 */

/** What may be done through an alias (llcl_region_alias), as bits; 0: nothing yet. */
#define LLCL_ACCESS_READ 1u

/** As LLCL_ACCESS_READ, for stores. Processors that cannot write without reading allow both. */
#define LLCL_ACCESS_WRITE 2u

/**
 * Allocates a region as llcl_region_allocate does, at an address of the caller's choice in this
 * process. Peers name places in it by the region and an offset, and map it wherever they like.
 *
 * For a heap that begins at the same address at every rank, one rank finds an address (by mmap of
 * as many bytes with PROT_NONE, and munmap), tells it to the others (llcl_allgather_bytes), and
 * all try; where one is refused, all free theirs and try another address.
 * `context`: a live context. `address`: the first byte, a multiple of the page size. Nothing may
 * be mapped in the bytes from there on, rounded up to whole pages: a range that the program has
 * reserved is unmapped by it first. `size`, `flags` and `region`: as of llcl_region_allocate.
 * LLCL_OK; LLCL_ERR_INVALID: `address` is NULL or no multiple of the page size; LLCL_ERR_RANGE:
 * something is mapped there; LLCL_ERR_SYSTEM or LLCL_ERR_NO_MEMORY: the kernel gives no memory at
 * such an address; else as llcl_region_allocate. Any thread may call it.
 * After the aligned segments of GASNet (gasnet_attach) and the symmetric heap of OpenSHMEM; the
 * address is the caller's, as in the fixed windows that MPI_Win_create allows.
 */
llcl_status_t llcl_region_allocate_at(llcl_context_t *context,
                                      void *address,
                                      size_t size,
                                      uint32_t flags,
                                      llcl_region_t **region);

/**
 * Maps a part of an allocated region a second time in this process: the bytes are those of the
 * region, the protection is the alias's own. So the library and its peers reach memory through the
 * region while the program's accesses to the alias are caught (LLCL_ACCESS_*, or later mprotect).
 *
 * A thread may sleep in llcl_wait_word on a word of an alias; a store through one wakes nobody,
 * call llcl_wake after it. As the near side of operations it is any memory, llcl_local_address.
 * `region`: a live region that was allocated. `offset`: where in it the alias begins, a multiple
 * of the page size. `size`: bytes, at least 1, rounded up to whole pages. `address`: where the
 * alias is to begin, a multiple of the page size from which on nothing is mapped; NULL: anywhere.
 * `access`: LLCL_ACCESS_* or 0. `alias`: where the first byte's address goes. Ended by
 * llcl_region_unalias, with the region, or with the context; the program must not unmap it.
 * LLCL_OK; LLCL_ERR_INVALID: NULL, size 0, unknown bits in `access`, or `offset` or `address` is
 * no multiple of the page size; LLCL_ERR_RANGE: the part leaves the region, or something is mapped
 * at `address`; LLCL_ERR_UNSUPPORTED: the region was registered; LLCL_ERR_STATE: it was freed;
 * LLCL_ERR_NO_MEMORY, LLCL_ERR_SYSTEM: the kernel does not map it. Any thread may call it.
 * For what page-based shared memory (TreadMarks, ArgoDSM, MENPS) does by mapping a file twice.
 */
llcl_status_t llcl_region_alias(llcl_region_t *region,
                                uint64_t offset,
                                size_t size,
                                void *address,
                                uint32_t access,
                                void **alias);

/**
 * Ends an alias: its bytes are unmapped, and the region stays as it is.
 *
 * `region`: the region that it shows. `alias`: what llcl_region_alias gave; no operation that was
 * accepted, and no thread, uses it any more.
 * LLCL_OK; LLCL_ERR_INVALID: NULL, or `alias` begins no alias of this region; LLCL_ERR_STATE: the
 * region was freed, and the alias ended with it. Any thread may call it.
 */
llcl_status_t llcl_region_unalias(llcl_region_t *region,
                                  void *alias);

/*
 * 20. Collectives for the occasional call that do not wait: one call starts, a completion tells.
 *
 * Each takes what its _init function takes, and returns at once; `on_complete`, which must be one
 * that tells, fires when the operation has ended at this rank, or with an error. Until then the
 * buffers must not be changed, as for llcl_coll_start; what the parameters point to besides
 * (counts, offsets, the name of the algorithm) is read during the call. Nothing more happens in
 * the call than llcl_coll_start does.
 *
 * The calls of a team have one order, that of all its collective functions, which must be alike at
 * all ranks; a call that is answered by "try again" or by an error has not happened and counts for
 * nothing, and the other ranks wait for it. Any number of different operations may be under way,
 * and `depth` (0 counts as 1) of those that differ in buffers, `function` and `on_complete` only. In
 * v forms the counts do not make a difference there. As long as a call waits to be made ready,
 * `depth` more may be taken on.
 *
 * The plans behind them are kept, as many as LLCL_COLL_CACHE says, apart from those of the blocking
 * forms, which therefore do not match these. A call whose plan is kept is started by its thread. A
 * call that is new, a v form (whose ranks vote, as told at the blocking forms), and every call
 * that comes while another of these is being made ready, is left to a thread of the library,
 * `llcl-coll`, one for each team at a time, which ends when nothing is left. What is found there to
 * be wrong, a difference between ranks included, is told by the completion's status. Functions of
 * the team that wait (the _init functions, the blocking forms, llcl_team_split, llcl_team_free) begin when the calls
 * before them are ready; llcl_finalize gives those that are not LLCL_FINALIZE_MS, and then ends
 * them with LLCL_ERR_CANCELED.
 *
 * From: the nonblocking collectives of MPI 3.0, section 5.12, with a completion in place of the
 * request, and a depth.
 */

/**
 * Ends when every rank of the team has called it, without waiting.
 *
 * `params`: as llcl_barrier_init, read during the call; `on_complete` must tell.
 * LLCL_OK: accepted; LLCL_RETRY_BUSY: as many such calls as `depth` says are under way, or 64 wait
 * to be made ready: wait for one of them, and repeat; LLCL_RETRY_QUEUE_FULL: inside a callback, as
 * for all that may end in it; LLCL_ERR_INVALID: NULL, a value that is not allowed, or an
 * `on_complete` that does not tell;
 * LLCL_ERR_STATE: the team was freed, or the context is being finalized; LLCL_ERR_NO_MEMORY: no
 * thread can be started; LLCL_ERR_KEY, LLCL_ERR_RANGE, LLCL_ERR_PEER_DEAD: as
 * llcl_coll_start_with. The completion may also report what llcl_barrier_init and llcl_coll_wait
 * answer, and LLCL_ERR_CANCELED.
 * Any thread may call it, also inside a callback, but threads of one rank must not call collective
 * functions of one team at the same time. Where the completion fires: see the conventions.
 */
llcl_status_t llcl_barrier_async(const llcl_coll_params_t *params);

/**
 * The root's data for every rank, without waiting.
 *
 * `params`: as llcl_broadcast_init, read during the call; `on_complete` must tell. LLCL_OK:
 * accepted; other statuses, those of the completion, and threads: as llcl_barrier_async.
 */
llcl_status_t llcl_broadcast_async(const llcl_coll_params_t *params);

/**
 * The elements of all ranks, combined one by one, at the root, without waiting.
 *
 * `params`: as llcl_reduce_init, read during the call; `on_complete` must tell. LLCL_OK: accepted;
 * other statuses, those of the completion, and threads: as llcl_barrier_async.
 */
llcl_status_t llcl_reduce_async(const llcl_coll_params_t *params);

/**
 * The elements of all ranks, combined one by one, for every rank, without waiting.
 *
 * `params`: as llcl_allreduce_init, read during the call; `on_complete` must tell. LLCL_OK:
 * accepted; other statuses, those of the completion, and threads: as llcl_barrier_async.
 */
llcl_status_t llcl_allreduce_async(const llcl_coll_params_t *params);

/**
 * A block of every rank, one after the other, at the root, without waiting.
 *
 * `params`: as llcl_gather_init, read during the call; `on_complete` must tell. LLCL_OK: accepted;
 * other statuses, those of the completion, and threads: as llcl_barrier_async.
 */
llcl_status_t llcl_gather_async(const llcl_coll_params_t *params);

/**
 * A block of every rank at the root, with a length for each, without waiting.
 *
 * `params`: as llcl_gatherv_init, read during the call; `on_complete` must tell. LLCL_OK:
 * accepted; other statuses, those of the completion, and threads: as llcl_barrier_async.
 */
llcl_status_t llcl_gatherv_async(const llcl_coll_params_t *params);

/**
 * A block of the root's for every rank, without waiting.
 *
 * `params`: as llcl_scatter_init, read during the call; `on_complete` must tell. LLCL_OK:
 * accepted; other statuses, those of the completion, and threads: as llcl_barrier_async.
 */
llcl_status_t llcl_scatter_async(const llcl_coll_params_t *params);

/**
 * A block of the root's for every rank, with a length for each, without waiting.
 *
 * `params`: as llcl_scatterv_init, read during the call; `on_complete` must tell. LLCL_OK:
 * accepted; other statuses, those of the completion, and threads: as llcl_barrier_async.
 */
llcl_status_t llcl_scatterv_async(const llcl_coll_params_t *params);

/**
 * A block of every rank, one after the other, for every rank, without waiting.
 *
 * `params`: as llcl_allgather_init, read during the call; `on_complete` must tell. LLCL_OK:
 * accepted; other statuses, those of the completion, and threads: as llcl_barrier_async.
 */
llcl_status_t llcl_allgather_async(const llcl_coll_params_t *params);

/**
 * A block of every rank for every rank, with a length for each, without waiting.
 *
 * `params`: as llcl_allgatherv_init, read during the call; `on_complete` must tell. LLCL_OK:
 * accepted; other statuses, those of the completion, and threads: as llcl_barrier_async.
 */
llcl_status_t llcl_allgatherv_async(const llcl_coll_params_t *params);

/**
 * A block of every rank for each other, without waiting.
 *
 * `params`: as llcl_alltoall_init, read during the call; `on_complete` must tell. LLCL_OK:
 * accepted; other statuses, those of the completion, and threads: as llcl_barrier_async.
 */
llcl_status_t llcl_alltoall_async(const llcl_coll_params_t *params);

/**
 * A block of every rank for each other, with lengths of their own, without waiting.
 *
 * `params`: as llcl_alltoallv_init, read during the call; `on_complete` must tell. LLCL_OK:
 * accepted; other statuses, those of the completion, and threads: as llcl_barrier_async.
 */
llcl_status_t llcl_alltoallv_async(const llcl_coll_params_t *params);

/**
 * The elements of all ranks, combined one by one; each rank gets a block of the result, without
 * waiting.
 *
 * `params`: as llcl_reduce_scatter_init, read during the call; `on_complete` must tell. LLCL_OK:
 * accepted; other statuses, those of the completion, and threads: as llcl_barrier_async.
 */
llcl_status_t llcl_reduce_scatter_async(const llcl_coll_params_t *params);

/**
 * As the function without v, with a length for each rank's block, without waiting.
 *
 * `params`: as llcl_reduce_scatterv_init, read during the call; `on_complete` must tell. LLCL_OK:
 * accepted; other statuses, those of the completion, and threads: as llcl_barrier_async.
 */
llcl_status_t llcl_reduce_scatterv_async(const llcl_coll_params_t *params);

/**
 * For each rank the elements of all ranks up to and including it, combined one by one, without
 * waiting.
 *
 * `params`: as llcl_scan_init, read during the call; `on_complete` must tell. LLCL_OK: accepted;
 * other statuses, those of the completion, and threads: as llcl_barrier_async.
 */
llcl_status_t llcl_scan_async(const llcl_coll_params_t *params);

/**
 * For each rank but the first the elements of all ranks before it, combined one by one, without
 * waiting.
 *
 * `params`: as llcl_exscan_init, read during the call; `on_complete` must tell. LLCL_OK: accepted;
 * other statuses, those of the completion, and threads: as llcl_barrier_async.
 */
llcl_status_t llcl_exscan_async(const llcl_coll_params_t *params);

/*
 * Macros of C and C++.
 */

/**
 * Calls a function that answers a status; on any other answer than LLCL_OK or LLCL_DONE, "try again" included, says so on stderr
 * and ends the process, and with it the job. For examples, tests and small programs.
 */
#define LLCL_CHECK(call) llcl_must_succeed((call), #call, __FILE__, __LINE__)

#ifdef __cplusplus
}
#endif

#endif /* LLCL_H */
