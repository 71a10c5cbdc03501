/* llcl.h - the C interface of libllcl 0.2.0
 * Generated from src/api by `make header` (cbindgen 0.29.4); changes belong there.
 * SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef LLCL_H
#define LLCL_H

/*
 * libllcl: one-sided reads, writes and atomics, active messages and persistent collectives between
 * the processes of a machine, and over a network between those of several machines.
 *
 * Conventions, which hold for every function:
 *
 * - Statuses. LLCL_OK is 0. A positive status means "try again": nothing happened, nothing was
 *   kept, and the name of the status gives the reason. (Functions that may have written bytes to
 *   the destination by then say so.) The one positive status with another meaning is LLCL_DONE,
 *   which only a request with LLCL_FLAG_DONE gets: the operation has ended, and none of its
 *   completions fires. A negative status is an error; llcl_last_error() then has a sentence that
 *   names the parameter, its value and what was expected.
 * - Handles are opaque pointers. One call makes a handle, and the matching call ends it. The
 *   handle of a context, region, team or plan that has ended is refused with LLCL_ERR_STATE, also
 *   after the end of its context, until 256 more of its kind have ended; after that its address
 *   may belong to a new object. No other handle may be passed after its end.
 * - Parameter structs are read during the call only. Each has an initialiser for C and C++, such
 *   as LLCL_WRITE_PARAMS_INIT for llcl_write_params_t, which sets every field to 0. Flag bits and
 *   kinds that are not defined here are refused with LLCL_ERR_INVALID. So is NULL, except where
 *   the text of a function allows it.
 * - Versions. A struct that later versions may enlarge begins with `struct_size`, which its
 *   initialiser sets; a function refuses every size but the one of its own version. All other
 *   structs, among them the parameters of operations, keep their fields.
 * - Out-parameters are written on success only.
 * - Accepted (LLCL_OK from a function whose name ends in _async) means: each completion that the
 *   request carries fires exactly once, with a status, whatever happens (llcl_finalize names the
 *   one exception). Refused means: none fires.
 * - A callback runs on the thread that ends the operation. This is the caller, before the call
 *   returns (unless LLCL_FLAG_DEFER or LLCL_FLAG_DONE is given); a thread that waits in this
 *   library; or one of the library's own threads. In offload mode it is the progress thread. There
 *   are three exceptions. A thread that posts while the command queue is full, or while another
 *   thread posts, may execute commands from the queue, and then runs their callbacks. A round of a
 *   collective may end in a call of the program that starts it, tests it or waits for it; the
 *   round's callback then runs there. And llcl_finalize may run callbacks on its caller.
 *   Callbacks may post requests by the try functions, and start collectives; they must not block.
 *   A request that a callback posts may end at once. Its own callback then runs after the present
 *   one has returned, so a chain of callbacks of any length needs the stack of one. A thread holds
 *   at most 64 such callbacks back. Beyond that the try functions answer LLCL_RETRY_QUEUE_FULL,
 *   and the progress thread ends the rounds of plans and runs their callbacks.
 * - Order. Operations of one thread or of several may take effect in any order, with two
 *   exceptions. The signal of llcl_try_write_signal_async is never seen before its data. And a
 *   thread that sees a word of 8 bytes which one operation has written (an atomic, a signal, a
 *   value, a write of 8 aligned bytes) also sees everything that the requester had done before it
 *   posted the operation: its stores, and its operations that had completed. docs/memory-model.md
 *   has the details.
 * - Locks. Callbacks may run inside the calls that post, callbacks and handlers inside every call
 *   that waits and inside llcl_progress. A thread that makes such a call must not hold a lock that
 *   a callback or handler takes.
 * - First use. The library contacts a peer when the peer is first used: as soon as the peer has
 *   called llcl_init, the library maps the peer's memory, or connects to it over the network. A
 *   mapping takes some 0.1 ms. Until then the try functions answer LLCL_RETRY_CONNECTING, without
 *   waiting, while the contact goes on in the background; other functions that need the peer wait.
 *   A message to a receiver with LLCL_AM_POLICY_DISTRIBUTED also contacts the rank that keeps the
 *   counter of a share. llcl_connect contacts peers beforehand. If a contact fails, each function
 *   that needs it answers LLCL_ERR_NO_MEMORY or LLCL_ERR_SYSTEM (the peer's memory cannot be
 *   mapped), or LLCL_ERR_UNSUPPORTED (the peer runs on another node, and there is no network). The
 *   next call contacts the peer again.
 * - Threads. Any thread may call any function at any time, except where the function's text says
 *   otherwise. No panic leaves the library; there is no process-wide state to set up, no signal
 *   handler and no constructor.
 * - Signal handlers may call llcl_abort with NULL, and no other function of this library: the
 *   others allocate memory and take locks that the interrupted thread may hold. A handler should
 *   set a flag or write to a descriptor, on which a thread then acts.
 * - Callbacks and handlers must end by returning. If one ends by an exception, pthread_exit or
 *   cancellation, the library ends the process, with a message that names it. If one ends by
 *   longjmp, the locks that the library holds for it stay locked, and other threads may wait for
 *   them for ever.
 * - fork(). The child must not use what its parent has made. In the child every call with a
 *   context, a region, a team, a plan, a message or a world of the parent answers LLCL_ERR_STATE,
 *   llcl_finalize in an exit handler included. A child that is forked inside a callback or handler
 *   must not return from it. The parent's rank goes on. system(), popen() and posix_spawn() work
 *   as without this library. docs/rules.md has the details.
 * - When a peer dies, every operation that is pending on it ends with LLCL_ERR_PEER_DEAD; none
 *   hangs.
 */

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * 0. Statuses: the answers of all functions.
 */

/** Accepted, or done. */
#define LLCL_OK 0

/**
 * Try again: the command queue is full. Yield the core, help with progress or wait for a
 * completion, and repeat.
 */
#define LLCL_RETRY_QUEUE_FULL 1

/**
 * Try again: as many operations wait for other ranks as LLCL_IN_FLIGHT allows (direct mode), or as
 * many messages as LLCL_AM_REQUESTS allows (any mode). Help with progress, and repeat.
 */
#define LLCL_RETRY_NO_TAG 2

/**
 * Try again: another thread is posting (direct mode), or the object is still in use. Repeat later;
 * the function says what it waits for. Do not repeat the call inside a callback: in direct mode
 * the thread that executes may be the callback's own, so a loop there would never end. Return, or
 * use LLCL_FLAG_PARK.
 */
#define LLCL_RETRY_BUSY 3

/**
 * Try again: all message slots of the peer are taken. Yield the core, so that the peer can run its
 * handlers, and repeat.
 */
#define LLCL_RETRY_NO_CREDIT 4

/**
 * Try again: this is the first use of the peer, and the contact is under way. The contact goes on
 * whether or not you try again; it ends at the latest when the peer has called llcl_init.
 * llcl_connect waits for it.
 */
#define LLCL_RETRY_CONNECTING 5

/**
 * The operation has ended before the call returned, and none of its completions fires. Only a
 * request with LLCL_FLAG_DONE gets this answer.
 */
#define LLCL_DONE 64

/**
 * A parameter has a value that it may not have. Correct the call; llcl_last_error() names the
 * parameter.
 */
#define LLCL_ERR_INVALID (-1)

/** An offset, a size or a number lies outside of what exists. Correct the call. */
#define LLCL_ERR_RANGE (-2)

/**
 * Memory, a table of the library or a limit of the kernel is exhausted. Free something, or raise
 * the limit that llcl_last_error() names.
 */
#define LLCL_ERR_NO_MEMORY (-3)

/** The peer has died or has left the world. It stays so: go on without it. */
#define LLCL_ERR_PEER_DEAD (-4)

/**
 * llcl_finalize ended the operation; it may or may not have taken effect. If the peer is stopped,
 * a network such as MPI may use its buffer even later (see llcl_finalize).
 */
#define LLCL_ERR_CANCELED (-5)

/**
 * This library, this machine or this type does not offer the operation; for instance AND on
 * floating-point numbers.
 */
#define LLCL_ERR_UNSUPPORTED (-6)

/** A system call failed; llcl_last_error() names it. */
#define LLCL_ERR_SYSTEM (-7)

/** The call is not allowed now: inside a callback, during llcl_finalize, or a second time. */
#define LLCL_ERR_STATE (-8)

/** The time that the call was given is over. The function says which operations go on. */
#define LLCL_ERR_TIMEOUT (-9)

/** The address names no live region of that rank: freed, forged, of another rank or context. */
#define LLCL_ERR_KEY (-10)

/** A defect of this library. Please report it. */
#define LLCL_ERR_INTERNAL (-11)

/** The peer has no handler of this number. Register it there before the message is sent. */
#define LLCL_ERR_NO_HANDLER (-12)

/**
 * What a call answers: 0; an error, which is negative; LLCL_DONE; or "try again", which is any
 * other positive number.
 */
typedef int32_t llcl_status_t;

/**
 * One line about a status.
 *
 * `status`: any number. Returns static text, never NULL, also for a number that is no status.
 * Any thread may call it at any time.
 * From: ucs_status_string of UCX and fi_strerror of libfabric.
 */
const char *llcl_status_string(llcl_status_t status);

/**
 * A sentence about the calling thread's last error: which function was called, which parameter had
 * which value, and what was expected. All forms of an operation have the name of its blocking form
 * there: the sentence of llcl_try_write_async begins with llcl_write.
 *
 * Returns text that stays valid until the thread's next failing call or llcl_set_last_error(),
 * never NULL; empty when there was neither. A "try again" does not change it. Each thread has its
 * own.
 * From: dlerror of POSIX, but per thread.
 */
const char *llcl_last_error(void);

/**
 * Sets the sentence that llcl_last_error() returns to the calling thread. It is for functions that
 * answer statuses and are built upon this library, as llcl_init_mpi is.
 *
 * `sentence`: text, which is copied; NULL changes nothing. Any thread may call it at any time.
 * This library's own.
 */
void llcl_set_last_error(const char *sentence);

/**
 * Ends the process if a call has failed; the macro LLCL_CHECK calls it. It prints the call, its
 * place in the source, the status and llcl_last_error() on stderr, and then calls exit(1), so that
 * the job ends.
 *
 * `status`: what the call has answered; for LLCL_OK and LLCL_DONE nothing happens. `call`: the
 * call as text; NULL prints a question mark. `file`: the source file as text, or NULL; `line`: the
 * line there. Any thread may call it; exit handlers run on that thread.
 * This library's own.
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
 * A function that a completion calls, with the data of the completion and the status with which
 * the operation ended. It may post requests by the try functions and must not block; see the
 * conventions.
 */
typedef void (*llcl_callback_fn)(void *data, llcl_status_t status);

/**
 * What happens when an operation ends. The function, its data and the word belong to the caller
 * and must stay valid until the completion has fired.
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
 * The completion that does nothing. llcl_flush waits for the end of such an operation.
 *
 * Returns the struct by value. Any thread may call it.
 * This library's own.
 */
llcl_completion_t llcl_no_completion(void);

/**
 * The completion that calls a function.
 *
 * `call`: the function; a request with NULL here is refused. `data`: its first argument, may be
 * NULL. Returns the struct by value. Any thread may call it. The conventions say on which thread
 * the function runs.
 * From: the completion callbacks of UCX (ucp_send_nbx_callback_t).
 */
llcl_completion_t llcl_callback(llcl_callback_fn call,
                                       void *data);

/**
 * The completion that sets a word: to 1, or to the negative status as a 64-bit number.
 *
 * `word`: the caller's, aligned to 8 bytes, valid until it is set; a request with NULL here is
 * refused. Set it to 0 before, and wait with llcl_wait_word(context, word, 1, ...): failures end
 * the wait as well. Returns the struct by value. Any thread may call it.
 * From: GASPI's notifications, as plain memory.
 */
llcl_completion_t llcl_store_on(uint64_t *word);

/**
 * The completion that adds 1 to a word, and sets LLCL_WORD_FAILED in it if the operation failed.
 *
 * `word`: the caller's, aligned to 8 bytes, valid until all operations that name it have ended;
 * a request with NULL here is refused. Any number of operations may share it. Returns the
 * struct by value. Any thread may call it.
 * From: fi_cntr of libfabric, as plain memory.
 */
llcl_completion_t llcl_add_on(uint64_t *word);

/*
 * 2. Worlds and configuration: the place of a context, and its settings.
 */

/** As the environment variable LLCL_EXECUTION says, else LLCL_EXECUTION_AUTO. */
#define LLCL_EXECUTION_FROM_ENVIRONMENT 0u

/**
 * The caller executes what it can itself. A thread that waits or posts executes the rest; if there
 * is none, the progress thread does.
 */
#define LLCL_EXECUTION_AUTO 1u

/**
 * Every request goes through the queue to the progress thread. If a thread finds the queue full,
 * or finds another thread posting at the same moment, and no thread executes commands, then it
 * executes a batch of commands itself.
 */
#define LLCL_EXECUTION_OFFLOAD 2u

/**
 * The caller executes everything itself. For an operation that needs the owner of the memory or a
 * network, the answer is LLCL_RETRY_BUSY while a thread executes such an operation. In a callback
 * at the end of such an operation that thread is the caller itself: each try there answers
 * LLCL_RETRY_BUSY, however often it is repeated. With LLCL_FLAG_PARK it is accepted.
 */
#define LLCL_EXECUTION_DIRECT 3u

/** As the environment variable LLCL_AM_POLICY says, else LLCL_AM_POLICY_ACQUIRE. */
#define LLCL_AM_POLICY_FROM_ENVIRONMENT 0u

/**
 * A sender takes the next free slot, by one compare-and-swap on a word of that slot. All counters
 * lie with the receiver.
 */
#define LLCL_AM_POLICY_ACQUIRE 1u

/**
 * As LLCL_AM_POLICY_ACQUIRE; in addition a counter limits how many messages are sent and not yet
 * taken from their slots.
 */
#define LLCL_AM_POLICY_LIMIT 2u

/**
 * The slots are split into shares. The counters by which senders take slots lie with several
 * ranks, one for each share. A sender begins with the share whose counter is nearest, and tries
 * the others while that share is full.
 */
#define LLCL_AM_POLICY_DISTRIBUTED 3u

/** As the environment variable LLCL_AM_HANDLERS says, else LLCL_AM_HANDLERS_SERIAL. */
#define LLCL_AM_HANDLERS_FROM_ENVIRONMENT 0u

/** One handler of a context runs at a time. */
#define LLCL_AM_HANDLERS_SERIAL 1u

/**
 * Handlers of different messages may run at the same time: on every thread that waits in this
 * library, and on the library's own.
 */
#define LLCL_AM_HANDLERS_PARALLEL 2u

/**
 * One handler of a context runs at a time, and only on threads of the program, outside of
 * callbacks: in llcl_am_poll, llcl_am_wait, llcl_progress, and in every call that waits. A program
 * that calls none of these handles no message. The library still serves other ranks' operations on
 * memory.
 */
#define LLCL_AM_HANDLERS_POLLED 3u

/** A world whose ranks are threads of this process. */
typedef struct llcl_world_t llcl_world_t;

/**
 * A function of the program that gathers bytes from every rank at every rank. It stores the `size`
 * bytes at `mine` of every rank in `all`, in the order of ranks, and returns 0 when that is done;
 * any other number is a failure. `data`: as in llcl_bootstrap_t.
 */
typedef int32_t (*llcl_allgather_fn)(void *data, const void *mine, size_t size, void *all);

/**
 * A function of the program that ends the whole job with this exit code, as MPI_Abort does. It may
 * return or not. `data`: as in llcl_bootstrap_t.
 */
typedef void (*llcl_abort_fn)(void *data, int32_t exit_code);

/**
 * The place of this process among ranks that were started and numbered by MPI, PMI, or the program
 * itself. llcl_init is then collective over these ranks. Ranks that can pass a descriptor to each
 * other share memory. Ranks of other machines are reached by a wire (LLCL_TRANSPORT; else MPI's);
 * without one llcl_init answers LLCL_ERR_UNSUPPORTED. All ranks of a machine must run under one
 * user. The lowest rank of each machine does there what llcl-run does for its own jobs, also after
 * it has left: if its process ends before the other ranks of the machine have left, they learn
 * that all ranks have died. If ranks are on several machines, they learn this two seconds after
 * that rank has left, and ranks of other machines then learn that these ranks have left. Two
 * seconds after rank 0 has left, all ranks learn that all have died.
 */
typedef struct llcl_bootstrap_t {
    /** Bytes of this struct, as LLCL_BOOTSTRAP_INIT sets it. */
    uint64_t struct_size;
    /** This process's number, from 0 on, below `size`. */
    uint32_t rank;
    /** How many ranks there are, 1 to 4096; the same at each. */
    uint32_t size;
    /**
     * llcl_init calls it up to four times, on the thread of the caller, with at most 300 bytes.
     * It may block, and must not call this library.
     */
    llcl_allgather_fn allgather;
    /**
     * llcl_abort and llcl_exit call it, on the thread of their caller. NULL: the lowest rank of
     * each machine ends the processes there.
     */
    llcl_abort_fn abort;
    /**
     * The first argument of both functions; may be NULL. Stays valid until the context has ended.
     */
    void *data;
    /**
     * A number for the wire to other machines. MPI's wire takes MPI_Comm_c2f of the communicator
     * that has these ranks, which must stay valid until the context has ended; 0 means
     * MPI_COMM_WORLD. Other wires ignore it.
     */
    int64_t foreign;
} llcl_bootstrap_t;

/** Its size, and else zeroes: `llcl_bootstrap_t it = LLCL_BOOTSTRAP_INIT;`. */
#define LLCL_BOOTSTRAP_INIT {sizeof(llcl_bootstrap_t), 0, 0, NULL, NULL, NULL, 0}

/**
 * The configuration of a context. Begin with LLCL_CONFIG_INIT, or with llcl_config_default where
 * macros cannot be used. A field that is 0 takes its value from the environment variable in
 * brackets, else the default behind it. An empty variable counts as unset. If a variable begins
 * with LLCL_ and the library does not know it, the library prints it once on stderr, with the
 * nearest name that it knows.
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
     * The place among ranks that another launcher has started, read during llcl_init; NULL: none.
     * It must be NULL where `world` is set; otherwise all its ranks are refused.
     */
    const llcl_bootstrap_t *bootstrap;
    /** The place in `world`, from 0 on; without a world it is ignored. */
    uint32_t rank;
    /** One of LLCL_EXECUTION_* [LLCL_EXECUTION; auto]. */
    uint32_t execution;
    /**
     * Entries of the command queue; a power of two from 8 to 65536. A command takes one entry; one
     * that carries its bytes takes one more for each 120 bytes or part of 120 [LLCL_QUEUE_ENTRIES;
     * 1024].
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
     * Shares of LLCL_AM_POLICY_DISTRIBUTED; a power of two from 1 to 16 [LLCL_AM_SHARES; 4]. There
     * are never more shares than ranks, nor more than half the slots.
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
 * Fills a configuration so that every value comes from the environment, else is the default.
 *
 * `config`: the caller's struct, which is overwritten.
 * LLCL_OK; LLCL_ERR_INVALID if `config` is NULL. Any thread may call it.
 * This library's own.
 */
llcl_status_t llcl_config_default(llcl_config_t *config);

/**
 * Makes a world whose ranks are threads of this process. Each rank then calls llcl_init with its
 * number in the configuration.
 *
 * `size`: ranks, 1 to 4096. `world`: where the new world goes; ended by llcl_world_free.
 * LLCL_OK; LLCL_ERR_INVALID: no such size, or NULL; LLCL_ERR_SYSTEM or LLCL_ERR_NO_MEMORY: the
 * machine refuses sockets or a thread. Any thread may call it.
 * From: MPI implementations whose ranks are threads of one process.
 */
llcl_status_t llcl_world_create(uint32_t size,
                                llcl_world_t **world);

/**
 * Ends a world of this process.
 *
 * `world`: from llcl_world_create; ended by this call if it answers LLCL_OK.
 * LLCL_OK; LLCL_RETRY_BUSY: a rank has not been finalized: finalize it, and repeat;
 * LLCL_ERR_INVALID: NULL; LLCL_ERR_STATE: this process is a forked child of the one that made the
 * world. No other thread may use the world at the same time.
 * From: llcl_world_create, which it undoes.
 */
llcl_status_t llcl_world_free(llcl_world_t *world);

/*
 * 3. Contexts: from llcl_init to llcl_finalize.
 */

/** Major version: grows when programs must be changed. */
#define LLCL_VERSION_MAJOR 0u

/** Minor version: grows when functions are added. */
#define LLCL_VERSION_MINOR 2u

/** Patch version. */
#define LLCL_VERSION_PATCH 0u

/**
 * A context: one rank's place in a world, with its regions, handlers, teams, plans and threads.
 * Ended by llcl_finalize.
 */
typedef struct llcl_context_t llcl_context_t;

/** The limits and settings of a context. */
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
    /**
     * Most bytes of a payload that this rank receives in a slot, and of a reply that it receives.
     */
    uint32_t am_medium;
    /** Shares into which its slots are split. */
    uint32_t am_shares;
    /** Messages that may wait for their end at one time. */
    uint32_t am_requests;
    /** One of LLCL_AM_HANDLERS_*. */
    uint32_t am_handlers;
    /**
     * Bytes that this rank may still allocate, as far as can be said now: the memory that is
     * available to all processes of the machine, but not more than the limit on file sizes (ulimit
     * -f) allows.
     */
    uint64_t memory;
    /**
     * 1: a network makes progress only while the thread that has made the context is in a function
     * of the library, as MPI does below MPI_THREAD_MULTIPLE. 0: threads of the library make all
     * networks progress.
     */
    uint32_t opener_polls;
    /** 0. */
    uint32_t reserved;
} llcl_capabilities_t;

/** Its size, and else zeroes: `llcl_capabilities_t it = LLCL_CAPABILITIES_INIT;`. */
#define LLCL_CAPABILITIES_INIT {sizeof(llcl_capabilities_t), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, \
    0, 0, 0, 0, 0}

/**
 * Makes a context: takes this rank's place in its world. It is collective only with a `bootstrap`,
 * as over a communicator (llcl_mpi.h), and where another launcher than llcl-run has started the
 * ranks. Else it waits for no other rank; peers are contacted at their first use.
 *
 * Where another launcher (MPI, PMI, Slurm) has started several ranks and `bootstrap` is NULL, a
 * module (libllcl-mpi-*.so) joins them. The module then initialises MPI, and finalises it in
 * llcl_finalize.
 * `config`: read during the call; NULL: all defaults. `context`: where the new context goes; the
 * caller ends it by llcl_finalize.
 * LLCL_OK; LLCL_ERR_INVALID: a field or an environment variable has a bad value; or not all of the
 * launcher's variables LLCL_RANK, LLCL_SIZE and LLCL_HUB_FD are set; or another launcher has
 * started several ranks, without a `bootstrap`, a module, or LLCL_ALONE=1 for a world of one rank;
 * LLCL_ERR_UNSUPPORTED: ranks are on different machines, and no wire connects them;
 * LLCL_ERR_RANGE: there is no such rank in `world`; LLCL_ERR_STATE: the place is taken, or was
 * taken before; LLCL_ERR_NO_MEMORY or LLCL_ERR_SYSTEM: the machine refuses memory, a thread or a
 * socket. Where the call is collective, a rank that is refused tells the others, which answer
 * LLCL_ERR_SYSTEM; but not of a bad `bootstrap` or a wrong struct_size.
 * A process must not execute another program (exec) before llcl_finalize: it would be killed, and
 * until then other ranks might write to that program's memory.
 * Any thread may call it. It starts the progress thread and a thread that receives the news of
 * deaths; both block all signals and sleep while there is nothing to do.
 * From: gasnet_init of GASNet and MPI_Session_init of MPI, of which a process may have several.
 */
llcl_status_t llcl_init(const llcl_config_t *config,
                        llcl_context_t **context);

/**
 * Makes a second context of the same ranks: with its own regions, handlers, message slots, teams,
 * threads and configuration. A library uses it beside a runtime that also uses libllcl, and a
 * thread uses it to have a context of its own. Collective over all ranks of `context`, which wait
 * for each other as in llcl_allgather_bytes.
 *
 * The two contexts are independent: keys, regions and flushes of one mean nothing in the other.
 * Each is ended by its own llcl_finalize, in any order. In the second context the lowest rank of
 * each node does for its node what the launcher does for the first, also after it has left. If its
 * process ends before the other ranks of its node have left that context, these learn that all
 * ranks have died, and ranks of other nodes count all ranks of that node as dead. If it is rank 0,
 * all ranks count as dead. Ranks of other nodes learn of its death from the first context; if that
 * has ended before, or its hub dies with that rank, only when the network refuses a frame to it.
 * `context`: a live context. `config`: read during the call, with `world` and `bootstrap` NULL;
 * `rank` is ignored; NULL: all defaults. `duplicate`: where the new context goes.
 * LLCL_OK; LLCL_ERR_INVALID: NULL, or a field or an environment variable has a bad value;
 * LLCL_ERR_PEER_DEAD: a rank has died or has left; LLCL_ERR_STATE: inside a callback, or the
 * context is being finalized; LLCL_ERR_NO_MEMORY or LLCL_ERR_SYSTEM: the machine refuses memory, a
 * thread or a socket; LLCL_ERR_SYSTEM also if another rank is refused. Where one rank is refused,
 * the others are refused too. Threads of one rank must not call collective functions of one
 * context at the same time.
 * From: MPI_Comm_dup, and the several clients of GASNet-EX.
 */
llcl_status_t llcl_context_duplicate(llcl_context_t *context,
                                     const llcl_config_t *config,
                                     llcl_context_t **duplicate);

/**
 * Ends a context: leaves the world. Collective: returns when every living rank has called it.
 *
 * Operations under way end first, each once: those that can end within LLCL_FINALIZE_MS end
 * normally, the others with LLCL_ERR_CANCELED. Meanwhile other ranks are still served, and
 * messages that were sent before, and responses to them, are handled. All regions, teams and plans
 * of the context end with it, and so do all pointers into their memory; the program does not have
 * to free them before.
 * `context`: ended by this call, whatever the answer, except LLCL_ERR_INVALID (it is NULL) and
 * LLCL_ERR_STATE (inside a callback, ended before, in a forked child, or over a network that one
 * thread may use, as MPI with MPI_THREAD_FUNNELED, on another thread than that of llcl_init).
 * LLCL_OK; LLCL_ERR_SYSTEM: the launcher has gone, or the network has failed, or it may still use
 * memory of the program; LLCL_ERR_TIMEOUT: a callback or handler on a thread of the library has
 * not returned within LLCL_FINALIZE_MS and a second or two. Completions that wait for that thread
 * then never fire, and the memory and the threads of the context stay.
 * There is no such limit for a callback on the calling thread.
 * Some networks, such as MPI, cannot end a transfer with a rank that is stopped. Such transfers
 * delay this call by up to two seconds. If the network may use registered memory after that, the
 * answer is LLCL_ERR_SYSTEM, in place of LLCL_ERR_TIMEOUT, and llcl_last_error() names a region.
 * The program must then keep registered memory valid, and without other use, until it has ended
 * MPI (MPI_Finalize), or to the end of the process. Memory that the library has allocated stays
 * mapped so long. No answer tells of buffers outside of all regions: keep those of operations on a
 * stopped rank that have ended with LLCL_ERR_CANCELED as long.
 * No other thread may be in a call on this context, or begin one. Until this call returns,
 * callbacks may run on the calling thread and on the progress thread; requests that they post are
 * refused.
 * From: MPI_Finalize, but it also ends what is under way.
 */
llcl_status_t llcl_finalize(llcl_context_t *context);

/**
 * Leaves the world as llcl_finalize does, but waits for the other ranks no longer than a time.
 *
 * `context`: as of llcl_finalize. `timeout_ns`: nanoseconds; negative: for ever.
 * LLCL_OK and other statuses: as of llcl_finalize; LLCL_ERR_TIMEOUT: not all ranks have called it
 * in time; or a call of llcl_allgather_bytes_within has timed out and was not repeated; or as of
 * llcl_finalize. llcl_last_error() says which. The context has ended in each case. Ranks that have
 * not called it find that this rank has left (LLCL_ERR_PEER_DEAD); until then they may touch
 * memory that this rank had registered. LLCL_ERR_SYSTEM says that the network may do so, too.
 * The time does not bound MPI_Finalize, which waits for the other ranks, and which this function
 * calls if llcl_init has called MPI_Init_thread. If ranks are on several machines, the lowest rank
 * of each waits up to two seconds longer for those of its machine (llcl_bootstrap_t), and for an
 * answer of rank 0's process.
 * Threads: as of llcl_finalize.
 * From: GASPI, where each call takes a time-out.
 */
llcl_status_t llcl_finalize_within(llcl_context_t *context,
                                   int64_t timeout_ns);

/**
 * Ends the whole job: this process at once, every other rank by SIGTERM, and by SIGKILL if it runs
 * on after two seconds. llcl-run returns `exit_code`. The system keeps the low 8 bits of the code;
 * a code other than 0 in which these bits are 0 counts as 1. After an llcl_exit the call ends the
 * ranks within two seconds, too, but the code stays that of llcl_exit.
 *
 * `context`: any context of the job; NULL: only this process ends. Does not return. Any thread may
 * call it, also inside a callback. No exit handler runs.
 * From: MPI_Abort.
 */
void llcl_abort(llcl_context_t *context,
                int32_t exit_code);

/**
 * Ends the whole job in order, with an exit code: this process by exit(), which runs exit handlers
 * and writes buffered output; the others by SIGTERM, and by SIGKILL where they have not ended in
 * time. llcl-run returns the code. If streams other than stdout are not written within a second,
 * for instance since another thread reads from one, this process ends without exit handlers.
 *
 * The first call of a job decides the code. Later calls, of any thread of any rank, do not return
 * either; they can only shorten the time that the ranks have, as llcl_abort and `llcl-run
 * --timeout` can. A second call by the same thread, in an exit handler, writes the buffered output
 * and ends the process at once, with the code of the first.
 * `context`: any context of the job; NULL: only this process ends. `exit_code`: as of llcl_abort.
 * `grace_ms`: milliseconds that the processes of the job have to end. Where the context was made
 * with an llcl_bootstrap_t::abort, this function writes the buffered output of this process and
 * then calls that one, which ends the job.
 * Does not return. Any thread may call it, also inside a callback or a handler. It does not wait
 * for operations under way. From: gasnet_exit of GASNet.
 */
void llcl_exit(llcl_context_t *context,
               int32_t exit_code,
               uint32_t grace_ms);

/**
 * This rank's number, from 0 on.
 *
 * `context`: a live context; for NULL and one that has ended the answer is 0. Any thread may call
 * it.
 * From: MPI_Comm_rank.
 */
uint32_t llcl_rank(const llcl_context_t *context);

/**
 * The number of ranks of the world, dead ones included.
 *
 * `context`: a live context; for NULL and one that has ended the answer is 0. Any thread may call
 * it.
 * From: MPI_Comm_size.
 */
uint32_t llcl_size(const llcl_context_t *context);

/**
 * The version of the library that is loaded: major << 16 | minor << 8 | patch. Any thread may call
 * it.
 * From: MPI_Get_library_version, as a number.
 */
uint32_t llcl_version(void);

/**
 * The version of the library that is loaded, as text. Static, never NULL. Any thread may call it.
 * From: MPI_Get_library_version.
 */
const char *llcl_version_string(void);

/**
 * Reports the limits of a context, and the configuration in force.
 *
 * `context`: a live context. `capabilities`: the caller's struct with its struct_size set; filled.
 * LLCL_OK; LLCL_ERR_INVALID: NULL, or an unknown struct_size. Any thread may call it.
 * From: ibv_query_device of verbs and ucp_context_query of UCX.
 */
llcl_status_t llcl_query(llcl_context_t *context,
                         llcl_capabilities_t *capabilities);

/*
 * 4. Peers: whether they live, how they are reached, and how to contact them beforehand.
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
 * A network reads and writes the memory, without a thread of its owner, both registered and
 * allocated memory.
 */
#define LLCL_ACCESS_WIRE 4u

/** How a peer is reached. */
typedef struct llcl_peer_info_t {
    /** Bytes of this struct, set by the caller before the call. */
    uint64_t struct_size;
    /** One of LLCL_TRANSPORT_*. */
    uint32_t transport;
    /**
     * How memory that the peer registered is read: one of LLCL_ACCESS_*. Memory that it allocated
     * is mapped, except where `transport` is LLCL_TRANSPORT_WIRE.
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
     * How memory that the peer registered is written: one of LLCL_ACCESS_*. It equals
     * registered_access, except that it is LLCL_ACCESS_MESSAGE where a sandbox refuses only
     * process_vm_writev.
     */
    uint32_t registered_writes;
    /**
     * Why registered_writes is LLCL_ACCESS_MESSAGE: the errno with which the kernel refused
     * process_vm_writev, or kernel_error where it refuses both. 0 in the cases in which
     * kernel_error is 0.
     */
    int32_t kernel_write_error;
    /**
     * The number of the node on which it runs: ranks with equal numbers share memory. It is 0 in a
     * world without a network, which lies on one machine; else any number. The variable
     * LLCL_NODE_ID sets it: a number, or a list with one for each rank.
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
 * Whether a peer lives, as far as this rank knows. The launcher reports a death on its machine
 * within milliseconds.
 * A collective plan may hear of the death a little later: it may accept a round until then, and
 * the round fails.
 *
 * `context`: a live context. `peer`: a rank below llcl_size.
 * LLCL_OK: it lives, or has not been started yet; LLCL_ERR_PEER_DEAD: it has died or has left, or
 * the network has not reached it for a second;
 * LLCL_ERR_INVALID: `context` is NULL or there is no such rank. Any thread may call it.
 * From: the health vector of GASPI (gaspi_state_vec_get).
 */
llcl_status_t llcl_peer_alive(llcl_context_t *context,
                              uint32_t peer);

/**
 * Contacts peers, so that no later request waits for the contact or is answered by
 * LLCL_RETRY_CONNECTING. One request to the launcher contacts all of them at the same time. A peer
 * that was contacted before costs nothing.
 *
 * A program need not call this: a peer is contacted when it is first used.
 *
 * `context`: a live context. `peers`: `count` ranks, in any order, which may repeat; NULL: every
 * rank of the world, `count` is then ignored. Read during the call only.
 * Blocks until each of them has called llcl_init and was contacted, or has died; not inside a
 * callback.
 * LLCL_OK: all were contacted; LLCL_ERR_INVALID: NULL, or `peers` has a number that is no rank;
 * no peer was contacted. After the following errors the other peers were contacted.
 * LLCL_ERR_PEER_DEAD: one of them has died or has left; LLCL_ERR_NO_MEMORY, LLCL_ERR_SYSTEM: the
 * memory of one of them cannot be mapped, for instance because too many files are open;
 * LLCL_ERR_UNSUPPORTED: one of them runs on another node, and there is no network.
 * LLCL_ERR_STATE: inside a callback, or the context is being finalized. Any thread may call it.
 * From: the endpoints and connections of UCX, verbs and libfabric, which programs make beforehand.
 */
llcl_status_t llcl_connect(llcl_context_t *context,
                           const uint32_t *peers,
                           uint32_t count);

/**
 * Reports how a peer is reached. Contacts the peer if that has not happened yet, and then waits
 * until the peer has called llcl_init.
 *
 * `context`: a live context. `peer`: a rank below llcl_size. `info`: the caller's struct with its
 * struct_size set; filled.
 * LLCL_OK; LLCL_RETRY_CONNECTING: this is the first use of the peer, and the call is made inside a
 * callback: call again later;
 * LLCL_ERR_INVALID: NULL, an unknown struct_size or no such rank; LLCL_ERR_PEER_DEAD: it has died
 * or has left;
 * LLCL_ERR_STATE: the context is being finalized; LLCL_ERR_NO_MEMORY, LLCL_ERR_SYSTEM: its memory
 * cannot be mapped; LLCL_ERR_UNSUPPORTED: it runs on another node, and there is no network. Any
 * thread may call it.
 * From: the locality of ranks that GASNet reports (gex_System_QueryNbrhdInfo).
 */
llcl_status_t llcl_query_peer(llcl_context_t *context,
                              uint32_t peer,
                              llcl_peer_info_t *info);

/*
 * 5. Memory: regions, addresses in them, and how ranks exchange addresses.
 */

/**
 * Flag of llcl_region_allocate, llcl_region_allocate_at and llcl_region_register: the owner's
 * network adapter executes all atomics on the region, also those of the owner and of ranks of its
 * node. No thread of the owner takes part. The adapter's atomics and those of processors are not
 * atomic with respect to each other. Therefore a program may only load such words through
 * pointers, a request with a signal word in the region answers LLCL_ERR_UNSUPPORTED, and a plain
 * write to a word has no order with atomics on it. The words have 8 bytes; an atomic of another
 * type answers LLCL_ERR_UNSUPPORTED. A change does not wake a thread that waits for the word; the
 * thread notices the change within a millisecond. If the first use of a key is an atomic inside a
 * callback, the atomic answers LLCL_ERR_STATE. Without the flag a processor of the caller or of
 * the owner executes atomics; llcl_atomic_query tells which. If no network of the job has such
 * atomics, the function that makes the region answers LLCL_ERR_UNSUPPORTED.
 */
#define LLCL_REGION_DEVICE_ATOMICS 1u

/** A piece of this rank's memory that operations may name, here and at peers. */
typedef struct llcl_region_t llcl_region_t;

/**
 * An address in the calling rank's own memory, for the local side of operations. It is valid only
 * in the context that made it.
 */
typedef struct llcl_local_t {
    /** Bytes from the beginning of the region. */
    uint64_t offset;
    /** The region; 0: none. */
    uint64_t key;
} llcl_local_t;

/** All zeroes: `llcl_local_t it = LLCL_LOCAL_INIT;`. */
#define LLCL_LOCAL_INIT {0, 0}

/**
 * An address in a rank's memory. It is plain bytes with the same meaning at every rank, which may
 * be sent in any way. The program may add to `offset`, and must not change `key`.
 */
typedef struct llcl_remote_t {
    /** Bytes from the beginning of the region. */
    uint64_t offset;
    /** The region; 0: none. */
    uint64_t key;
} llcl_remote_t;

/** All zeroes: `llcl_remote_t it = LLCL_REMOTE_INIT;`. */
#define LLCL_REMOTE_INIT {0, 0}

/**
 * The llcl_local_t of an address of this process: of stack, heap, static or mapped memory that is
 * in no region. The call registers nothing, and there is nothing to end.
 *
 * It serves as the local side of operations, except of LLCL_AM_BULK, whose payload the receiver
 * reads: memory that peers access must lie in a region. In `send` and `receive` of a collective it
 * is treated as registered memory.
 * `pointer`: the first byte, of any alignment. The memory stays the caller's, and must stay valid
 * until the operation has ended. NULL: only operations of size 0 accept it. The address is not
 * checked: if nothing is mapped there, and the kernel copies, the operation ends with
 * LLCL_ERR_INVALID; a copy by the library ends the process by SIGSEGV. Any thread may call it.
 * From: the local buffers of MPI's and OpenSHMEM's puts, which do not have to lie in a window
 * either.
 */
llcl_local_t llcl_local_address(const void *pointer);

/**
 * The address `offset` bytes behind another one in a peer's memory.
 *
 * `remote`: an address. `offset`: bytes, modulo 2 to the 64th. The range is checked when the
 * address is used, not here. Any thread may call it.
 * This library's own.
 */
llcl_remote_t llcl_at(llcl_remote_t remote, uint64_t offset);

/**
 * The address `offset` bytes behind another one in the caller's own memory.
 *
 * `local`: an address. `offset`: bytes, modulo 2 to the 64th. The range is checked when the
 * address is used, not here. Any thread may call it.
 * This library's own.
 */
llcl_local_t llcl_local_at(llcl_local_t local, uint64_t offset);

/**
 * Allocates a region of zeroed memory. Peers on the same machine map it when they first use it;
 * their operations on it are then loads, stores and atomic instructions.
 *
 * The library uses the memory of freed regions again; if peers have mapped a region, only after
 * they have unmapped it, which their libraries do without the program's help. If there is no other
 * memory, because the kernel limits the size of files (ulimit -f), the call waits for the peers up
 * to 2 seconds.
 * `context`: a live context. `size`: bytes, at least 1. The kernel gives memory page by page as it
 * is touched; from 2 MiB on the library asks for huge pages. `flags`: 0 (see
 * LLCL_REGION_DEVICE_ATOMICS). `region`: where the new region goes; ended by llcl_region_free or
 * with the context.
 * LLCL_OK; LLCL_ERR_INVALID: NULL, size 0 or unknown flags; LLCL_ERR_UNSUPPORTED: `flags` has
 * LLCL_REGION_DEVICE_ATOMICS, and no network of the job has such atomics; LLCL_ERR_NO_MEMORY: more
 * than the machine has, a limit of the kernel, or as many regions exist as the configuration
 * allows; LLCL_ERR_SYSTEM: the kernel refuses to map the memory; LLCL_ERR_TIMEOUT: a peer that is
 * stopped has not unmapped the memory that is needed: call again when it runs; LLCL_RETRY_BUSY:
 * the call is made inside a callback and would have to wait for a peer: call again outside of it;
 * LLCL_ERR_STATE: the context is being finalized. Any thread may call it.
 * From: MPI_Win_allocate_shared, and the shared segments of GASNet (PSHM); here each region may be
 * made at one rank alone.
 */
llcl_status_t llcl_region_allocate(llcl_context_t *context,
                                   size_t size,
                                   uint32_t flags,
                                   llcl_region_t **region);

/**
 * Allocates a region at every rank, and gives every rank the addresses of all of them. Collective.
 *
 * `context`: a live context. `size`: bytes of this rank's region, at least 1; ranks may give
 * different ones.
 * `region`: where the new region goes, as of llcl_region_allocate. `remotes`: place for llcl_size
 * addresses, filled in the order of ranks: the beginning of each rank's region.
 * A rank whose call has returned may write to the others at once, while they still store their
 * initial values. If ranks store into their own regions first, all of them call llcl_barrier after
 * that, and none writes to another before. The memory is zero before any rank can write to it.
 * LLCL_OK; else as llcl_region_allocate and llcl_allgather_bytes. If one rank is refused, all are:
 * that rank gets the sentence with the reason, the others get its status, and no region is made. A
 * rank that cannot tell the others, because `context` is NULL, inside a callback or during
 * llcl_finalize, is refused alone.
 * Threads of one rank must not call collective functions of the world at the same time. The
 * calling thread sleeps until all ranks have called it. From: shmem_malloc of OpenSHMEM and
 * MPI_Win_allocate, but with addresses that are plain bytes.
 */
llcl_status_t llcl_region_allocate_shared(llcl_context_t *context,
                                          size_t size,
                                          llcl_region_t **region,
                                          llcl_remote_t *remotes);

/**
 * Makes a region of memory that the caller owns: heap, stack or static. Peers reach it through the
 * kernel, or by messages to this rank's progress thread; atomics on it are executed by this rank.
 *
 * `context`: a live context. `address`: the first byte; it must stay valid until llcl_region_free
 * has answered LLCL_OK. If this process may only read the memory, peers may read it, but a write
 * or an atomic of a peer may end this process by SIGSEGV. For atomics of n bytes it must be
 * aligned to n. `size`: bytes, at least 1. Regions may overlap. `flags`: 0 (see
 * LLCL_REGION_DEVICE_ATOMICS). `region`: where the new region goes; ended by llcl_region_free or
 * with the context.
 * LLCL_OK; LLCL_ERR_INVALID: NULL, size 0 or unknown flags; LLCL_ERR_UNSUPPORTED: `flags` has
 * LLCL_REGION_DEVICE_ATOMICS, and no network of the job has such atomics; LLCL_ERR_RANGE: the
 * memory would leave the address space; LLCL_ERR_NO_MEMORY: as many regions exist as the
 * configuration allows; LLCL_ERR_STATE: the context is being finalized. A network that reads and
 * writes memory may refuse this memory, with its own error. Any thread may call it.
 * From: the registration of memory of verbs, UCX and GASPI.
 */
llcl_status_t llcl_region_register(llcl_context_t *context,
                                   void *address,
                                   size_t size,
                                   uint32_t flags,
                                   llcl_region_t **region);

/**
 * Ends a region. From now on its addresses are refused, at every rank. When the call returns,
 * allocated memory is gone, and the library no longer uses registered memory.
 *
 * It waits for the operations of this rank that were accepted before, but not for those of peers,
 * so the program should first make sure that no peer uses the region. Some networks, such as MPI,
 * cannot end a transfer that they have begun: it waits for these, up to 10 s, and inside a
 * callback up to 1 ms. After that it answers LLCL_ERR_SYSTEM. Inside a callback it does not wait
 * for operations, so no other thread may begin one on the region during the call. A peer that is
 * in the middle of a copy by the kernel may still touch registered memory. A late store of a peer
 * into allocated memory is lost: the memory goes back to the kernel at once, but no other region
 * gets its range of the memory file before every living peer that has used the region has unmapped
 * it. A peer's read that is under way may bring zeros.
 * `region`: ended by this call, except where it answers LLCL_RETRY_BUSY.
 * LLCL_OK; LLCL_RETRY_BUSY: inside a callback while operations are under way: call again later. In
 * offload mode the progress thread calls completions in the middle of its operations, so inside
 * them this is the answer always, and another thread must end the region; LLCL_ERR_STATE: it was
 * freed before (see the conventions on handles); LLCL_ERR_INVALID: NULL.
 * With any other status the region has ended, but the wait has failed, or a network has not said
 * that it no longer uses the memory: allocated memory then stays mapped here until the process
 * ends, and the caller must keep registered memory valid for as long. Any thread may call it,
 * once.
 * From: MPI_Win_free, and ibv_dereg_mr of verbs.
 */
llcl_status_t llcl_region_free(llcl_region_t *region);

/**
 * The first byte of a region, in this process.
 *
 * `region`: a handle of a live context. NULL for NULL and for a region that was freed. Any thread
 * may call it.
 * From: the attribute MPI_WIN_BASE of MPI.
 */
void *llcl_region_address(const llcl_region_t *region);

/**
 * The size of a region in bytes.
 *
 * `region`: a handle of a live context. 0 for NULL and for a region that was freed. Any thread may
 * call it.
 * From: the attribute MPI_WIN_SIZE of MPI.
 */
size_t llcl_region_size(const llcl_region_t *region);

/**
 * The address of a byte of a region, for the local side of this context's operations.
 *
 * `region`: a handle of a live context; for NULL or a region that was freed the answer is an
 * address that operations refuse with LLCL_ERR_KEY. `offset`: bytes from the beginning of the
 * region; checked when the address is used, not here. Any thread may call it.
 * This library's own.
 */
llcl_local_t llcl_region_local(const llcl_region_t *region, uint64_t offset);

/**
 * The address of a byte of a region, as every rank uses it for the remote side of operations.
 *
 * `region`: a handle of a live context; for NULL or a region that was freed the answer is an
 * address that operations refuse with LLCL_ERR_KEY. `offset`: bytes from the beginning of the
 * region; checked when the address is used, not here. Any thread may call it.
 * This library's own.
 */
llcl_remote_t llcl_region_remote(const llcl_region_t *region, uint64_t offset);

/**
 * Gathers bytes from every rank at every rank. Collective; it is meant for addresses and small
 * tables.
 *
 * `context`: a live context. `mine`: `size` bytes of this rank; may be NULL if `size` is 0.
 * `size`: bytes, the same at every rank, at most 1 GiB for all ranks together; with 0 the call
 * only waits for all ranks. `all`: place for llcl_size times `size` bytes, filled in the order of
 * ranks; may be NULL if `size` is 0; must not overlap `mine`.
 * LLCL_OK; LLCL_ERR_INVALID: NULL, or the ranks gave different sizes, or another rank is refused;
 * LLCL_ERR_RANGE: `size` is too large; LLCL_ERR_NO_MEMORY: no memory for so many bytes;
 * LLCL_ERR_PEER_DEAD: a rank has died or has left, and this function will never succeed again in
 * this context: go on with llcl_team_create and llcl_allgather; LLCL_ERR_STATE: inside a callback,
 * or the context is being finalized;
 * LLCL_ERR_SYSTEM: the launcher has gone. Threads of one rank must not call it at the same time,
 * because their calls would be matched with those of other ranks in arbitrary order. The calling
 * thread sleeps until all ranks have called it.
 * From: MPI_Allgather, and the fence of PMI, by which ranks exchange addresses at the start.
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
 * LLCL_OK and other statuses: as there; LLCL_ERR_TIMEOUT: some rank has not made its call yet, and
 * `all` is unchanged. This rank's bytes have already been sent. Call this function or
 * llcl_allgather_bytes again to go on waiting, with the same `size` and the same bytes in `mine`;
 * another size, or NULL, answers LLCL_ERR_STATE. A call with parameters for which it is refused
 * waits as well, to tell the others. Until such a call has ended, llcl_barrier and
 * llcl_finalize_within are the only other collective functions of the world that may be called.
 * Threads: as there.
 * From: gaspi_barrier and gaspi_allreduce of GASPI, which are called again after a time-out.
 */
llcl_status_t llcl_allgather_bytes_within(llcl_context_t *context,
                                          const void *mine,
                                          size_t size,
                                          void *all,
                                          int64_t timeout_ns);

/**
 * The address at which a peer's memory is mapped in this process. The caller may use the pointer
 * for loads, stores and atomic instructions, as on memory that threads share.
 *
 * A store through it does not wake a thread that sleeps in llcl_wait_word: call llcl_wake after
 * it. The pointer stays readable until the context ends or another region gets the address. After
 * the owner has freed the region, loads bring undefined values, and stores are lost.
 * `context`: a live context. `peer`: the owner of the memory, a rank below llcl_size. `remote`:
 * the address. `size`: bytes that the caller uses from there on.
 * Returns NULL, with a sentence in llcl_last_error(), if the memory is not mapped (registered
 * memory of another rank), or if the peer, the key or the range is wrong. Waits for the first
 * contact with the peer; inside a callback it returns NULL instead. Any thread may call it.
 * From: MPI_Win_shared_query, and shmem_ptr of OpenSHMEM.
 */
void *llcl_remote_pointer(llcl_context_t *context,
                          uint32_t peer,
                          llcl_remote_t remote,
                          size_t size);

/*
 * 6. Reads and writes: of a peer's memory, also with a signal.
 */

/**
 * Flag: the request goes through the command queue, whatever the execution in force, and its
 * completion never fires inside the call. It is for large copies that should run beside the
 * caller's work, and for callers that hold locks which their callbacks take.
 */
#define LLCL_FLAG_DEFER 1u

/**
 * Flag: where a try function would answer "try again", the library accepts the request, parks it,
 * and posts it when there is room. Parked requests to one peer are posted in their order. So a
 * callback that posts the next request does not need a list of its own. The source must not change
 * until `on_local` or `on_complete` fires, even where the call would copy it without this flag;
 * only the bytes of value writes and small writes are copied in the call. An error that is found
 * only when the request is posted is reported by its completions. At most LLCL_PARKED requests are
 * parked at one time (llcl_stats_t::parked_high_water); beyond that the answer is "try again". The
 * flag may be combined with LLCL_FLAG_DEFER.
 */
#define LLCL_FLAG_PARK 2u

/**
 * Flag: if the operation ends before the call returns, the call answers LLCL_DONE, and none of the
 * request's completions fires. If it ends later, the flag changes nothing: the answer is LLCL_OK,
 * and the completions fire. An operation ends later in offload mode, with LLCL_FLAG_DEFER, and
 * where the owner of the memory or a network must act. Blocking functions ignore the flag. The
 * flag saves the cost of a completion that would tell nothing new.
 */
#define LLCL_FLAG_DONE 4u

/** The signal word is set to the value. */
#define LLCL_SIGNAL_SET 1u

/** The value is added to the signal word. */
#define LLCL_SIGNAL_ADD 2u

/**
 * A read: from a peer's memory into memory of the caller: a region, or any (llcl_local_address).
 */
typedef struct llcl_read_params_t {
    /** The rank to read from. */
    uint32_t peer;
    /** LLCL_FLAG_*, or 0. */
    uint32_t flags;
    /** Where to read. */
    llcl_remote_t source;
    /** Where the bytes go. */
    llcl_local_t destination;
    /** How many bytes. With 0 both addresses are checked, and no memory is touched. */
    size_t size;
    /** Fires when the bytes are in `destination`. */
    llcl_completion_t on_complete;
} llcl_read_params_t;

/** All zeroes: `llcl_read_params_t it = LLCL_READ_PARAMS_INIT;`. */
#define LLCL_READ_PARAMS_INIT {0, 0, LLCL_REMOTE_INIT, LLCL_LOCAL_INIT, 0, \
    LLCL_COMPLETION_INIT}

/**
 * A write: from memory of the caller, a region or any (llcl_local_address), to a peer's memory.
 */
typedef struct llcl_write_params_t {
    /** The rank to write to. */
    uint32_t peer;
    /** LLCL_FLAG_*, or 0. */
    uint32_t flags;
    /** The bytes. */
    llcl_local_t source;
    /** Where they go. */
    llcl_remote_t destination;
    /** How many bytes. With 0 both addresses are checked, and no memory is touched. */
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
    /** How many bytes. With 0 both addresses are checked, and only the signal word changes. */
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
 * Source and destination may overlap if they are memory of one process, as for memmove. The
 * destination is undefined until `on_complete`.
 * `context`: a live context. `params`: read during the call only.
 * LLCL_OK: accepted; LLCL_RETRY_QUEUE_FULL, LLCL_RETRY_NO_TAG, LLCL_RETRY_BUSY,
 * LLCL_RETRY_CONNECTING: try again;
 * LLCL_ERR_INVALID, LLCL_ERR_RANGE, LLCL_ERR_KEY: llcl_last_error() says what is wrong with
 * `params`; LLCL_ERR_PEER_DEAD: the peer has died or has left; LLCL_ERR_STATE: the context is
 * being finalized; LLCL_ERR_NO_MEMORY, LLCL_ERR_SYSTEM: the peer's memory cannot be mapped, or a
 * system call that copies has failed. The completion may report LLCL_ERR_PEER_DEAD, LLCL_ERR_KEY
 * (the owner has freed the region, or may not access its memory), LLCL_ERR_INVALID (this rank may
 * not access the local memory), LLCL_ERR_SYSTEM (a network or a system call has failed) or
 * LLCL_ERR_CANCELED.
 * Any thread may call it, also inside a callback. The conventions say on which thread the
 * completions run. From: the interface of Endo and Taura's low-level communication layer
 * (listing 1 there), with the reason of a refusal added.
 */
llcl_status_t llcl_try_read_async(llcl_context_t *context,
                                  const llcl_read_params_t *params);

/**
 * Reads from a peer: like llcl_try_read_async, but tries until it is accepted, and helps with
 * progress meanwhile.
 *
 * `context` and `params`: as there. LLCL_OK or an error as there, never a "try again"; inside a
 * callback LLCL_ERR_STATE. Any thread may call it.
 * This library's own.
 */
llcl_status_t llcl_read_async(llcl_context_t *context, const llcl_read_params_t *params);

/**
 * Reads from a peer and waits for the end, helping with progress meanwhile and sleeping if it
 * takes long.
 *
 * `context` and `params`: as for llcl_try_read_async; the completions must be
 * llcl_no_completion(). LLCL_OK: done; else an error as there, or the one with which the operation
 * ended; inside a callback LLCL_ERR_STATE. Any thread may call it.
 * From: shmem_getmem of OpenSHMEM.
 */
llcl_status_t llcl_read(llcl_context_t *context,
                        const llcl_read_params_t *params);

/**
 * Writes to a peer, if that is possible now.
 *
 * The source must not change until `on_local` or `on_complete`. Source and destination may overlap
 * if they are memory of one process, as for memmove.
 * `context`: a live context. `params`: read during the call only.
 * LLCL_OK: accepted; LLCL_RETRY_QUEUE_FULL, LLCL_RETRY_NO_TAG, LLCL_RETRY_BUSY,
 * LLCL_RETRY_CONNECTING: try again;
 * LLCL_ERR_INVALID, LLCL_ERR_RANGE, LLCL_ERR_KEY: llcl_last_error() says what is wrong with
 * `params`; LLCL_ERR_PEER_DEAD: the peer has died or has left; LLCL_ERR_STATE: the context is
 * being finalized; LLCL_ERR_NO_MEMORY, LLCL_ERR_SYSTEM: the peer's memory cannot be mapped, or a
 * system call that copies has failed. The completion may report LLCL_ERR_PEER_DEAD, LLCL_ERR_KEY
 * (the owner has freed the region, or may not access its memory), LLCL_ERR_INVALID (this rank may
 * not access the local memory), LLCL_ERR_SYSTEM (a network or a system call has failed) or
 * LLCL_ERR_CANCELED.
 * Any thread may call it, also inside a callback. The conventions say on which thread the
 * completions run. From: the interface of Endo and Taura's low-level communication layer
 * (listing 1 there), with the reason of a refusal added.
 */
llcl_status_t llcl_try_write_async(llcl_context_t *context,
                                   const llcl_write_params_t *params);

/**
 * Writes to a peer: like llcl_try_write_async, but tries until it is accepted, and helps with
 * progress meanwhile.
 *
 * `context` and `params`: as there. LLCL_OK or an error as there, never a "try again"; inside a
 * callback LLCL_ERR_STATE. Any thread may call it.
 * This library's own.
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
 * From: shmem_putmem of OpenSHMEM, but it ends when the data has arrived.
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
 * LLCL_ERR_INVALID, LLCL_ERR_RANGE, LLCL_ERR_KEY: llcl_last_error() says what is wrong with
 * `params`; LLCL_ERR_UNSUPPORTED: the signal word lies in a region with
 * LLCL_REGION_DEVICE_ATOMICS; LLCL_ERR_PEER_DEAD: the peer has died or has left; LLCL_ERR_STATE:
 * the context is being finalized; LLCL_ERR_NO_MEMORY, LLCL_ERR_SYSTEM: the peer's memory cannot be
 * mapped, or a system call that copies has failed. The completion may report LLCL_ERR_PEER_DEAD,
 * LLCL_ERR_KEY (the owner has freed the region, or may not access its memory), LLCL_ERR_INVALID
 * (this rank may not access the local memory), LLCL_ERR_SYSTEM (a network or a system call has
 * failed) or LLCL_ERR_CANCELED.
 * Any thread may call it, also inside a callback. The conventions say on which thread the
 * completions run. From: the put with signal of OpenSHMEM 1.5, and the write with notification of
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
 * This library's own.
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
 * From: the put with signal of OpenSHMEM 1.5 (shmem_putmem_signal).
 */
llcl_status_t llcl_write_signal(llcl_context_t *context,
                                const llcl_write_signal_params_t *params);

/*
 * 7. Small writes: the request carries the bytes itself.
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

/** A write of a few bytes from any memory of the caller. */
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
     * How many bytes, at most `small` of llcl_capabilities_t. With 0 the address is checked, and
     * no memory is touched.
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
 * LLCL_ERR_INVALID, LLCL_ERR_RANGE, LLCL_ERR_KEY: llcl_last_error() says what is wrong with
 * `params`; LLCL_ERR_PEER_DEAD: the peer has died or has left; LLCL_ERR_STATE: the context is
 * being finalized; LLCL_ERR_NO_MEMORY, LLCL_ERR_SYSTEM: the peer's memory cannot be mapped. The
 * completion may report LLCL_ERR_PEER_DEAD, LLCL_ERR_KEY (the owner has freed the region, or may
 * not access its memory), LLCL_ERR_SYSTEM (a network or a system call has failed) or
 * LLCL_ERR_CANCELED.
 * Any thread may call it, also inside a callback. The conventions say on which thread the
 * completions run. From: the atomic on-the-fly send (AOTF) of the DIMMnet interfaces, as the Fagus
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
 * This library's own.
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
 * From: llcl_try_write_value_async, for whose end it waits.
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
 * LLCL_ERR_INVALID, LLCL_ERR_RANGE, LLCL_ERR_KEY: llcl_last_error() says what is wrong with
 * `params`; LLCL_ERR_PEER_DEAD: the peer has died or has left; LLCL_ERR_STATE: the context is
 * being finalized; LLCL_ERR_NO_MEMORY, LLCL_ERR_SYSTEM: the peer's memory cannot be mapped. The
 * completion may report LLCL_ERR_PEER_DEAD, LLCL_ERR_KEY (the owner has freed the region, or may
 * not access its memory), LLCL_ERR_SYSTEM (a network or a system call has failed) or
 * LLCL_ERR_CANCELED.
 * Any thread may call it, also inside a callback. The conventions say on which thread the
 * completions run. From: the block on-the-fly send (BOTF) of the DIMMnet interfaces, as the Fagus
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
 * This library's own.
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
 * From: llcl_try_write_small_async, for whose end it waits.
 */
llcl_status_t llcl_write_small(llcl_context_t *context,
                               const llcl_write_small_params_t *params);

/*
 * 8. Atomics: on words of a peer. All changes of a word have one order, whatever rank makes them.
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

/**
 * Sets the word to the operand and fetches its former value; the same as STORE with a result.
 */
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
 * Every processor of the machine changes the word by atomic instructions. The program may do so as
 * well, through pointers, with the atomics of C.
 */
#define LLCL_DOMAIN_PROCESSOR 1u

/**
 * Only the process that owns the word changes it, at the request of the other ranks. The owner's
 * program may do so as well, with the atomics of C.
 */
#define LLCL_DOMAIN_OWNER 2u

/**
 * Only the network adapter of the rank that owns the word changes it, for all ranks
 * (LLCL_REGION_DEVICE_ATOMICS). A program may only load it.
 */
#define LLCL_DOMAIN_DEVICE 3u

/**
 * One atomic instruction of the calling processor: some 5 ns on a word that no other core uses.
 */
#define LLCL_COST_INSTRUCTION 1u

/**
 * A loop of the calling processor around a compare-and-swap, because it has no instruction for the
 * operation. Each turn costs as much as LLCL_COST_INSTRUCTION. There is one more turn for each
 * change of the word by others in the meantime.
 */
#define LLCL_COST_LOOP 2u

/**
 * A request to the owner and its answer: some 0.3 us if a thread of the owner is awake; if none
 * is, 10 us and more, since one must be woken.
 */
#define LLCL_COST_MESSAGES 3u

/** One command of the network and its end, without a thread of the owner. */
#define LLCL_COST_NETWORK 4u

/**
 * A loop around the network's compare-and-swap, because the network has no command for the
 * operation: two such commands, and one more for each change of the word by others in the
 * meantime.
 */
#define LLCL_COST_NETWORK_LOOP 5u

/** How an atomic operation would be executed. */
typedef struct llcl_atomic_info_t {
    /** Bytes of this struct, set by the caller before the call. */
    uint64_t struct_size;
    /** 1: the type has the operation; 0: it has not. */
    uint32_t supported;
    /** One of LLCL_DOMAIN_*; 0 where it is not supported. */
    uint32_t domain;
    /**
     * One of LLCL_COST_*; 0 where it is not supported. LLCL_EXECUTION_OFFLOAD adds the way through
     * the command queue to it.
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
    /** The expected value of COMPARE_SWAP, in the same form. Else ignored. */
    uint64_t compare;
    /**
     * Where the word's former value goes: any memory of the caller, of the size of the type and
     * aligned to it. It is written before `on_complete` fires. NULL: the value is not fetched; not
     * allowed with LOAD.
     */
    void *result;
    /** Fires when the operation has ended. */
    llcl_completion_t on_complete;
} llcl_atomic_params_t;

/** All zeroes: `llcl_atomic_params_t it = LLCL_ATOMIC_PARAMS_INIT;`. */
#define LLCL_ATOMIC_PARAMS_INIT {0, 0, LLCL_REMOTE_INIT, 0, 0, 0, 0, NULL, \
    LLCL_COMPLETION_INIT}

/**
 * How an atomic operation on a word would be executed.
 *
 * `context`: a live context. `peer`: the owner of the word, a rank below llcl_size. `target`: the
 * word. `op` and `type`: as of llcl_atomic_params_t. `info`: the caller's struct with its
 * struct_size set; filled.
 * LLCL_OK, also if the type does not have the operation; LLCL_ERR_INVALID: NULL, a misaligned
 * word, or no such peer, operation or type; LLCL_ERR_KEY, LLCL_ERR_RANGE: there is no such word;
 * LLCL_ERR_PEER_DEAD: the peer has died or has left; LLCL_ERR_STATE: the context is being
 * finalized; LLCL_RETRY_CONNECTING: this is the first use of the peer, and the call is made inside
 * a callback: call again later. Outside of callbacks it waits for the contact. Any thread may call
 * it.
 * From: fi_query_atomic of libfabric.
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
 * The change is an acquire and a release. The memory of the result must stay valid until
 * `on_complete`. `context`: a live context. `params`: read during the call only.
 * LLCL_OK: accepted; LLCL_RETRY_QUEUE_FULL, LLCL_RETRY_NO_TAG, LLCL_RETRY_BUSY,
 * LLCL_RETRY_CONNECTING: try again;
 * LLCL_ERR_INVALID, LLCL_ERR_RANGE, LLCL_ERR_KEY: llcl_last_error() says what is wrong with
 * `params`; LLCL_ERR_PEER_DEAD: the peer has died or has left; LLCL_ERR_STATE: the context is
 * being finalized; LLCL_ERR_NO_MEMORY, LLCL_ERR_SYSTEM: the peer's memory cannot be mapped.
 * LLCL_ERR_UNSUPPORTED: the type does not have the operation. The completion may report
 * LLCL_ERR_PEER_DEAD, LLCL_ERR_KEY (the owner has freed the region), LLCL_ERR_SYSTEM (a network or
 * a system call has failed) or LLCL_ERR_CANCELED.
 * Any thread may call it, also inside a callback. The conventions say on which thread the
 * completions run. From: Akimoto and others' evaluation of the InfiniBand atomics; unlike there,
 * local and remote changes are atomic with respect to each other.
 */
llcl_status_t llcl_try_atomic_async(llcl_context_t *context,
                                    const llcl_atomic_params_t *params);

/**
 * Changes or fetches a word of a peer atomically: like llcl_try_atomic_async, but tries until it
 * is accepted, and helps with progress meanwhile.
 *
 * `context` and `params`: as there. LLCL_OK or an error as there, never a "try again"; inside a
 * callback LLCL_ERR_STATE. Any thread may call it.
 * This library's own.
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
 * From: MPI_Fetch_and_op.
 */
llcl_status_t llcl_atomic(llcl_context_t *context,
                          const llcl_atomic_params_t *params);

/*
 * 9. Atomics on 64-bit words: fetch-add and compare-and-swap, as functions of their own.
 */

/** A fetch-add on a uint64_t. */
typedef struct llcl_fetch_add_params_t {
    /** The rank whose word it is. */
    uint32_t peer;
    /** LLCL_FLAG_*, or 0. */
    uint32_t flags;
    /** The word, aligned to 8 bytes. */
    llcl_remote_t target;
    /** The number that is added, modulo 2 to the 64th. */
    uint64_t operand;
    /** Where the former value goes. It is written before `on_complete` fires; may be NULL. */
    uint64_t *result;
    /** Fires when the operation has ended. */
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
    /** The value that the word must have for the exchange to happen. */
    uint64_t compare;
    /** The value that the word then gets. */
    uint64_t desired;
    /**
     * Where the former value goes. It is written before `on_complete` fires; may be NULL. The
     * exchange happened if the former value equals `compare`.
     */
    uint64_t *result;
    /** Fires when the operation has ended, whether it exchanged or not. */
    llcl_completion_t on_complete;
} llcl_compare_swap_params_t;

/** All zeroes: `llcl_compare_swap_params_t it = LLCL_COMPARE_SWAP_PARAMS_INIT;`. */
#define LLCL_COMPARE_SWAP_PARAMS_INIT {0, 0, LLCL_REMOTE_INIT, 0, 0, NULL, \
    LLCL_COMPLETION_INIT}

/**
 * Adds to a uint64_t of a peer atomically, if that is possible now.
 *
 * The change is an acquire and a release. The memory of the result must stay valid until
 * `on_complete`. `context`: a live context. `params`: read during the call only.
 * LLCL_OK: accepted; LLCL_RETRY_QUEUE_FULL, LLCL_RETRY_NO_TAG, LLCL_RETRY_BUSY,
 * LLCL_RETRY_CONNECTING: try again;
 * LLCL_ERR_INVALID, LLCL_ERR_RANGE, LLCL_ERR_KEY: llcl_last_error() says what is wrong with
 * `params`; LLCL_ERR_PEER_DEAD: the peer has died or has left; LLCL_ERR_STATE: the context is
 * being finalized; LLCL_ERR_NO_MEMORY, LLCL_ERR_SYSTEM: the peer's memory cannot be mapped. The
 * completion may report LLCL_ERR_PEER_DEAD, LLCL_ERR_KEY (the owner has freed the region),
 * LLCL_ERR_SYSTEM (a network or a system call has failed) or LLCL_ERR_CANCELED.
 * Any thread may call it, also inside a callback. The conventions say on which thread the
 * completions run. From: Akimoto and others' evaluation of the InfiniBand atomics; unlike there,
 * local and remote changes are atomic with respect to each other.
 */
llcl_status_t llcl_try_fetch_add_async(llcl_context_t *context,
                                       const llcl_fetch_add_params_t *params);

/**
 * Adds to a uint64_t of a peer atomically: like llcl_try_fetch_add_async, but tries until it is
 * accepted, and helps with progress meanwhile.
 *
 * `context` and `params`: as there. LLCL_OK or an error as there, never a "try again"; inside a
 * callback LLCL_ERR_STATE. Any thread may call it.
 * This library's own.
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
 * From: shmem_atomic_fetch_add of OpenSHMEM.
 */
llcl_status_t llcl_fetch_add(llcl_context_t *context,
                             const llcl_fetch_add_params_t *params);

/**
 * Exchanges a uint64_t of a peer if it has an expected value, atomically, if that is possible now.
 *
 * The change is an acquire and a release. The memory of the result must stay valid until
 * `on_complete`. `context`: a live context. `params`: read during the call only.
 * LLCL_OK: accepted; LLCL_RETRY_QUEUE_FULL, LLCL_RETRY_NO_TAG, LLCL_RETRY_BUSY,
 * LLCL_RETRY_CONNECTING: try again;
 * LLCL_ERR_INVALID, LLCL_ERR_RANGE, LLCL_ERR_KEY: llcl_last_error() says what is wrong with
 * `params`; LLCL_ERR_PEER_DEAD: the peer has died or has left; LLCL_ERR_STATE: the context is
 * being finalized; LLCL_ERR_NO_MEMORY, LLCL_ERR_SYSTEM: the peer's memory cannot be mapped. The
 * completion may report LLCL_ERR_PEER_DEAD, LLCL_ERR_KEY (the owner has freed the region),
 * LLCL_ERR_SYSTEM (a network or a system call has failed) or LLCL_ERR_CANCELED.
 * Any thread may call it, also inside a callback. The conventions say on which thread the
 * completions run. From: Akimoto and others' evaluation of the InfiniBand atomics; unlike there,
 * local and remote changes are atomic with respect to each other.
 */
llcl_status_t llcl_try_compare_swap_async(llcl_context_t *context,
                                          const llcl_compare_swap_params_t *params);

/**
 * Exchanges a uint64_t of a peer if it has an expected value, atomically: like
 * llcl_try_compare_swap_async, but tries until it is accepted, and helps with progress meanwhile.
 *
 * `context` and `params`: as there. LLCL_OK or an error as there, never a "try again"; inside a
 * callback LLCL_ERR_STATE. Any thread may call it.
 * This library's own.
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
 * From: shmem_atomic_compare_swap of OpenSHMEM.
 */
llcl_status_t llcl_compare_swap(llcl_context_t *context,
                                const llcl_compare_swap_params_t *params);

/*
 * 10. Waiting: for operations, words and messages.
 */

/** For llcl_flush_within: every peer. */
#define LLCL_ALL_PEERS 4294967295u

/** A bit of llcl_awaited_t::flags: only `peer` can change the word. */
#define LLCL_WAIT_FROM_PEER 1u

/** A flag of llcl_wait_any and llcl_wait_fd: the wait also ends when handlers have run. */
#define LLCL_WAIT_MESSAGES 1u

/** One of several words that a thread waits for. */
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
 * LLCL_OK: their effects can be seen at the peer, except the effects of operations that failed and
 * whose completions reported that;
 * LLCL_ERR_PEER_DEAD: the peer has died or has left; LLCL_ERR_INVALID: NULL, or no such rank;
 * LLCL_ERR_STATE: inside a callback, or the context is being finalized.
 * Any other status is that of an operation which was accepted without a completion and has failed
 * since the last flush with this peer: the first such operation. llcl_last_error() says which
 * operation that was, and how many failed after it. All operations have ended in this case, too,
 * and the next flush does not report the failure again. Any thread may call it; it waits for the
 * operations of all threads. Helps with progress meanwhile, and sleeps if it takes long.
 * From: MPI_Win_flush, and ucp_ep_flush of UCX.
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
 * Any thread may call it; it waits for the operations of all threads. Helps with progress
 * meanwhile, and sleeps if it takes long.
 * From: MPI_Win_flush_all.
 */
llcl_status_t llcl_flush_all(llcl_context_t *context);

/**
 * Waits until a word has reached a value. The thread helps with progress for LLCL_SPIN_US, over a
 * network that wakes no thread, such as MPI, for at least 1 ms, and then sleeps.
 *
 * Every change of the word by this library wakes the sleeping thread: by a completion, a callback,
 * a handler, or an operation of a peer. Two changes do not. After a store through a pointer the
 * program must call llcl_wake. And a read or a fetch into the word does not wake; wait for its
 * completion instead. When the word was changed by an atomic, a signal, a value or a write of 8
 * aligned bytes, the caller also sees what the requester did before. If the word is part of a
 * larger write, the wait ends when the word's own bytes have changed; other bytes of that write
 * may come later.
 * `context`: a live context. `word`: any uint64_t of this process, aligned to 8 bytes. While the
 * call waits the word may be changed by atomic stores only. `at_least`: the value to be reached,
 * compared unsigned; so a STORE or ADD word that reports a failure ends every wait. `timeout_ns`:
 * nanoseconds; negative: for ever; 0: only looks, and runs up to 64 handlers. If a handler runs
 * in the call when the time is over, the call returns after the handler, or up to 10 ms later if
 * others follow. Completions that are due fire before, up to 64 at a time.
 * LLCL_OK: reached, and the caller sees what was done before the word was changed;
 * LLCL_ERR_TIMEOUT: not reached in time; LLCL_ERR_PEER_DEAD: not reached, and after a death no
 * rank is left that could change the word. That is so when all other ranks are dead, or all ranks
 * that have ever used the region of the word; when the messages that they had sent are handled;
 * and when this rank's own operations have ended. (A living rank that has not used the region yet
 * does not count: name it by llcl_wait_word_from. An operation with a slow living peer delays this
 * answer, because its completion may change the word. So does a nonblocking collective: until its
 * plan is made, and then by 0.2 s at most.)
 * LLCL_ERR_INVALID: NULL or misaligned; LLCL_ERR_STATE: the value has not been reached, and the
 * call is made inside a callback or the context is being finalized.
 * Any number of threads may wait, for one word or for several. After its first second a sleeping
 * thread does not run until the thread that stores to the word wakes it. Stores to other words
 * cost as much as without a sleeping thread. Threads of a rank can sleep on up to 255 words in
 * this way; every store into the rank's memory wakes the threads that sleep on further words. A
 * word that lies in several regions is read every millisecond.
 * From: shmem_wait_until of OpenSHMEM, and the futex of Linux.
 */
llcl_status_t llcl_wait_word(llcl_context_t *context,
                             const uint64_t *word,
                             uint64_t at_least,
                             int64_t timeout_ns);

/**
 * Waits until a word has reached a value, or the rank that is to change it has died.
 *
 * It differs from llcl_wait_word in deaths only: only the death of `peer` ends the wait, whether
 * or not other ranks live. Prefer it where one peer changes the word: the wait then ends at its
 * death, in a world of any size.
 * `context`, `word`, `at_least`, `timeout_ns`: as of llcl_wait_word. `peer`: a rank below
 * llcl_size; for the caller's own rank no death ends the wait.
 * LLCL_OK, also if the peer died after it had changed the word; LLCL_ERR_PEER_DEAD: not reached,
 * the peer has died or has left, and this rank's own operations have ended, as there;
 * LLCL_ERR_TIMEOUT, LLCL_ERR_STATE: as of llcl_wait_word; LLCL_ERR_INVALID: NULL, misaligned, or
 * no such rank.
 * Any number of threads may wait, as for llcl_wait_word.
 * From: GASPI's gaspi_notify_waitsome and its health vector.
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
 * nanoseconds, as of llcl_wait_word; negative: for ever; 0: only looks.
 * LLCL_OK, and every other status: as of llcl_flush and llcl_flush_all; LLCL_ERR_TIMEOUT: not all
 * have ended in time. The operations go on, and their completions fire as without this call. Any
 * thread may call it. Helps with progress meanwhile, and sleeps if it takes long.
 * From: gaspi_wait of GASPI, which takes a time-out.
 */
llcl_status_t llcl_flush_within(llcl_context_t *context,
                                uint32_t peer,
                                int64_t timeout_ns);

/**
 * Waits until one of several words has reached its value, or until handlers have run. The thread
 * helps with progress as in llcl_wait_word, and then sleeps.
 *
 * The changes that wake the thread are those of llcl_wait_word, for each of the words.
 * `context`: a live context. `words`: `count` words, read during the call only; NULL if `count` is
 * 0. `count`: how many. If all threads of the rank together wait for more than some 250 words,
 * every store into the rank's memory wakes the thread. `flags`: 0 or LLCL_WAIT_MESSAGES; with it
 * the wait also ends when handlers have run, on any thread, since the calling thread's last
 * llcl_am_wait, llcl_wait_any with this flag, or llcl_am_poll that took a message. `timeout_ns`:
 * nanoseconds; negative: for ever; 0: only looks. `which`: where the number goes, from 0 on, of
 * the first word in the list that has its value; `count` if no word has its value and handlers
 * have run. May be NULL.
 * LLCL_OK: handlers have run, or a word has reached its value: the caller then sees what was done
 * before the word was changed; LLCL_ERR_TIMEOUT: neither in time; LLCL_ERR_PEER_DEAD: no word has
 * its value, and no rank is left that could change one of them, as of llcl_wait_word and, with
 * LLCL_WAIT_FROM_PEER, llcl_wait_word_from; leave that word out to wait for the others;
 * LLCL_ERR_INVALID: NULL, a misaligned word, unknown flags, no such rank, or neither words nor
 * LLCL_WAIT_MESSAGES; LLCL_ERR_STATE: the call would have to wait inside a callback, or the
 * context is being finalized. Any number of threads may wait.
 * From: MPI_Waitany and GASPI's gaspi_notify_waitsome.
 */
llcl_status_t llcl_wait_any(llcl_context_t *context,
                            const llcl_awaited_t *words,
                            uint32_t count,
                            uint32_t flags,
                            int64_t timeout_ns,
                            uint32_t *which);

/**
 * Arms a descriptor for an event loop, which waits by epoll, poll or select. The descriptor
 * becomes readable when llcl_wait_any with these parameters would return.
 *
 * An arming reports one event. Arm the descriptor again before each wait of the event loop; that
 * also makes it unreadable. If the event has happened before the call, the descriptor becomes
 * readable at once, so no event is missed between a look and the arming. Use it so: arm; wait in
 * the event loop; when it is readable, call llcl_wait_any with the same words and the time 0, and
 * act; begin again. Where handlers run only in polls (LLCL_AM_HANDLERS_POLLED), LLCL_WAIT_MESSAGES
 * makes it readable when a message waits: llcl_am_poll then runs its handler. It also becomes
 * readable after a death because of which a word can never have its value. The first call makes
 * the descriptor, an eventfd, and starts a thread that sleeps on the words; so an event costs a
 * wake-up more than in llcl_wait_any.
 * `context`: a live context. `words`: as of llcl_wait_any, but each `word` in the list must stay
 * valid until the descriptor has become readable or the next arming has returned. `count`,
 * `flags`: as there; `count` 0 and `flags` 0: disarms. `descriptor`: where its number goes; each
 * call stores the number of one and the same descriptor. It belongs to the library, ends with the
 * context, and must be neither written to nor closed.
 * LLCL_OK; LLCL_ERR_INVALID: as of llcl_wait_any; LLCL_ERR_STATE: inside a callback, or the
 * context is being finalized; LLCL_ERR_SYSTEM, LLCL_ERR_NO_MEMORY: the machine refuses a
 * descriptor or a thread. Any thread may call it; a call replaces the arming of the call before.
 * From: ibv_req_notify_cq of verbs and ucp_worker_arm of UCX.
 */
llcl_status_t llcl_wait_fd(llcl_context_t *context,
                           const llcl_awaited_t *words,
                           uint32_t count,
                           uint32_t flags,
                           int32_t *descriptor);

/**
 * Wakes the threads of a rank that sleep in llcl_wait_word and the like, so that they read their
 * words again.
 *
 * Call it after a store through a pointer (of llcl_remote_pointer, or into memory of this process)
 * into a word that a thread may wait for by llcl_wait_word: such a store wakes no thread by
 * itself. `context`: a live context. `peer`: the rank whose threads are woken, below llcl_size; it
 * may be the calling one.
 * LLCL_OK: woken, or no thread sleeps, or this rank has never used the peer; LLCL_ERR_INVALID:
 * NULL, or no such rank; LLCL_ERR_STATE: the context is being finalized. Any thread may call it,
 * also inside a callback or a handler. It costs two loads if no thread sleeps, else a system call
 * for each word that a thread sleeps on.
 * From: FUTEX_WAKE of Linux.
 */
llcl_status_t llcl_wake(llcl_context_t *context,
                        uint32_t peer);

/**
 * Helps with progress for one round. A program need not call it: the library makes progress by its
 * own threads. Only handlers may need it, see LLCL_AM_HANDLERS_POLLED.
 *
 * `context`: a live context.
 * LLCL_OK, whether there was anything to do or not. In offload mode the call leaves commands and
 * answers to the progress thread: it only posts parked requests, runs polled handlers and polls a
 * network that needs it. LLCL_ERR_INVALID: NULL; LLCL_ERR_STATE: inside a callback, or the context
 * is being finalized. Any thread may call it; callbacks may run on it. Where a network is polled,
 * MPI's for example, a call that found nothing lets other threads have the core.
 * From: ucp_worker_progress of UCX, but no operation depends on it.
 */
llcl_status_t llcl_progress(llcl_context_t *context);

/*
 * 11. Active messages: a function at the peer is called with a few bytes, and may answer.
 *
 * A receiver owns a fixed number of message slots, whatever the number of senders. A sender takes
 * a slot by one atomic operation in the receiver's memory, and then fills it. While no slot is
 * free, the answer is LLCL_RETRY_NO_CREDIT. docs/flow-control.md has the protocol and its
 * policies.
 *
 * Messages of one sender to one peer may be handled in any order.
 */

/** Handlers have numbers below this one. */
#define LLCL_AM_IDS 256u

/** Most bytes of a header. */
#define LLCL_AM_HEADER 64u

/**
 * The payload travels with the message: up to llcl_peer_info_t::am_payload bytes, or none. For
 * payloads of more than llcl_peer_info_t::am_medium bytes the receiver has fewer slots, as many as
 * LLCL_AM_CHUNKS says.
 */
#define LLCL_AM_MEDIUM 0u

/** The payload is written to an address of the peer before the handler runs. */
#define LLCL_AM_LONG 1u

/**
 * The payload, of any size, stays in the sender's memory; the receiver reads it when it wants to.
 */
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
    /** Any number of the caller's; the handler finds it in llcl_am_view_t. */
    uint16_t tag;
    /** Bytes for the handler, copied during the call. NULL if there are none. */
    const void *header;
    /** How many, at most LLCL_AM_HEADER. */
    size_t header_size;
    /**
     * MEDIUM: the payload, any memory of the caller; NULL if there is none; the handler then gets
     * NULL, too, whereas for a payload of 0 bytes it gets an address. For other kinds NULL.
     */
    const void *payload;
    /** Bytes of the payload, of any kind. */
    size_t payload_size;
    /**
     * LONG: the payload, in a region of the caller or any memory (llcl_local_address). BULK: the
     * payload, in a region of the caller.
     */
    llcl_local_t source;
    /** LONG: where it is written, in a region of the peer. */
    llcl_remote_t destination;
    /** Where the bytes of the reply go; NULL: no bytes are wanted. */
    void *reply;
    /** How many bytes `reply` has room for. */
    size_t reply_capacity;
    /**
     * Where the size of the reply goes; may be NULL. It is written before `on_complete` fires,
     * also with LLCL_ERR_RANGE, as the size that did not fit, and as 0 if the handler has not
     * replied; not if the message ends with another error.
     */
    size_t *reply_size;
    /**
     * Fires when payload and source may be reused. For a BULK message that is when the peer has
     * answered or released it.
     */
    llcl_completion_t on_local;
    /**
     * Fires when the handler has returned; if the handler has retained the message, when the
     * message has been answered or released. The reply is in `reply` by then.
     */
    llcl_completion_t on_complete;
} llcl_am_params_t;

/** All zeroes: `llcl_am_params_t it = LLCL_AM_PARAMS_INIT;`. */
#define LLCL_AM_PARAMS_INIT {0, 0, 0, 0, 0, NULL, 0, NULL, 0, LLCL_LOCAL_INIT, \
    LLCL_REMOTE_INIT, NULL, 0, NULL, LLCL_COMPLETION_INIT, LLCL_COMPLETION_INIT}

/**
 * Sets, replaces or removes a handler.
 *
 * `context`: a live context. `id`: below LLCL_AM_IDS. `handler`: the function; NULL: removes the
 * handler; messages for this number then end with LLCL_ERR_NO_HANDLER at their senders. `data`:
 * its second argument, may be NULL; stays the caller's.
 * LLCL_OK: from now on the new handler runs, and no call of the old one is under way, except the
 * one in which this is called; LLCL_RETRY_BUSY: inside a callback or handler, while another thread
 * runs a handler of this context: nothing has changed, call again later; LLCL_ERR_INVALID: NULL or
 * no such number; LLCL_ERR_STATE: the context is being finalized; LLCL_ERR_NO_MEMORY,
 * LLCL_ERR_SYSTEM: there is no memory, or the thread that runs handlers, which the first call
 * starts, cannot be started.
 * Any thread may call it. The configuration's am_handlers, LLCL_AM_HANDLERS_*, says where handlers
 * run. Serial and parallel ones run on a thread that waits in this library (not in offload mode),
 * or on one of the library's own. Polled ones run only on threads of the program that poll or
 * wait. llcl_progress runs handlers, too; in offload mode only polled ones.
 * From: gasnet_attach and gex_EP_RegisterHandlers of GASNet, which register handlers by number.
 */
llcl_status_t llcl_am_register(llcl_context_t *context,
                               uint32_t id,
                               llcl_am_handler_fn handler,
                               void *data);

/**
 * Sends an active message, if that is possible now.
 *
 * The header is copied; the payload is the caller's again when `on_local` fires. In auto and
 * direct mode that is before the call returns, except for BULK, with LLCL_FLAG_DEFER or
 * LLCL_FLAG_PARK, and for LONG to memory that this process can neither map nor copy to by the
 * kernel.
 * `context`: a live context. `params`: read during the call only.
 * LLCL_OK: accepted; the handler will run once, unless the peer dies or leaves;
 * LLCL_RETRY_NO_CREDIT: all slots of the peer hold messages, or 256 messages to the peer are
 * accepted and not sent; LLCL_RETRY_QUEUE_FULL: the command queue is full (offload mode,
 * LLCL_FLAG_DEFER, or a LONG payload that the owner or a network must write); LLCL_RETRY_NO_TAG:
 * as many messages wait for their end as LLCL_AM_REQUESTS allows; LLCL_RETRY_BUSY: another thread
 * is posting (direct mode);
 * LLCL_RETRY_CONNECTING: the first contact is under way, with the peer or with the rank that keeps
 * the counter of this rank's share of the peer's slots. On a "try again" nothing has happened,
 * except that the destination of a LONG message may have been written. LLCL_ERR_INVALID,
 * LLCL_ERR_RANGE, LLCL_ERR_KEY: llcl_last_error() says what is wrong with `params`;
 * LLCL_ERR_NO_HANDLER: the peer has no handler of this number; LLCL_ERR_PEER_DEAD: the peer has
 * died or has left; LLCL_ERR_STATE: the context is being finalized; LLCL_ERR_NO_MEMORY,
 * LLCL_ERR_SYSTEM: the peer's memory cannot be mapped.
 * The completion may report LLCL_ERR_NO_HANDLER (the handler was removed meanwhile; or the peer is
 * reached by a network, so that this rank cannot know), LLCL_ERR_RANGE (the reply has more bytes
 * than `reply_capacity`; none were copied), LLCL_ERR_PEER_DEAD or LLCL_ERR_CANCELED, and for LONG
 * what the completion of llcl_try_write_async may report.
 * A message without a completion that finds no handler is dropped; only the statistics of its
 * receiver count it (llcl_stats_t::am_unknown).
 * Any thread may call it, also inside a callback or a handler. The conventions say on which thread
 * the completions run.
 * From: the slots and their credits follow Sumimoto and others' design of memory-saving
 * communication by remote atomics; registration and handlers are those of von Eicken's active
 * messages.
 */
llcl_status_t llcl_try_am_async(llcl_context_t *context,
                                const llcl_am_params_t *params);

/**
 * Sends an active message: like llcl_try_am_async, but tries until it is accepted, meanwhile
 * running handlers and helping with progress, and sleeping if it takes long.
 *
 * `context` and `params`: as there. LLCL_OK or an error as there, never a "try again"; inside a
 * callback or handler LLCL_ERR_STATE. Any thread may call it. This library's own.
 */
llcl_status_t llcl_am_async(llcl_context_t *context, const llcl_am_params_t *params);

/**
 * Sends an active message and waits until its handler has run and its reply is here: a remote
 * procedure call.
 *
 * `context` and `params`: as for llcl_try_am_async; the completions must be llcl_no_completion().
 * LLCL_OK: done; else an error as there, or the one with which the message ended; inside a
 * callback or handler LLCL_ERR_STATE. Any thread may call it; other handlers may run on it.
 * From: Birrell and Nelson's remote procedure calls.
 */
llcl_status_t llcl_am(llcl_context_t *context,
                      const llcl_am_params_t *params);

/**
 * Sends an active message and waits for its end as llcl_am does, but not for longer than a time.
 *
 * `context` and `params`: as for llcl_am; of the flags only LLCL_FLAG_DEFER counts. `timeout_ns`:
 * nanoseconds, as of llcl_wait_word; negative: for ever; 0: tries once.
 * LLCL_OK, and every other status: as of llcl_am; LLCL_ERR_TIMEOUT: the message has not ended in
 * time. It may have been sent, and its handler may have run or may run later. The library does not
 * write `reply` and `reply_size` any more. It may read payload and source until an llcl_flush with
 * this peer has returned LLCL_OK. Any thread may call it.
 * From: GASPI, where each call takes a time-out.
 */
llcl_status_t llcl_am_within(llcl_context_t *context,
                             const llcl_am_params_t *params,
                             int64_t timeout_ns);

/**
 * Runs the handlers of messages that have come, on the calling thread, whatever am_handlers says.
 *
 * A poll that finds nothing takes some nanoseconds; now and then such a poll yields its core to
 * other threads. Over a network that wakes no thread, such as MPI, one of eight such polls asks
 * the network, which takes up to a few microseconds. After one that has found something there, the
 * thread's next eight such polls ask the network. If several threads poll at the same time, one of
 * them runs handlers, unless the handlers are parallel.
 * `context`: a live context. `most`: messages to take at most, from 1 on; more than 64 count as
 * 64. `handled`: where the number of messages goes, including those without a handler; may be
 * NULL. It is 0 if no message has come or another thread is running a handler.
 * LLCL_OK, whether a message has come or not; LLCL_ERR_INVALID: `context` is NULL, or `most` is 0;
 * LLCL_ERR_STATE: inside a callback or handler, or the context is being finalized.
 * Any thread may call it; handlers run on it, and callbacks (not in offload mode).
 * From: gasnet_AMPoll of GASNet, with a bound.
 */
llcl_status_t llcl_am_poll(llcl_context_t *context,
                           uint32_t most,
                           uint32_t *handled);

/**
 * Waits until a handler of this context has run: polling at first, then asleep until a message
 * comes.
 *
 * To wait for an effect of handlers, test for it; while it has not happened, call this and test
 * again. No handler is missed between test and wait: the wait ends at once if a handler has run,
 * on any thread, since the calling thread's last llcl_am_wait, or its last llcl_am_poll that took
 * a message. Where handlers set a word, llcl_wait_word does the same in one call.
 * `context`: a live context. `timeout_ns`: nanoseconds; negative: for ever; 0: polls once.
 * LLCL_OK: handlers have run. Test for their effect: the call may also return without one;
 * LLCL_ERR_TIMEOUT: none within the time; LLCL_ERR_INVALID: NULL;
 * LLCL_ERR_STATE: inside a callback or handler, or the context is being finalized.
 * Any thread may call it; handlers run on it as am_handlers says, and callbacks (not in offload
 * mode). From: GASNET_BLOCKUNTIL of GASNet, but without a condition in the call.
 */
llcl_status_t llcl_am_wait(llcl_context_t *context,
                           int64_t timeout_ns);

/*
 * 12. Messages at their receiver: how a handler reads a message and answers it.
 */

/**
 * A bit of llcl_am_view_t::flags: the sender has asked for a reply, or for a completion when the
 * message has ended.
 */
#define LLCL_AM_WANTS_REPLY 1u

/** A bit of llcl_am_view_t::flags: the message is a response, from llcl_am_respond. */
#define LLCL_AM_RESPONSE 2u

/** The content of a message. */
typedef struct llcl_am_view_t {
    /** The rank that sent it. */
    uint32_t source;
    /** The number of its handler. */
    uint32_t id;
    /** One of LLCL_AM_MEDIUM, LLCL_AM_LONG, LLCL_AM_BULK. */
    uint32_t kind;
    /** The number that the sender has chosen, llcl_am_params_t::tag. */
    uint16_t tag;
    /** LLCL_AM_WANTS_REPLY, LLCL_AM_RESPONSE. */
    uint16_t flags;
    /** The bytes of its header, aligned to 8. */
    const void *header;
    /** How many. */
    size_t header_size;
    /**
     * MEDIUM: the payload; NULL: there is none (a payload of 0 bytes has an address). LONG: where
     * the sender has written it. BULK: NULL.
     */
    const void *payload;
    /** Bytes of the payload, of any kind. */
    size_t payload_size;
    /**
     * BULK: the address of the payload at the sender. Read it by llcl_try_read_async, in the
     * handler, or later if the message is retained. The sender keeps it until the message is
     * answered or released. For other kinds the key is 0.
     */
    llcl_remote_t address;
} llcl_am_view_t;

/** All zeroes: `llcl_am_view_t it = LLCL_AM_VIEW_INIT;`. */
#define LLCL_AM_VIEW_INIT {0, 0, 0, 0, 0, NULL, 0, NULL, 0, LLCL_REMOTE_INIT}

/**
 * Gives the whole content of a message in one call.
 *
 * `message`: as the handler got it, or retained. The pointers in the view are valid as long as the
 * message; the payload of LONG is the program's own memory. `view`: the caller's struct, filled.
 * LLCL_OK; LLCL_ERR_INVALID: NULL. Any thread may call it.
 * From: the token of GASNet-EX, gex_Token_Info, with the message's arguments.
 */
llcl_status_t llcl_am_view(const llcl_am_t *message,
                           llcl_am_view_t *view);

/**
 * Answers a message by a response: a message that runs a handler at the sender. A handler may
 * answer its message once, by a response or by a reply. The sender's completion fires when the
 * response's handler has returned.
 *
 * The call never waits: if there is no credit, the library keeps the response and sends it later.
 * While a rank keeps 256 such responses it handles no further request.
 * `message`: as the handler got it, neither retained nor a response. `params`: id, tag, header and
 * payload, which are copied during the call; kind is LLCL_AM_MEDIUM, peer is ignored, all else is
 * 0.
 * LLCL_OK: the handler will run once, unless the sender dies or leaves; LLCL_ERR_STATE: the
 * message has been answered or retained before, or is a response, or this process is a forked
 * child; LLCL_ERR_NO_HANDLER: the sender has no handler of this number (found here only if the
 * sender has been contacted and shares memory with this rank);
 * LLCL_ERR_INVALID or LLCL_ERR_RANGE: llcl_last_error() says what is wrong with `params`. After an
 * error nothing has happened, and the message may be answered. If the sender has no handler when a
 * response arrives, the response is dropped, and the message ends with LLCL_ERR_NO_HANDLER. Only
 * the thread that runs the handler may call it, inside the handler. A response's handler must not
 * answer: LLCL_ERR_STATE.
 * From: gasnet_AMReply of GASNet.
 */
llcl_status_t llcl_am_respond(llcl_am_t *message,
                              const llcl_am_params_t *params);

/**
 * Answers a message by a reply: copies bytes to the sender, whose `on_complete` then fires.
 *
 * The call never waits and needs no credit: the sender has reserved memory for the reply.
 * `message`: as the handler got it, or retained. `data`: the bytes, the caller's again when this
 * returns; NULL if there are none. `size`: how many, at most llcl_peer_info_t::am_medium of the
 * message's sender.
 * LLCL_OK, also if the sender did not ask for an answer or is dead; LLCL_ERR_STATE: the message
 * has been answered before, or is a response, or this process is a forked child;
 * LLCL_ERR_INVALID: NULL; LLCL_ERR_RANGE: more bytes than fit. Any thread may call it, in the
 * handler, or later if the message is retained.
 * From: the replies of von Eicken's active messages; unlike there, no handler runs at the sender.
 */
llcl_status_t llcl_am_reply(llcl_am_t *message,
                            const void *data,
                            size_t size);

/**
 * Retains a message beyond its handler: makes a copy of it. The program then answers the copy, not
 * the message.
 *
 * `message`: as the handler got it. Returns the copy, to be ended by llcl_am_release; NULL if
 * `message` is NULL, was answered or retained before, as many messages are retained as
 * LLCL_AM_RETAINED allows, there is no memory, or this process is a forked child. The message's
 * slot is free again when the handler returns, so retained messages take no credit from the
 * senders. Only the thread that runs the handler may call it, inside the handler.
 * From: the data that a UCX callback may keep (UCS_INPROGRESS).
 */
llcl_am_t *llcl_am_retain(llcl_am_t *message);

/**
 * Ends a retained message. If it has not been answered, an empty answer is sent.
 *
 * `message`: from llcl_am_retain; ended by this call, which must come before llcl_finalize of the
 * context.
 * LLCL_OK; LLCL_ERR_INVALID: NULL; LLCL_ERR_STATE: the message that a handler got, which the
 * library ends itself, or this process is a forked child. Any thread may call it.
 * From: ucp_am_data_release of UCX.
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
 * Local: the call contacts no other rank and waits for none. At the first use of the team each
 * rank contacts log2 n others.
 * `context`: a live context. `team`: where the team goes; each call gives the same handle. The
 * team belongs to the context; llcl_team_free of it is allowed and does nothing.
 * LLCL_OK; LLCL_ERR_INVALID: NULL; LLCL_ERR_UNSUPPORTED: the world has more than 4,095 ranks;
 * LLCL_ERR_NO_MEMORY: no memory for the region through which the ranks agree on plans (16 KiB;
 * with more than 512 ranks 32 bytes for each), or as many regions exist as the configuration
 * allows; LLCL_ERR_STATE: the first call is made inside a callback, or the context is being
 * finalized. Any thread may call it.
 * From: MPI_COMM_WORLD.
 */
llcl_status_t llcl_team_world(llcl_context_t *context, llcl_team_t **team);

/**
 * Splits a team: ranks that give the same colour make a new one. Collective over `team`.
 *
 * `team`: a live team. `colour`: any number, or LLCL_TEAM_NONE. `key`: any number. The ranks of
 * the new team are in rising order of the keys, and for equal keys in the order of `team`.
 * `new_team`: where the new team goes; NULL is stored for the colour LLCL_TEAM_NONE.
 * LLCL_OK; LLCL_ERR_INVALID: NULL; LLCL_ERR_STATE: `team` was freed, inside a callback, or the
 * context is being finalized; LLCL_ERR_PEER_DEAD: a rank of `team` has died or has left, so every
 * collective function of `team` fails from now on: go on with llcl_team_create;
 * LLCL_ERR_NO_MEMORY: as llcl_team_world, at this rank or at another one. Threads of one rank must
 * not call collective functions of one team at the same time, because their calls would be matched
 * with those of other ranks in arbitrary order.
 * From: MPI_Comm_split.
 */
llcl_status_t llcl_team_split(llcl_team_t *team,
                              uint32_t colour,
                              uint32_t key,
                              llcl_team_t **new_team);

/**
 * Makes a team from a list of ranks. Collective over the ranks on the list only. So the living
 * ranks go on after a death, after which all collective functions of teams with the dead rank
 * fail, and llcl_allgather_bytes as well.
 *
 * All ranks on the list must call it with the same list in the same order. A list may be used
 * several times; the n-th call with it at one rank is matched with the n-th call at the others.
 * After a death, remove the dead ranks (llcl_peer_alive) from the list and call this. Ranks may
 * hear of a death at different times. If a rank on the list is dead, the answer is
 * LLCL_ERR_PEER_DEAD; try again with a shorter list, until all living ranks use the same list. In
 * place of llcl_allgather_bytes use llcl_allgather over the new team.
 * `context`: a live context. `ranks`: `n` numbers of ranks of the world, each once, the caller's
 * among them; the ranks of the new team are in this order. Read during the call only. `n`: 1 to
 * the number of ranks, at most 4,095. `team`: where the new team goes; it ends by llcl_team_free
 * or with its context.
 * LLCL_OK; LLCL_ERR_INVALID: NULL, n is 0 or more than there are ranks, a rank stands on the list
 * twice, or the caller is not on it;
 * LLCL_ERR_RANGE: no such rank; LLCL_ERR_UNSUPPORTED: n is too large; LLCL_ERR_PEER_DEAD: a rank
 * on the list has died or has left; LLCL_ERR_NO_MEMORY: as llcl_team_world, at this rank or at
 * another one; LLCL_ERR_STATE: inside a callback, or the context is being finalized. Any thread
 * may call it; calls with the same list by several threads of a rank are matched with those of
 * other ranks in arbitrary order.
 * From: MPI's ULFM (shrink), but here the caller gives the list.
 */
llcl_status_t llcl_team_create(llcl_context_t *context,
                               const uint32_t *ranks,
                               uint32_t n,
                               llcl_team_t **team);

/**
 * Ends a team. Its plans stay valid. The call waits until the calls llcl_X_async of the team have
 * ended at this rank. They may need that other ranks make theirs, so a rank that must not wait for
 * others awaits the completions first. The call waits for nothing else of other ranks.
 *
 * `team`: ended by this call, except the team of all ranks, which ends with the context and for
 * which the call does not wait.
 * LLCL_OK; LLCL_ERR_INVALID: NULL; LLCL_ERR_STATE: it was freed before (see the conventions on
 * handles), or the call is made inside a callback. No other thread may use the team at the same
 * time.
 * From: MPI_Comm_free.
 */
llcl_status_t llcl_team_free(llcl_team_t *team);

/**
 * The calling rank's number in a team.
 *
 * `team`: a live team; for NULL and for one that was freed the answer is 0xffffffff. Any thread
 * may call it.
 * From: MPI_Comm_rank.
 */
uint32_t llcl_team_rank(const llcl_team_t *team);

/**
 * How many ranks a team has.
 *
 * `team`: a live team; for NULL and for one that was freed the answer is 0. Any thread may call
 * it.
 * From: MPI_Comm_size.
 */
uint32_t llcl_team_size(const llcl_team_t *team);

/**
 * The number in the world of a team's rank, which is the `peer` in all other operations.
 *
 * `team`: a live team. `rank`: a number below llcl_team_size. For NULL, a team that was freed and
 * any other number the answer is 0xffffffff. Any thread may call it.
 * From: gex_TM_TranslateRankToJobrank of GASNet-EX, and MPI_Group_translate_ranks.
 */
uint32_t llcl_team_peer(const llcl_team_t *team,
                        uint32_t rank);

/**
 * The number in a team of a rank of the world: the reverse of llcl_team_peer.
 *
 * `team`: a live team. `world_rank`: a number below llcl_size. For NULL, a team that was freed and
 * a rank that is not in the team the answer is 0xffffffff. Any thread may call it; its time grows
 * with the size of the team.
 * From: gex_TM_TranslateJobrankToRank of GASNet-EX, and MPI_Group_translate_ranks.
 */
uint32_t llcl_team_find(const llcl_team_t *team,
                        uint32_t world_rank);

/*
 * 14. Plans: a collective is planned once and then runs any number of times.
 *
 * A plan is made by one of the _init functions of the next chapter, at all ranks of a team. Each
 * rank then starts it, computes, and waits for it. The k-th starts of all ranks make up a round.
 * Several plans of a team may be under way at once and may be started in any order. A round
 * advances without the thread that started it. When a signal arrives that a step waits for, the
 * step is executed by the thread that delivered the signal, on any rank, by a thread that waits,
 * or by the progress thread.
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
 * Elements of `element_size` bytes, for operations that only move data and for LLCL_OP_USER. No
 * element is split.
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
 * long double, 16 bytes. On x86-64, where it has the x87's format, it has ADD, PROD, MIN and MAX
 * (the last 6 bytes of a result are 0). On other machines these answer LLCL_ERR_UNSUPPORTED; the
 * type is only for operations that move data and for LLCL_OP_USER.
 */
#define LLCL_TYPE_LONG_DOUBLE 15u

/**
 * float _Complex: ADD, PROD. The product follows its definition, without C's recovery of
 * infinities.
 */
#define LLCL_TYPE_COMPLEX_F32 16u

/**
 * double _Complex: ADD, PROD. The product follows its definition, without C's recovery of
 * infinities.
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

/** Multiplies; integers wrap around. */
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
 * All steps are prepared by the _init function. The thread that delivers a signal executes the
 * steps that wait for it.
 */
#define LLCL_ENGINE_OFFLOAD 1u

/**
 * The progress thread of each rank makes and executes the steps of that rank when they are ready.
 */
#define LLCL_ENGINE_THREAD 2u

/**
 * The input lies in the output buffer: at every rank; for gather, reduce and scatter at the root
 * only. `send` is then ignored. For scatter `receive` is ignored instead, and the root's block
 * stays where it is.
 */
#define LLCL_COLL_IN_PLACE 1u

/**
 * Several threads of a rank may call the function of LLCL_OP_USER at the same time, for different
 * elements. All ranks must give the flag, or none. Without it the calls for a plan follow each
 * other, and the plan has one queue of steps at each rank.
 */
#define LLCL_COLL_CONCURRENT 2u

/**
 * Each start of the plan may name other buffers, by llcl_coll_start_with. All ranks must give the
 * flag, or none. The blocking forms ignore it, since each call names its buffers.
 */
#define LLCL_COLL_REBIND 4u

/** A plan. Ends by llcl_coll_free or with its context. */
typedef struct llcl_coll_t llcl_coll_t;

/** The properties of a plan. */
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
     * 1: any rank may execute this rank's steps. 0: only this rank's own threads. That is so with
     * LLCL_ENGINE_THREAD, a user's function, buffers of more than 32 KiB in memory that peers do
     * not map, a neighbour on another node, or a team of more than 64 ranks.
     */
    uint32_t any_rank;
    /** Queues of steps at this rank. */
    uint32_t queues;
    /** Steps of this rank in a round. */
    uint32_t steps;
    /**
     * Bytes that the plan takes at this rank until it is freed: steps, signal words, scratch
     * memory, copies of buffers that peers do not map, and data about the other ranks that the
     * steps name. LLCL_COLL_MEMORY limits the sum over all plans. docs/collectives.md has the
     * formula.
     */
    uint64_t memory;
    /** How often the plan was started. */
    uint64_t rounds;
    /**
     * The part of `memory` that this process alone maps, without what malloc adds. The other part
     * is shared.
     */
    uint64_t memory_private;
} llcl_coll_info_t;

/** Its size, and else zeroes: `llcl_coll_info_t it = LLCL_COLL_INFO_INIT;`. */
#define LLCL_COLL_INFO_INIT {sizeof(llcl_coll_info_t), NULL, NULL, 0, 0, 0, 0, 0, 0, 0}

/**
 * A user's reduction: `result[i] = left[i] op right[i]` for `count` elements of the plan's type,
 * whole ones. `result` is `right`, `left`, or overlaps neither; all are aligned as elements of the
 * buffers are, or as the elements of an array that begins at a multiple of 64. The operands are
 * combined in the order of ranks: the operation must be associative, and may be not commutative.
 * It runs on a thread of the rank that gave it, one call for a plan at a time (see
 * LLCL_COLL_CONCURRENT), in the floating-point environment of the thread that made the plan. It
 * must not block, must not call this library, and must not end by an exception or a jump.
 */
typedef void (*llcl_reduce_fn)(const void *left,
                               const void *right,
                               void *result,
                               uint64_t count,
                               void *data);

/**
 * The parameters of a collective. An operation ignores the fields that it does not use. Each _init
 * function says which rank gives which fields.
 */
typedef struct llcl_coll_params_t {
    /** The ranks that take part. */
    llcl_team_t *team;
    /**
     * The input, in a region of this rank or any of its memory (llcl_local_address); with `count`
     * 0 any value. The library only reads it, so it may be read-only memory. The same holds for a
     * part of the output that a rank only sends: the data of a broadcast's root, and a rank's own
     * block in place. The input may lie in gaps between the blocks of the output, but must not
     * overlap the blocks.
     */
    llcl_local_t send;
    /**
     * The output, in a region of this rank or any of its memory; with `count` 0 any value. The
     * library does not touch bytes outside of the blocks: the user, or another plan, may use them
     * meanwhile.
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
     * How many rounds may be under way at one time, 0 to 64 (0 counts as 1), the same at every
     * rank. Each of them takes as much memory as a plan of depth 1. The rounds end in any order:
     * that k completions have fired does not say that the first k rounds have ended. The blocking
     * forms ignore it.
     */
    uint32_t depth;
    /** For the v forms: elements for each rank of the team, read during the call. */
    const uint64_t *send_counts;
    /**
     * For the v forms: where each rank's block begins in the input, in elements; for an empty
     * block any value.
     */
    const uint64_t *send_offsets;
    /** For the v forms: elements from each rank of the team. */
    const uint64_t *receive_counts;
    /**
     * For the v forms: where each rank's block goes in the output, in elements; for an empty block
     * any value.
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
     * Fires at the end of every round, at this rank. If the completion is a word
     * (LLCL_COMPLETE_STORE, LLCL_COMPLETE_ADD), and the word, `send` and `receive` lie in
     * allocated memory, then the rank that executes the last step changes the word, even while
     * this rank computes. If that rank is killed while it changes the word, the word reports a
     * failure; an ADD word may have grown before. Any other completion waits for a thread of this
     * rank.
     */
    llcl_completion_t on_complete;
} llcl_coll_params_t;

/** All zeroes: `llcl_coll_params_t it = LLCL_COLL_PARAMS_INIT;`. */
#define LLCL_COLL_PARAMS_INIT {NULL, LLCL_LOCAL_INIT, LLCL_LOCAL_INIT, 0, 0, 0, 0, 0, 0, 0, \
    0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, LLCL_COMPLETION_INIT}

/**
 * Starts the next round of a plan: tells the other ranks that this rank's buffers are ready, and
 * returns. The call executes small steps that are ready at once; its time does not grow with the
 * size of the message.
 *
 * Until the round has ended, the program must neither change the input nor use the output. So
 * rounds that are under way together (see `depth`) need buffers of their own, by
 * llcl_coll_start_with, unless they only read.
 * `plan`: a live plan.
 * LLCL_OK; LLCL_ERR_STATE: as many rounds as `depth` says have not been waited for, the plan was
 * freed, or the context is being finalized; LLCL_ERR_PEER_DEAD: a rank of the plan has died or has
 * left, or the status with which an earlier round has failed: the plan can only be freed;
 * LLCL_ERR_INVALID: NULL. Any thread may call it, also inside a callback; for one plan one thread
 * at a time. The callback of the round may start the next one, also before this call has returned.
 * From: persistent collectives, MPI 4.0 section 6.12; the session-mode queue of Tofu2.
 */
llcl_status_t llcl_coll_start(llcl_coll_t *plan);

/**
 * Starts the next round of a plan that was made with LLCL_COLL_REBIND, with other buffers for
 * input and output. Later rounds use these buffers too, until another call names new ones. Each
 * rank names its own buffers; a rank that keeps its buffers starts the same round by
 * llcl_coll_start. Peers do not map registered memory, so this rank copies a buffer in a
 * registered region: the input in this call, whose time then grows with the size, the output at
 * the end of the round.
 *
 * `plan`: a live plan. `send`, `receive`: as in llcl_coll_params_t when the plan was made; each is
 * ignored where it was ignored then. The buffers of an earlier round are the user's again when
 * that round has ended.
 * LLCL_OK; LLCL_ERR_KEY: a buffer names no live region of this rank; LLCL_ERR_RANGE: it leaves its
 * region;
 * LLCL_ERR_INVALID: the two overlap, the plan was made without LLCL_COLL_REBIND, or NULL;
 * LLCL_ERR_NO_MEMORY: a copy would exceed LLCL_COLL_MEMORY: the round has not begun, and the call
 * may be repeated. Other statuses, and threads: as llcl_coll_start.
 * This library's own.
 */
llcl_status_t llcl_coll_start_with(llcl_coll_t *plan,
                                   llcl_local_t send,
                                   llcl_local_t receive);

/**
 * Reports whether the oldest round that was not waited for has ended at this rank. Before it
 * answers, it executes steps that are ready.
 *
 * `plan`: a live plan that was started.
 * LLCL_OK: it has ended; the buffers are the user's again, and the next round may be started;
 * LLCL_RETRY_BUSY: not yet. This answer may also come after a STORE or ADD completion has changed
 * its word, until the thread that changed the word has finished the round; LLCL_ERR_PEER_DEAD: a
 * rank of the plan has died or has left: the round will not end; LLCL_ERR_KEY: a buffer's region
 * was freed meanwhile, here or at a peer; or another error of the network or of a peer;
 * LLCL_ERR_STATE: it was not started, or was freed; LLCL_ERR_INVALID: NULL. After an error of a
 * round the plan can only be freed. Other rounds that are under way (see `depth`) end too, with
 * LLCL_OK or an error, and must be waited for before. A rank of another node may still write to
 * this rank's output until it has reported an error of this round, too.
 * Any thread may call it, also inside a callback; for one plan one thread at a time.
 * From: MPI_Test.
 */
llcl_status_t llcl_coll_test(llcl_coll_t *plan);

/**
 * Waits until the oldest round that was not waited for has ended at this rank. It executes steps
 * of the plan, also those of other ranks, for the time that llcl_wait_word stays awake, and then
 * sleeps.
 *
 * `plan`: a live plan that was started. `timeout_ns`: nanoseconds; negative: for ever; 0: only
 * looks. LLCL_OK, LLCL_ERR_PEER_DEAD, LLCL_ERR_KEY, another error of the network or of a peer: as
 * llcl_coll_test; LLCL_ERR_TIMEOUT: not in time: wait again;
 * LLCL_ERR_STATE: it was not started or was freed, or inside a callback; LLCL_ERR_INVALID: NULL.
 * Any thread may call it; for one plan one thread at a time.
 * From: MPI_Wait, with a time-out.
 */
llcl_status_t llcl_coll_wait(llcl_coll_t *plan,
                             int64_t timeout_ns);

/**
 * Ends a plan. Local: the call does not wait for the other ranks. The plan's memory is free when
 * all ranks have ended it.
 *
 * `plan`: ended by this call if it answers LLCL_OK.
 * LLCL_OK; LLCL_ERR_STATE: a round has not been waited for, or the plan was freed before (see the
 * conventions on handles); LLCL_ERR_INVALID: NULL. No other thread may be inside a call for the
 * plan, also not inside an llcl_coll_start whose round has ended; not inside a callback
 * (LLCL_ERR_STATE).
 * From: MPI_Request_free.
 */
llcl_status_t llcl_coll_free(llcl_coll_t *plan);

/**
 * Reports the properties of a plan, and the reason for its algorithm.
 *
 * `plan`: a live plan. `info`: the caller's struct with its struct_size set; filled.
 * LLCL_OK; LLCL_ERR_INVALID: NULL, or an unknown struct_size; LLCL_ERR_STATE: the plan was freed.
 * Any thread may call it.
 * This library's own.
 */
llcl_status_t llcl_coll_query(const llcl_coll_t *plan,
                              llcl_coll_info_t *info);

/*
 * 15. Collectives: making plans.
 *
 * Every _init function is collective over its team and blocks until all ranks of the team have
 * called it. All ranks must make their plans in the same order. Buffers, counts and names are
 * given once, here. If the parameters of the ranks do not fit together (counts, types, roots,
 * operations, algorithms), every rank gets LLCL_ERR_INVALID, and no plan is made. If one rank is
 * refused, all are, with its status. There is an exception where the library cannot tell the
 * others: a rank that gives NULL for `params` or its `team`, gives a team that was freed, or calls
 * inside a callback or during llcl_finalize, is refused alone, and the other ranks wait for it.
 * Floating-point numbers are combined in the environment of the thread that makes the plan:
 * direction of rounding, and whether denormal numbers count as zero (x86-64: MXCSR without its
 * exceptions, and the control word of x87; AArch64: FPCR). The environment must be the same at
 * every rank, or no plan is made. A thread that combines sets it before and restores its own
 * after.
 * Buffers may lie in any region. Peers do not map a buffer in a registered region; the owner then
 * copies the parts that other ranks need to and from memory of the plan.
 */

/**
 * Makes the plan of a barrier: a round ends at no rank before every rank has started it.
 *
 * `params`: read during the call. Uses nothing but `team`, `engine`, `algorithm`, `depth` and
 * `on_complete`; unknown `flags` are refused.
 * `plan`: where the plan goes; ended by llcl_coll_free or with the context.
 * LLCL_OK; LLCL_ERR_INVALID: NULL, a value that is not allowed, or ranks that do not agree;
 * LLCL_ERR_RANGE: a buffer leaves its region; LLCL_ERR_KEY: a buffer names no live region of this
 * rank;
 * LLCL_ERR_UNSUPPORTED: `type` does not have `op`; or `algorithm` cannot do this, for instance
 * because it reads other ranks' memory, and the team's ranks run on several nodes;
 * LLCL_ERR_NO_MEMORY: the plan would exceed LLCL_COLL_MEMORY or LLCL_REGIONS (llcl_last_error()
 * has the numbers); LLCL_ERR_PEER_DEAD: a rank of the team has died or has left; LLCL_ERR_STATE:
 * the team was freed, the call is made inside a callback, or the context is being finalized. If
 * one rank is refused, all are. Threads of one rank must not call collective functions of one team
 * at the same time, because their calls would be matched with those of other ranks in arbitrary
 * order.
 * From: the dissemination algorithm of Hensgen, Finkel and Manber, 1988.
 */
llcl_status_t llcl_barrier_init(const llcl_coll_params_t *params,
                                llcl_coll_t **plan);

/**
 * Makes the plan of a broadcast: the root's data for every rank.
 *
 * `params`: read during the call. `receive`: `count` elements at every rank; at the root the data
 * to send. `plan`: where the plan goes; ended by llcl_coll_free or with the context.
 * LLCL_OK; other statuses, and threads: as llcl_barrier_init.
 * From: Trinaryx3 of the K computer, which sends three fragments through three ternary pipelines.
 * On the K computer the three trees have no common edge in a torus; here no rank except the root
 * has children in two of them.
 */
llcl_status_t llcl_broadcast_init(const llcl_coll_params_t *params,
                                  llcl_coll_t **plan);

/**
 * Makes the plan of a reduction: the elements of all ranks, combined one by one, at the root.
 *
 * `params`: read during the call. `send`: `count` elements at every rank. `receive`: `count`
 * elements at the root. Also `op`, and `function` for LLCL_OP_USER. `plan`: where the plan goes;
 * ended by llcl_coll_free or with the context.
 * LLCL_OK; other statuses, and threads: as llcl_barrier_init. From: MPI_Reduce_init.
 */
llcl_status_t llcl_reduce_init(const llcl_coll_params_t *params,
                               llcl_coll_t **plan);

/**
 * Makes the plan of an allreduce: the elements of all ranks, combined one by one, for every rank.
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
 * Makes the plan of a gather: a block of every rank, one after the other, at the root.
 *
 * `params`: read during the call. `send`: `count` elements at every rank. `receive`: `count` times
 * the team's size at the root. `plan`: where the plan goes; ended by llcl_coll_free or with the
 * context.
 * LLCL_OK; other statuses, and threads: as llcl_barrier_init. From: MPI_Gather_init.
 */
llcl_status_t llcl_gather_init(const llcl_coll_params_t *params,
                               llcl_coll_t **plan);

/**
 * Makes the plan of a gather with a length for each rank's block.
 *
 * `params`: read during the call. `send`: `count` elements, which may differ from rank to rank.
 * `receive`, `receive_counts`, `receive_offsets`: at the root, a block for each rank. `plan`:
 * where the plan goes; ended by llcl_coll_free or with the context.
 * LLCL_OK; other statuses, and threads: as llcl_barrier_init. From: MPI_Gatherv_init.
 */
llcl_status_t llcl_gatherv_init(const llcl_coll_params_t *params, llcl_coll_t **plan);

/**
 * Makes the plan of a scatter: a block of the root's input for every rank.
 *
 * `params`: read during the call. `send`: `count` times the team's size at the root. `receive`:
 * `count` elements at every rank. `plan`: where the plan goes; ended by llcl_coll_free or with the
 * context.
 * LLCL_OK; other statuses, and threads: as llcl_barrier_init. From: MPI_Scatter_init.
 */
llcl_status_t llcl_scatter_init(const llcl_coll_params_t *params,
                                llcl_coll_t **plan);

/**
 * Makes the plan of a scatter with a length for each rank's block.
 *
 * `params`: read during the call. `send`, `send_counts`, `send_offsets`: at the root, a block for
 * each rank. `receive`: `count` elements, which may differ from rank to rank. `plan`: where the
 * plan goes; ended by llcl_coll_free or with the context.
 * LLCL_OK; other statuses, and threads: as llcl_barrier_init. From: MPI_Scatterv_init.
 */
llcl_status_t llcl_scatterv_init(const llcl_coll_params_t *params,
                                 llcl_coll_t **plan);

/**
 * Makes the plan of an allgather: a block of every rank, one after the other, for every rank.
 *
 * `params`: read during the call. `send`: `count` elements. `receive`: `count` times the team's
 * size.
 * `plan`: where the plan goes; ended by llcl_coll_free or with the context.
 * LLCL_OK; other statuses, and threads: as llcl_barrier_init. From: Bruck et al. 1997.
 */
llcl_status_t llcl_allgather_init(const llcl_coll_params_t *params, llcl_coll_t **plan);

/**
 * Makes the plan of an allgather with a length for each rank's block.
 *
 * `params`: read during the call. `send`: `count` elements, which may differ from rank to rank.
 * `receive`, `receive_counts`, `receive_offsets`: a block for each rank. `plan`: where the plan
 * goes; ended by llcl_coll_free or with the context.
 * LLCL_OK; other statuses, and threads: as llcl_barrier_init. From: MPI_Allgatherv_init.
 */
llcl_status_t llcl_allgatherv_init(const llcl_coll_params_t *params, llcl_coll_t **plan);

/**
 * Makes the plan of an all-to-all: a block of every rank for every rank.
 *
 * `params`: read during the call. `send` and `receive`: `count` times the team's size: the r-th
 * block goes to, or comes from, rank r. `plan`: where the plan goes; ended by llcl_coll_free or
 * with the context.
 * LLCL_OK; other statuses, and threads: as llcl_barrier_init. From: Bruck et al. 1997.
 */
llcl_status_t llcl_alltoall_init(const llcl_coll_params_t *params, llcl_coll_t **plan);

/**
 * Makes the plan of an all-to-all with a length for each block.
 *
 * `params`: read during the call. `send`, `send_counts`, `send_offsets`, `receive`,
 * `receive_counts`, `receive_offsets`: a block for each rank. In place `receive_counts` and
 * `receive_offsets` describe both sides. `plan`: where the plan goes; ended by llcl_coll_free or
 * with the context.
 * LLCL_OK; other statuses, and threads: as llcl_barrier_init. From: MPI_Alltoallv_init.
 */
llcl_status_t llcl_alltoallv_init(const llcl_coll_params_t *params,
                                  llcl_coll_t **plan);

/**
 * Makes the plan of a reduce-scatter: the elements of all ranks, combined one by one; each rank
 * gets a block of the result.
 *
 * `params`: read during the call. `send`: `count` times the team's size. `receive`: `count`
 * elements. In place the input lies in `receive`, which then has room for it, and the result goes
 * to its beginning. `op`, and `function` for LLCL_OP_USER. `plan`: where the plan goes; ended by
 * llcl_coll_free or with the context.
 * LLCL_OK; other statuses, and threads: as llcl_barrier_init. From: MPI_Reduce_scatter_block_init.
 */
llcl_status_t llcl_reduce_scatter_init(const llcl_coll_params_t *params,
                                       llcl_coll_t **plan);

/**
 * Makes the plan of a reduce-scatter with a length for each rank's block.
 *
 * `params`: read during the call. `send`: all blocks, one after the other in the order of ranks.
 * `receive`: this rank's block. `receive_counts`: the length of each rank's block, the same at
 * every rank. `op`, and `function` for LLCL_OP_USER. `plan`: where the plan goes; ended by
 * llcl_coll_free or with the context.
 * LLCL_OK; other statuses, and threads: as llcl_barrier_init. From: MPI_Reduce_scatter_init.
 */
llcl_status_t llcl_reduce_scatterv_init(const llcl_coll_params_t *params,
                                        llcl_coll_t **plan);

/**
 * Makes the plan of a scan: each rank gets the elements of all ranks up to and including itself,
 * combined one by one.
 *
 * `params`: read during the call. `send` and `receive`: `count` elements. `op`, and `function` for
 * LLCL_OP_USER. `plan`: where the plan goes; ended by llcl_coll_free or with the context.
 * LLCL_OK; other statuses, and threads: as llcl_barrier_init. From: Hillis and Steele 1986.
 */
llcl_status_t llcl_scan_init(const llcl_coll_params_t *params,
                             llcl_coll_t **plan);

/**
 * Makes the plan of an exclusive scan: each rank except the first gets the elements of all ranks
 * before it, combined one by one.
 *
 * `params`: read during the call. `send` and `receive`: `count` elements. Rank 0's output does not
 * change; in place that is its input. `op`, and `function` for LLCL_OP_USER. `plan`: where the
 * plan goes; ended by llcl_coll_free or with the context.
 * LLCL_OK; other statuses, and threads: as llcl_barrier_init.
 * From: Hillis and Steele 1986; MPI 4.0 section 6.11.2.
 */
llcl_status_t llcl_exscan_init(const llcl_coll_params_t *params,
                               llcl_coll_t **plan);

/*
 * 16. Blocking collectives: one call makes the plan, starts it and waits.
 *
 * Each takes the parameters of its _init function, without a completion, and answers the statuses
 * of that function and of llcl_coll_wait. Each is collective over the team, and must not be called
 * inside a callback.
 * A team keeps the plans of its last LLCL_COLL_CACHE different calls. A call that has the
 * operation, count, type, op, root, flags and algorithm of an earlier one runs the plan of that
 * call; buffers, `function` and `function_data` may differ. In a v form the ranks vote first,
 * which takes about as long as an allreduce: the plan is used if all ranks have the counts and
 * offsets of the earlier call.
 * Three things follow. First, all ranks must give the same parameters. If no rank has kept a plan
 * for its call, a difference is reported at every rank; else some ranks may wait for ever. With
 * LLCL_COLL_CACHE=0 a difference is always reported. Second, if a call is refused at one rank
 * only, for instance because of an invalid buffer, the plan that the others have kept fails. Their
 * calls, and all further such calls, answer the status of the refusal until other plans have
 * displaced the plan. Third, `engine` has an effect only in the call that makes the plan.
 * A kept plan takes memory, and copies of the buffers that peers do not map. If a call needs more
 * than LLCL_COLL_MEMORY leaves, its team first frees the copies of the plans that it keeps for
 * calls of the same chapter, or these plans themselves. LLCL_ERR_NO_MEMORY then means that other
 * memory is in the way: the plans of the program, of other teams (until llcl_team_free) and of the
 * other chapter. A smaller LLCL_COLL_CACHE keeps fewer plans.
 */

/**
 * Waits until every rank of the world has called it: llcl_team_barrier with the team of all ranks.
 *
 * `context`: a live context.
 * LLCL_OK; other statuses, and threads: as llcl_team_world, llcl_barrier_init and llcl_coll_wait.
 * From: MPI_Barrier.
 */
llcl_status_t llcl_barrier(llcl_context_t *context);

/**
 * Waits until every rank of a team has called it. The plan behind it is made at the first call and
 * kept.
 *
 * `team`: a live team.
 * LLCL_OK; other statuses, and threads: as llcl_barrier_init and llcl_coll_wait.
 * From: MPI_Barrier and shmem_team_sync of OpenSHMEM.
 */
llcl_status_t llcl_team_barrier(llcl_team_t *team);

/**
 * Broadcast: the root's data for every rank. Blocking.
 *
 * `params`: as llcl_broadcast_init. LLCL_OK; other statuses, and threads: as there, and as
 * llcl_coll_wait.
 * From: MPI_Bcast.
 */
llcl_status_t llcl_broadcast(const llcl_coll_params_t *params);

/**
 * Reduction: the elements of all ranks, combined one by one, at the root. Blocking.
 *
 * `params`: as llcl_reduce_init. LLCL_OK; other statuses, and threads: as there, and as
 * llcl_coll_wait.
 * From: MPI_Reduce.
 */
llcl_status_t llcl_reduce(const llcl_coll_params_t *params);

/**
 * Allreduce: the elements of all ranks, combined one by one, for every rank. Blocking.
 *
 * `params`: as llcl_allreduce_init. LLCL_OK; other statuses, and threads: as there, and as
 * llcl_coll_wait.
 * From: MPI_Allreduce.
 */
llcl_status_t llcl_allreduce(const llcl_coll_params_t *params);

/**
 * Gather: a block of every rank, one after the other, at the root. Blocking.
 *
 * `params`: as llcl_gather_init. LLCL_OK; other statuses, and threads: as there, and as
 * llcl_coll_wait.
 * From: MPI_Gather.
 */
llcl_status_t llcl_gather(const llcl_coll_params_t *params);

/**
 * Gather with a length for each rank's block. Blocking.
 *
 * `params`: as llcl_gatherv_init. LLCL_OK; other statuses, and threads: as there, and as
 * llcl_coll_wait.
 * From: MPI_Gatherv.
 */
llcl_status_t llcl_gatherv(const llcl_coll_params_t *params);

/**
 * Scatter: a block of the root's input for every rank. Blocking.
 *
 * `params`: as llcl_scatter_init. LLCL_OK; other statuses, and threads: as there, and as
 * llcl_coll_wait.
 * From: MPI_Scatter.
 */
llcl_status_t llcl_scatter(const llcl_coll_params_t *params);

/**
 * Scatter with a length for each rank's block. Blocking.
 *
 * `params`: as llcl_scatterv_init. LLCL_OK; other statuses, and threads: as there, and as
 * llcl_coll_wait.
 * From: MPI_Scatterv.
 */
llcl_status_t llcl_scatterv(const llcl_coll_params_t *params);

/**
 * Allgather: a block of every rank, one after the other, for every rank. Blocking.
 *
 * `params`: as llcl_allgather_init. LLCL_OK; other statuses, and threads: as there, and as
 * llcl_coll_wait.
 * From: MPI_Allgather.
 */
llcl_status_t llcl_allgather(const llcl_coll_params_t *params);

/**
 * Allgather with a length for each rank's block. Blocking.
 *
 * `params`: as llcl_allgatherv_init. LLCL_OK; other statuses, and threads: as there, and as
 * llcl_coll_wait.
 * From: MPI_Allgatherv.
 */
llcl_status_t llcl_allgatherv(const llcl_coll_params_t *params);

/**
 * All-to-all: a block of every rank for every rank. Blocking.
 *
 * `params`: as llcl_alltoall_init. LLCL_OK; other statuses, and threads: as there, and as
 * llcl_coll_wait.
 * From: MPI_Alltoall.
 */
llcl_status_t llcl_alltoall(const llcl_coll_params_t *params);

/**
 * All-to-all with a length for each block. Blocking.
 *
 * `params`: as llcl_alltoallv_init. LLCL_OK; other statuses, and threads: as there, and as
 * llcl_coll_wait.
 * From: MPI_Alltoallv.
 */
llcl_status_t llcl_alltoallv(const llcl_coll_params_t *params);

/**
 * Reduce-scatter: the elements of all ranks, combined one by one; each rank gets a block.
 * Blocking.
 *
 * `params`: as llcl_reduce_scatter_init. LLCL_OK; other statuses, and threads: as there, and as
 * llcl_coll_wait.
 * From: MPI_Reduce_scatter_block.
 */
llcl_status_t llcl_reduce_scatter(const llcl_coll_params_t *params);

/**
 * Reduce-scatter with a length for each rank's block. Blocking.
 *
 * `params`: as llcl_reduce_scatterv_init. LLCL_OK; other statuses, and threads: as there, and as
 * llcl_coll_wait.
 * From: MPI_Reduce_scatter.
 */
llcl_status_t llcl_reduce_scatterv(const llcl_coll_params_t *params);

/**
 * Scan: each rank gets the elements of all ranks up to and including itself, combined. Blocking.
 *
 * `params`: as llcl_scan_init. LLCL_OK; other statuses, and threads: as there, and as
 * llcl_coll_wait.
 * From: MPI_Scan.
 */
llcl_status_t llcl_scan(const llcl_coll_params_t *params);

/**
 * Exclusive scan: each rank except the first gets the elements of all ranks before it, combined.
 * Blocking.
 *
 * `params`: as llcl_exscan_init. LLCL_OK; other statuses, and threads: as there, and as
 * llcl_coll_wait.
 * From: MPI_Exscan.
 */
llcl_status_t llcl_exscan(const llcl_coll_params_t *params);

/*
 * 17. Statistics: the counters of a context.
 */

/** Most shares of a receiver's credits. */
#define LLCL_AM_SHARES 16u

/**
 * Counts since the context was made. Unless a field says otherwise, it counts what this rank did
 * as a sender, whatever the receiver.
 */
typedef struct llcl_stats_t {
    /** Bytes of this struct, set by the caller before the call. */
    uint64_t struct_size;
    /** Active messages sent. */
    uint64_t am_sent;
    /** Active messages taken from this rank's slots and handled. */
    uint64_t am_handled;
    /** Active messages that arrived at this rank and had no handler. */
    uint64_t am_unknown;
    /** Replies and acknowledgements sent. */
    uint64_t am_replies;
    /** How often a request was answered by LLCL_RETRY_NO_CREDIT. */
    uint64_t retry_no_credit;
    /** How often by LLCL_RETRY_QUEUE_FULL. */
    uint64_t retry_queue_full;
    /** How often by LLCL_RETRY_NO_TAG. */
    uint64_t retry_no_tag;
    /** How often by LLCL_RETRY_BUSY. */
    uint64_t retry_busy;
    /** How often by LLCL_RETRY_CONNECTING. */
    uint64_t retry_connecting;
    /** Requests with LLCL_FLAG_PARK that found no room and were parked. */
    uint64_t parked;
    /** The most requests that were parked at one time; see LLCL_PARKED. */
    uint64_t parked_high_water;
    /**
     * How often this rank read a peer's count of received messages (RecvCNT in
     * docs/flow-control.md), because its copy said that no slot is free.
     */
    uint64_t credit_reads;
    /** Atomic exchanges by which this rank tried to take slots of peers, for each share. */
    uint64_t credit_updates[16];
    /** Slots of this rank that it skipped, because their senders had died or were stopped. */
    uint64_t skips;
    /**
     * How often this rank's messages and replies woke a sleeping receiver: a system call each.
     */
    uint64_t wake_ups;
    /** How often a thread of this rank slept because there was no credit. */
    uint64_t credit_sleeps;
    /** The most messages that waited in this rank's slots at one time. */
    uint64_t slots_high_water;
    /**
     * The most messages of this rank that waited for their end at one time. The number may be too
     * small, but is at least the most that one thread had waiting, up to 64.
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
    /** Such collectives that found none and made a plan, which is kept. */
    uint64_t coll_cache_misses;
    /**
     * Receive buffers for messages from a network that are not used again, because a rank that has
     * died may still write to them. If the network can tell when no more data of a rank can
     * arrive, the library uses the buffers again from then on.
     */
    uint64_t am_slots_retired;
    /**
     * Requests to ranks for their own memory, where neither this rank nor a network could access
     * it. One request brings many pieces of a box or list. Questions of the library itself, for
     * example for the address of a region, are not counted.
     */
    uint64_t owner_requests;
} llcl_stats_t;

/** Its size, and else zeroes: `llcl_stats_t it = LLCL_STATS_INIT;`. */
#define LLCL_STATS_INIT {sizeof(llcl_stats_t), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, {0}, 0, \
    0, 0, 0, 0, 0, 0, 0, 0, 0}

/**
 * Reads the counters of a context.
 *
 * `context`: a live context. `stats`: the caller's struct with its struct_size set; filled. The
 * counters are read one after the other, while other threads may change them.
 * LLCL_OK; LLCL_ERR_INVALID: NULL, or an unknown struct_size. Any thread may call it.
 * From: fi_cntr_read of libfabric reads such counts; the choice of counters is this library's
 * own.
 */
llcl_status_t llcl_stats_get(llcl_context_t *context, llcl_stats_t *stats);

/*
 * 18. Reads and writes of many pieces: boxes with strides on both sides, and lists of places on
 *     both sides.
 *
 * Each is one request with one completion. If all of the peer's memory concerned is mapped, and
 * neither LLCL_FLAG_DEFER nor offload mode asks for the queue, the caller copies everything in the
 * call. Otherwise the request goes through the command queue as one command, and the thread that
 * executes it copies the pieces one after the other. For each piece in memory that its owner has
 * registered, the kernel makes a copy. Where the kernel does not copy, messages go to the owner; a
 * message carries as many pieces of one region as fit in 32 KiB, each with 16 bytes more. A write
 * may change a word of the peer when all of its bytes are there.
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
    /** Bytes of a piece. With 0 both addresses are checked, and nothing moves. */
    size_t size;
    /** How many entries of `extents` and the strides are used: 1 to LLCL_STRIDED_DIMENSIONS. */
    uint32_t dimensions;
    /**
     * For a write: how the word `signal` changes when all bytes are there, LLCL_SIGNAL_SET or
     * LLCL_SIGNAL_ADD; 0: not at all. For a read: 0.
     */
    uint32_t signal_op;
    /** Numbers of pieces, the innermost dimension first; 0 moves nothing. */
    uint64_t extents[8];
    /**
     * Bytes from one piece to the next in the caller's memory, never negative. Pieces of a source
     * may overlap; pieces of a destination must not.
     */
    uint64_t local_strides[8];
    /** Bytes from one piece to the next in the peer's memory. As `local_strides`. */
    uint64_t remote_strides[8];
    /** The word: a uint64_t of the same peer, aligned to 8 bytes. */
    llcl_remote_t signal;
    /** What the word is set to, or what is added to it. */
    uint64_t signal_value;
    /** Fires when all bytes are at their destination. The source may then be reused. */
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
 * A list of spans on each side. The bytes of one list, in its order, go to the bytes of the other
 * list, in its order. Both lists have the same number of bytes; their spans may differ in number
 * and size. The lists must not change during the call. If they do, the call may be refused, or use
 * old or new entries, but it accesses no memory outside the regions.
 */
typedef struct llcl_vector_params_t {
    /** The rank to read from or to write to. */
    uint32_t peer;
    /** LLCL_FLAG_*, or 0. */
    uint32_t flags;
    /**
     * The spans in the caller's memory; NULL if `local_count` is 0. Read during the call only.
     */
    const llcl_local_span_t *locals;
    /** How many there are. */
    size_t local_count;
    /**
     * The spans in the peer's memory; NULL if `remote_count` is 0. Read during the call only.
     */
    const llcl_remote_span_t *remotes;
    /** How many there are. */
    size_t remote_count;
    /**
     * For a write: the word that changes when all bytes are there, a uint64_t of the same peer,
     * aligned to 8 bytes.
     */
    llcl_remote_t signal;
    /** What the word is set to, or what is added to it. */
    uint64_t signal_value;
    /** For a write: LLCL_SIGNAL_SET or LLCL_SIGNAL_ADD; 0: no word changes. For a read: 0. */
    uint32_t signal_op;
    /** 0. */
    uint32_t reserved;
    /** Fires when all bytes are at their destination. The source may then be reused. */
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
 * The source must not change until `on_complete`. Pieces are copied in any order. Source and
 * destination must not overlap. If pieces of the destination overlap, the request is refused where
 * the strides alone show it; else the bytes there are those of any of the pieces.
 * `context`: a live context. `params`: read during the call only.
 * LLCL_OK: accepted; LLCL_RETRY_QUEUE_FULL, LLCL_RETRY_BUSY, LLCL_RETRY_CONNECTING: try again;
 * LLCL_ERR_INVALID: NULL, unknown flags or an invalid completion; or `dimensions` is 0 or more
 * than LLCL_STRIDED_DIMENSIONS, `signal_op` is wrong, the signal word is not aligned, or pieces of
 * the destination overlap; LLCL_ERR_RANGE: a box leaves its region, or its extents and strides
 * exceed 64 bits, as negative ones do; LLCL_ERR_KEY: a box is in no live region;
 * LLCL_ERR_PEER_DEAD: the peer has died or has left; LLCL_ERR_STATE: the context is being
 * finalized; LLCL_ERR_NO_MEMORY: no memory for the list of pieces, or the peer's memory cannot be
 * mapped; LLCL_ERR_SYSTEM: it cannot be mapped; LLCL_ERR_UNSUPPORTED: the signal word lies in a
 * region with LLCL_REGION_DEVICE_ATOMICS. Every error except LLCL_ERR_KEY is found before any byte
 * moves. The completion may report LLCL_ERR_PEER_DEAD, LLCL_ERR_KEY (the owner has freed the
 * region, or may not access its memory), LLCL_ERR_INVALID (this rank may not access the local
 * memory), LLCL_ERR_SYSTEM or LLCL_ERR_CANCELED: the first failure of all pieces. Some of the
 * bytes may then have moved. Any thread may call it, also inside a callback. The conventions say
 * on which thread the completion runs. From: the strided put and get of ARMCI and of GASNet (VIS),
 * but with the size of an element apart from the extents.
 */
llcl_status_t llcl_try_write_strided_async(llcl_context_t *context,
                                           const llcl_strided_params_t *params);

/**
 * Tries llcl_try_write_strided_async until it is accepted, and helps with progress meanwhile.
 *
 * `context` and `params`: as there. LLCL_OK or an error as there, never a "try again"; inside a
 * callback LLCL_ERR_STATE. Any thread may call it.
 * This library's own.
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
 * From: the strided put of ARMCI and of GASNet (VIS).
 */
llcl_status_t llcl_write_strided(llcl_context_t *context,
                                 const llcl_strided_params_t *params);

/**
 * Reads a box with strides from a peer, if that is possible now.
 *
 * The destination is undefined until `on_complete`.
 * `context` and `params`: as of llcl_try_write_strided_async, with `signal_op` 0; order and
 * overlap: as there. LLCL_OK and all other statuses, and what the completion reports: as there.
 * Any thread may call it, also inside a callback. From: the strided get of ARMCI and of GASNet.
 */
llcl_status_t llcl_try_read_strided_async(llcl_context_t *context,
                                          const llcl_strided_params_t *params);

/**
 * Tries llcl_try_read_strided_async until it is accepted, and helps with progress meanwhile.
 *
 * `context` and `params`: as there. LLCL_OK or an error as there, never a "try again"; inside a
 * callback LLCL_ERR_STATE. Any thread may call it.
 * This library's own.
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
 * From: the strided get of ARMCI and of GASNet (VIS).
 */
llcl_status_t llcl_read_strided(llcl_context_t *context,
                                const llcl_strided_params_t *params);

/**
 * Writes a list of spans to a list of spans of a peer, and then changes a word there if
 * `signal_op` says so, if that is possible now.
 *
 * A thread that sees the word changed sees all bytes, as with llcl_try_write_signal_async.
 * The source must not change until `on_complete`. Pieces are copied in any order. Source and
 * destination must not overlap. If spans of the destination overlap, the bytes there are those of
 * any of them.
 * `context`: a live context. `params`: read during the call only.
 * LLCL_OK: accepted; LLCL_RETRY_QUEUE_FULL, LLCL_RETRY_BUSY, LLCL_RETRY_CONNECTING: try again;
 * LLCL_ERR_INVALID: NULL, unknown flags or an invalid completion; or a list is NULL and not empty,
 * the lists differ in bytes, `reserved` is not 0, `signal_op` is wrong, or the signal word is not
 * aligned; LLCL_ERR_RANGE: a span leaves its region, the sum of the sizes exceeds 64 bits, or a
 * list has more entries than memory holds; LLCL_ERR_KEY: a span is in no live region (the message
 * of both names the span); LLCL_ERR_PEER_DEAD: the peer has died or has left; LLCL_ERR_STATE: the
 * context is being finalized; LLCL_ERR_NO_MEMORY: no memory for the list of pieces, or the peer's
 * memory cannot be mapped; LLCL_ERR_SYSTEM: it cannot be mapped; LLCL_ERR_UNSUPPORTED: the signal
 * word lies in a region with LLCL_REGION_DEVICE_ATOMICS. If the call answers a "try again" or an
 * error, bytes may have moved: those before the first span that is wrong or not mapped; if the
 * lists differ in bytes, all that both have. The completion may report LLCL_ERR_PEER_DEAD,
 * LLCL_ERR_KEY (the owner has freed the region, or may not access its memory), LLCL_ERR_INVALID
 * (this rank may not access the local memory), LLCL_ERR_SYSTEM or LLCL_ERR_CANCELED: the first
 * failure of all pieces. Some of the bytes may then have moved. Any thread may call it, also
 * inside a callback. The conventions say on which thread the completion runs. From: the vector put
 * and get of GASNet (VIS) and ARMCI, and POSIX's readv and writev.
 */
llcl_status_t llcl_try_writev_async(llcl_context_t *context,
                                    const llcl_vector_params_t *params);

/**
 * Tries llcl_try_writev_async until it is accepted, and helps with progress meanwhile.
 *
 * `context` and `params`: as there. LLCL_OK or an error as there, never a "try again"; inside a
 * callback LLCL_ERR_STATE. Any thread may call it.
 * This library's own.
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
 * From: writev of POSIX.
 */
llcl_status_t llcl_writev(llcl_context_t *context, const llcl_vector_params_t *params);

/**
 * Reads a list of spans of a peer into a list of spans, if that is possible now.
 *
 * The destination is undefined until `on_complete`.
 * `context` and `params`: as of llcl_try_writev_async, with `signal_op` 0; order and overlap: as
 * there. LLCL_OK and all other statuses, and what the completion reports: as there.
 * Any thread may call it, also inside a callback. From: POSIX's readv.
 */
llcl_status_t llcl_try_readv_async(llcl_context_t *context,
                                   const llcl_vector_params_t *params);

/**
 * Tries llcl_try_readv_async until it is accepted, and helps with progress meanwhile.
 *
 * `context` and `params`: as there. LLCL_OK or an error as there, never a "try again"; inside a
 * callback LLCL_ERR_STATE. Any thread may call it.
 * This library's own.
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
 * From: readv of POSIX.
 */
llcl_status_t llcl_readv(llcl_context_t *context, const llcl_vector_params_t *params);

/*
 * 19. Placed memory: regions at addresses of the program's choice, and second mappings of a
 *     region, for symmetric heaps and for shared memory that is managed page by page.
 */

/**
 * A bit of the access to an alias (llcl_region_alias): loads are allowed. With no bit set no
 * access is allowed.
 */
#define LLCL_ACCESS_READ 1u

/** Stores are allowed. Most processors then allow loads as well. */
#define LLCL_ACCESS_WRITE 2u

/**
 * Allocates a region as llcl_region_allocate does, at an address of the caller's choice in this
 * process. Peers name places in it by the region and an offset, and map it wherever they like.
 *
 * To make a heap that begins at the same address at every rank: one rank finds an address (by mmap
 * of as many bytes with PROT_NONE, and munmap) and tells it to the others (llcl_allgather_bytes);
 * then all call this function. If one is refused, all free their regions and try another address.
 * `context`: a live context. `address`: the first byte, a multiple of the page size. Nothing may
 * be mapped in the `size` bytes from there on, rounded up to whole pages. If the program has
 * reserved the range, it must unmap it before. `size`, `flags` and `region`: as of
 * llcl_region_allocate. LLCL_OK; LLCL_ERR_INVALID: `address` is NULL or no multiple of the page
 * size; LLCL_ERR_RANGE: something is mapped there; LLCL_ERR_SYSTEM or LLCL_ERR_NO_MEMORY: the
 * kernel gives no memory at this address; else as llcl_region_allocate. Any thread may call it.
 * From: the aligned segments of GASNet (gasnet_attach) and the symmetric heap of OpenSHMEM; here
 * the caller chooses the address.
 */
llcl_status_t llcl_region_allocate_at(llcl_context_t *context,
                                      void *address,
                                      size_t size,
                                      uint32_t flags,
                                      llcl_region_t **region);

/**
 * Maps a part of an allocated region a second time in this process. The alias shows the region's
 * bytes and has a protection of its own. So a program can catch its own accesses to the alias
 * (LLCL_ACCESS_*, or later mprotect), while the library and the peers use the region.
 *
 * A thread may sleep in llcl_wait_word on a word of an alias. A store through an alias wakes no
 * thread: call llcl_wake after it. To use an alias as the local side of an operation, pass
 * llcl_local_address. `region`: a live region that was allocated. `offset`: where in it the alias
 * begins, a multiple of the page size. `size`: bytes, at least 1, rounded up to whole pages.
 * `address`: where the alias is to begin, a multiple of the page size from which on nothing is
 * mapped; NULL: anywhere. `access`: LLCL_ACCESS_* or 0. `alias`: where the first byte's address
 * goes. Ended by llcl_region_unalias, with the region, or with the context; the program must not
 * unmap it. LLCL_OK; LLCL_ERR_INVALID: NULL, size 0, unknown bits in `access`, or `offset` or
 * `address` is no multiple of the page size; LLCL_ERR_RANGE: the part leaves the region, or
 * something is mapped at `address`; LLCL_ERR_UNSUPPORTED: the region was registered;
 * LLCL_ERR_STATE: it was freed, or this process is a forked child; LLCL_ERR_NO_MEMORY,
 * LLCL_ERR_SYSTEM: the kernel does not map it. Any thread may call it.
 * From: page-based shared memory (TreadMarks, ArgoDSM, MENPS), which maps a file twice.
 */
llcl_status_t llcl_region_alias(llcl_region_t *region,
                                uint64_t offset,
                                size_t size,
                                void *address,
                                uint32_t access,
                                void **alias);

/**
 * Ends an alias: unmaps it. The region does not change.
 *
 * `region`: the region of which it is an alias. `alias`: the address from llcl_region_alias. No
 * pending operation and no thread may use it any more.
 * LLCL_OK; LLCL_ERR_INVALID: NULL, or `alias` begins no alias of this region; LLCL_ERR_STATE: the
 * region was freed, and the alias ended with it, or this process is a forked child. Any thread may
 * call it.
 * From: munmap of POSIX.
 */
llcl_status_t llcl_region_unalias(llcl_region_t *region,
                                  void *alias);

/*
 * 20. Nonblocking collectives: one call makes the plan and starts it; a completion reports the
 *     end.
 *
 * Each takes the parameters of its _init function and returns at once. `on_complete`, which must
 * not be llcl_no_completion(), fires when the operation has ended at this rank, or with an error.
 * Until then the program may use the buffers only as llcl_coll_start says. Counts, offsets and
 * the name of the algorithm are read during the call. The call takes about as long as
 * llcl_coll_start.
 *
 * All ranks must call the collective functions of a team in the same order, these included. A call
 * that is answered by "try again" or by an error has not happened, and the other ranks wait for
 * it. Any number of different operations may be under way. Of calls that differ in buffers,
 * `function` and `on_complete` only (in v forms also in the counts), as many as `depth` says may
 * be under way; 0 counts as 1. While such a call waits for its plan, `depth` more are accepted.
 *
 * A team keeps as many of their plans as LLCL_COLL_CACHE says, apart from the plans of the
 * blocking forms; so a nonblocking call must not be matched with a blocking one. It frees their
 * memory as that of those plans. If the plan of a call is kept, the calling thread starts it. A
 * thread of the library, `llcl-coll`, prepares all other calls: a call without a kept plan, a v
 * form (in which the ranks vote, as in the blocking forms), and every call that is made while that
 * thread works. A team has one such thread at a time, which ends when it has nothing to do. Errors
 * that it finds, a difference between ranks included, are reported by the completion's status. So
 * is the failure of a kept plan: the plan stays, and the completions of all further calls with it
 * report the status with which a round of it has failed, until other plans have displaced it. The
 * functions of the team that wait (the _init functions, the blocking forms, llcl_team_split,
 * llcl_team_free) begin when that thread has prepared the calls before them. llcl_finalize waits
 * LLCL_FINALIZE_MS for calls that are not prepared, and then ends them with LLCL_ERR_CANCELED.
 *
 * From: the nonblocking collectives of MPI 3.0, section 5.12, with a completion in place of the
 * request, and a depth.
 */

/**
 * Barrier: ends when every rank of the team has called it. Nonblocking.
 *
 * `params`: as llcl_barrier_init, read during the call; `on_complete` must not be
 * llcl_no_completion().
 * LLCL_OK: accepted; LLCL_RETRY_BUSY: as many such calls as `depth` says are under way, or 64
 * calls wait to be prepared: wait for one of them, and repeat; LLCL_ERR_INVALID: NULL, a value
 * that is not allowed, or `on_complete` is llcl_no_completion(); LLCL_ERR_STATE: the team was
 * freed, or the context is being finalized; LLCL_ERR_NO_MEMORY: no thread can be started, or a
 * copy would exceed LLCL_COLL_MEMORY; LLCL_ERR_KEY, LLCL_ERR_RANGE: as llcl_coll_start_with. The
 * completion may also report what llcl_barrier_init, llcl_coll_start and llcl_coll_wait answer,
 * and LLCL_ERR_CANCELED.
 * Any thread may call it, also inside a callback, but threads of one rank must not call collective
 * functions of one team at the same time. The conventions say on which thread the completion
 * fires.
 * From: MPI_Ibarrier, with a completion in place of the request.
 */
llcl_status_t llcl_barrier_async(const llcl_coll_params_t *params);

/**
 * Broadcast: the root's data for every rank. Nonblocking.
 *
 * `params`: as llcl_broadcast_init, read during the call; `on_complete` must not be
 * llcl_no_completion(). LLCL_OK: accepted; other statuses, those of the completion, and threads:
 * as llcl_barrier_async.
 * From: MPI_Ibcast, with a completion in place of the request.
 */
llcl_status_t llcl_broadcast_async(const llcl_coll_params_t *params);

/**
 * Reduction: the elements of all ranks, combined one by one, at the root. Nonblocking.
 *
 * `params`: as llcl_reduce_init, read during the call; `on_complete` must not be
 * llcl_no_completion(). LLCL_OK: accepted; other statuses, those of the completion, and threads:
 * as llcl_barrier_async.
 * From: MPI_Ireduce, with a completion in place of the request.
 */
llcl_status_t llcl_reduce_async(const llcl_coll_params_t *params);

/**
 * Allreduce: the elements of all ranks, combined one by one, for every rank. Nonblocking.
 *
 * `params`: as llcl_allreduce_init, read during the call; `on_complete` must not be
 * llcl_no_completion(). LLCL_OK: accepted; other statuses, those of the completion, and threads:
 * as llcl_barrier_async.
 * From: MPI_Iallreduce, with a completion in place of the request.
 */
llcl_status_t llcl_allreduce_async(const llcl_coll_params_t *params);

/**
 * Gather: a block of every rank, one after the other, at the root. Nonblocking.
 *
 * `params`: as llcl_gather_init, read during the call; `on_complete` must not be
 * llcl_no_completion(). LLCL_OK: accepted; other statuses, those of the completion, and threads:
 * as llcl_barrier_async.
 * From: MPI_Igather, with a completion in place of the request.
 */
llcl_status_t llcl_gather_async(const llcl_coll_params_t *params);

/**
 * Gather with a length for each rank's block. Nonblocking.
 *
 * `params`: as llcl_gatherv_init, read during the call; `on_complete` must not be
 * llcl_no_completion(). LLCL_OK: accepted; other statuses, those of the completion, and threads:
 * as llcl_barrier_async.
 * From: MPI_Igatherv, with a completion in place of the request.
 */
llcl_status_t llcl_gatherv_async(const llcl_coll_params_t *params);

/**
 * Scatter: a block of the root's input for every rank. Nonblocking.
 *
 * `params`: as llcl_scatter_init, read during the call; `on_complete` must not be
 * llcl_no_completion(). LLCL_OK: accepted; other statuses, those of the completion, and threads:
 * as llcl_barrier_async.
 * From: MPI_Iscatter, with a completion in place of the request.
 */
llcl_status_t llcl_scatter_async(const llcl_coll_params_t *params);

/**
 * Scatter with a length for each rank's block. Nonblocking.
 *
 * `params`: as llcl_scatterv_init, read during the call; `on_complete` must not be
 * llcl_no_completion(). LLCL_OK: accepted; other statuses, those of the completion, and threads:
 * as llcl_barrier_async.
 * From: MPI_Iscatterv, with a completion in place of the request.
 */
llcl_status_t llcl_scatterv_async(const llcl_coll_params_t *params);

/**
 * Allgather: a block of every rank, one after the other, for every rank. Nonblocking.
 *
 * `params`: as llcl_allgather_init, read during the call; `on_complete` must not be
 * llcl_no_completion(). LLCL_OK: accepted; other statuses, those of the completion, and threads:
 * as llcl_barrier_async.
 * From: MPI_Iallgather, with a completion in place of the request.
 */
llcl_status_t llcl_allgather_async(const llcl_coll_params_t *params);

/**
 * Allgather with a length for each rank's block. Nonblocking.
 *
 * `params`: as llcl_allgatherv_init, read during the call; `on_complete` must not be
 * llcl_no_completion(). LLCL_OK: accepted; other statuses, those of the completion, and threads:
 * as llcl_barrier_async.
 * From: MPI_Iallgatherv, with a completion in place of the request.
 */
llcl_status_t llcl_allgatherv_async(const llcl_coll_params_t *params);

/**
 * All-to-all: a block of every rank for every rank. Nonblocking.
 *
 * `params`: as llcl_alltoall_init, read during the call; `on_complete` must not be
 * llcl_no_completion(). LLCL_OK: accepted; other statuses, those of the completion, and threads:
 * as llcl_barrier_async.
 * From: MPI_Ialltoall, with a completion in place of the request.
 */
llcl_status_t llcl_alltoall_async(const llcl_coll_params_t *params);

/**
 * All-to-all with a length for each block. Nonblocking.
 *
 * `params`: as llcl_alltoallv_init, read during the call; `on_complete` must not be
 * llcl_no_completion(). LLCL_OK: accepted; other statuses, those of the completion, and threads:
 * as llcl_barrier_async.
 * From: MPI_Ialltoallv, with a completion in place of the request.
 */
llcl_status_t llcl_alltoallv_async(const llcl_coll_params_t *params);

/**
 * Reduce-scatter: the elements of all ranks, combined one by one; each rank gets a block.
 * Nonblocking.
 *
 * `params`: as llcl_reduce_scatter_init, read during the call; `on_complete` must not be
 * llcl_no_completion(). LLCL_OK: accepted; other statuses, those of the completion, and threads:
 * as llcl_barrier_async.
 * From: MPI_Ireduce_scatter_block, with a completion in place of the request.
 */
llcl_status_t llcl_reduce_scatter_async(const llcl_coll_params_t *params);

/**
 * Reduce-scatter with a length for each rank's block. Nonblocking.
 *
 * `params`: as llcl_reduce_scatterv_init, read during the call; `on_complete` must not be
 * llcl_no_completion(). LLCL_OK: accepted; other statuses, those of the completion, and threads:
 * as llcl_barrier_async.
 * From: MPI_Ireduce_scatter, with a completion in place of the request.
 */
llcl_status_t llcl_reduce_scatterv_async(const llcl_coll_params_t *params);

/**
 * Scan: each rank gets the elements of all ranks up to and including itself, combined.
 * Nonblocking.
 *
 * `params`: as llcl_scan_init, read during the call; `on_complete` must not be
 * llcl_no_completion(). LLCL_OK: accepted; other statuses, those of the completion, and threads:
 * as llcl_barrier_async.
 * From: MPI_Iscan, with a completion in place of the request.
 */
llcl_status_t llcl_scan_async(const llcl_coll_params_t *params);

/**
 * Exclusive scan: each rank except the first gets the elements of all ranks before it, combined.
 * Nonblocking.
 *
 * `params`: as llcl_exscan_init, read during the call; `on_complete` must not be
 * llcl_no_completion(). LLCL_OK: accepted; other statuses, those of the completion, and threads:
 * as llcl_barrier_async.
 * From: MPI_Iexscan, with a completion in place of the request.
 */
llcl_status_t llcl_exscan_async(const llcl_coll_params_t *params);

/*
 * Macros of C and C++.
 */

/**
 * Calls a function that answers a status. On any other answer than LLCL_OK or LLCL_DONE, "try
 * again" included, it prints the answer on stderr and ends the process, and with it the job. For
 * examples, tests and small programs.
 */
#define LLCL_CHECK(call) llcl_must_succeed((call), #call, __FILE__, __LINE__)

#ifdef __cplusplus
}
#endif

#endif /* LLCL_H */
