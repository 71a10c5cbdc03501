/* llcl_wire.h - the function table of a wire module, by which libllcl uses a network
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Programs do not need this file. A wire module is a shared object, libllcl-NAME.so, with one
 * symbol, llcl_wire_module(). If LLCL_TRANSPORT=NAME is set, libllcl looks for it in the folder
 * llcl beside itself, or in the folders of LLCL_MODULES. docs/porting.md shows how to write one.
 *
 * - Data: all structs are plain data. Neither side frees memory of the other. A module returns
 *   events in arrays that libllcl passes; it calls no function of libllcl but those of
 *   llcl_wire_host_t.
 * - Statuses are those of llcl.h, which a module may include: 0 is success, positive ones mean "try
 *   again", negative ones are errors.
 * - Versions: later versions append fields to structs that begin with struct_size; a reader ignores
 *   fields beyond struct_size. Commands always have 128 bytes and events 64; their reserved words
 *   are 0. A change of a field's meaning changes LLCL_WIRE_MAJOR.
 * - Threads: libllcl calls functions that take a lane, and close(), from one thread at a time, not
 *   always the same. It calls all others from any thread.
 * - A function marked "may be 0" may be missing. All others must be there.
 *
 * libllcl posts these commands:
 * - frames (LLCL_W_FRAME); if caps() sets shared_queue, also small messages in the classes of
 *   requests for credits, without a credit;
 * - if caps() sets read and write, and register_ and deregister are there: reads and writes of
 *   peers' memory in class LLCL_CLASS_RMA, each with one piece; a write of at most inline_most
 *   bytes has the flag LLCL_WF_INLINE;
 * - if atomics[0] contains compare-and-swap, too: atomics without pieces on aligned words of 8
 *   bytes, in class LLCL_CLASS_RMA, for any rank including this one;
 * - if caps() sets read and write but not shared_queue, notice_bits is 8 or more, atomics[0]
 *   contains fetch-and-add, and message_most is 0, 512 or more: for small messages of a stream,
 *   fetch-and-adds, reads of 8 bytes, and writes of at most 512 bytes with the flag LLCL_WF_NOTICE,
 *   in class LLCL_CLASS_RMA;
 * - if caps() sets read and write, notice_bits is 8 or more, and notice_words is 4, at this rank
 *   and at the peer: writes with signal, as writes of any size with the flags LLCL_WF_NOTICE and
 *   LLCL_WF_WORDS, in class LLCL_CLASS_RMA. Without these libllcl sends a signal behind its data,
 *   by a frame;
 * - if the table has answer(), too, and notice_bits is 16 or more, at both ranks: atomics that the
 *   peer's libllcl executes, as such writes of no bytes, with LLCL_WF_FETCH. Without these they are
 *   requests in frames.
 * libllcl does not use orders, the flags FENCE and SILENT, and the commands EXPECT and DELIVER so
 * far. */
#ifndef LLCL_WIRE_H
#define LLCL_WIRE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A module of another major version is refused. */
#define LLCL_WIRE_MAJOR 3u

typedef struct llcl_wire llcl_wire_t;           /* defined by the module: one network as one rank uses it */
typedef struct llcl_wire_lane llcl_wire_lane_t; /* defined by the module: a queue of commands and events, used by one thread at a time */

/* The keys of one registration. local: for this rank (lkey or descriptor); wire: for peers (rkey,
 * STADD, or MR key). */
typedef struct {
    uint64_t local;
    uint64_t wire[4];
} llcl_wire_key_t;

/* Classes of commands. libllcl may keep frames of one class for long; they must delay no frame of
 * another class. Either a module has a fixed number of receives for each class, 16 or more. If all
 * receives of a class hold frames that libllcl has not given back, further frames of this class
 * stay in the network. Or the module receives every frame, into memory that it allocates. Frames of
 * the last three classes (requests for credits) have at most LLCL_KNOCK_MOST bytes; libllcl keeps
 * up to six of each peer for long. */
enum { LLCL_CLASS_ANSWER, LLCL_CLASS_LIB, LLCL_CLASS_USER, LLCL_CLASS_RMA, LLCL_CLASS_KNOCK_LIB, LLCL_CLASS_KNOCK_RESPONSE, LLCL_CLASS_KNOCK_REQUEST };
#define LLCL_KNOCK_MOST 512u

/* llcl_wire_command_t.op */
enum { LLCL_W_READ = 1, LLCL_W_WRITE, LLCL_W_ATOMIC, LLCL_W_FRAME, LLCL_W_EXPECT, LLCL_W_DELIVER };

/* llcl_wire_command_t.flags. INLINE: post() copies the bytes. NOTICE, of a write: the peer gets
 * LLCL_WE_NOTICE when the bytes are in its memory. SILENT: no LLCL_WE_DONE on success. WORDS, with
 * NOTICE: the notice brings the field words. FETCH, with WORDS: the writer waits for the value of
 * the answer */
enum { LLCL_WF_INLINE = 1, LLCL_WF_NOTICE = 2, LLCL_WF_FENCE = 4, LLCL_WF_SILENT = 8, LLCL_WF_WORDS = 16, LLCL_WF_FETCH = 32 };

/* A buffer in this process's memory. local: the local key of its registration; 0: the wire needs
 * none */
typedef struct {
    const void *address;
    uint64_t size, local;
} llcl_wire_piece_t;

typedef struct {
    uint8_t op, atomic, type, pieces; /* atomic: an LLCL_OP_*; type: an LLCL_TYPE_*; pieces: length of the array piece */
    uint32_t flags;
    uint64_t tag;             /* LLCL_WE_DONE returns it; until then libllcl keeps the bytes valid, and does not change those of a frame or a write */
    uint64_t remote, wire[4]; /* remote address in the peer's process, and llcl_wire_key_t.wire of its registration */
    uint64_t size;            /* sum of all pieces; of an atomic, the size of the word */
    uint64_t operand, compare; /* compare: the value that a compare-and-swap expects; operand: its new value, or the operand of another atomic */
    uint32_t notice, order;    /* notice: the number that a write with NOTICE brings, of notice_bits; commands with one order other than 0 keep their order */
    const llcl_wire_piece_t *piece; /* valid during post() */
    uint64_t words[4];              /* what a notice with WORDS brings beside its number; else 0 */
} llcl_wire_command_t;

/* llcl_wire_event_t.event */
enum {
    LLCL_WE_DONE = 1,    /* a command has completed: tag, peer, status; of an atomic also fetched, the value before; of a write with WORDS
                            fetched, the value that the peer's libllcl has passed to answer();
                            0 if it has not called that. After a read the bytes are in the local
                            buffer; after a write the peer's threads see them. After an error no
                            bytes of the command move any more; where the network cannot promise
                            that, for a dead peer, deregister() of the memory is an error, too. An
                            error of a frame for a living peer says that the frame is lost:
                            libllcl then sends nothing more to this peer */
    LLCL_WE_FRAME,       /* a frame has arrived: peer (its sender), cls, bytes, size; frame is the number for give_back() */
    LLCL_WE_NOTICE,      /* a write with notice has arrived, and its bytes are in memory: peer (its sender), tag (the notice). With WORDS also
                            bytes, size: the words, valid until the next poll(); else size is 0.
                            frame: the number for answer(), for each notice with WORDS if the
                            table has it; 0: libllcl answers by a frame */
    LLCL_WE_CONNECTED,   /* the connection to peer is established */
    LLCL_WE_LOST,        /* the network does not reach peer any more: status */
    LLCL_WE_FENCED,      /* nothing that peer has sent arrives after this event, no notice either */
    LLCL_WE_UNFENCEABLE, /* the module cannot tell when the last data of peer arrives */
    LLCL_WE_DEVICE,      /* the adapter has failed: status */
    LLCL_WE_SERVED       /* poll() has progressed an operation of peer; libllcl goes on polling, since peer probably continues */
};

typedef struct {
    uint32_t event, peer;
    int32_t status;
    uint32_t cls;
    uint64_t tag, fetched, frame;
    const void *bytes;
    uint64_t size, reserved;
} llcl_wire_event_t;

/* The abilities of a wire. caps() fills in the fields within struct_size; fields that a module does
 * not know stay 0. So far libllcl reads read, write, frame, threads, atomics[0], notice_bits,
 * inline_most, needs_local_key, frame_most, card_bytes, message_most, shared_queue and
 * notice_words. */
typedef struct {
    uint64_t struct_size;
    uint32_t read, write, frame, two_sided, ordered, notice_bits, remote_flag_ordered;
    /* 0: one thread after another may use a lane; 1: one thread only, which libllcl refuses so far;
     * 2: as 0, but only calls of the thread that has called open() and init() make progress, so
     * libllcl lets it poll where it waits. */
    uint32_t threads;
    uint64_t atomics[2]; /* [0]: on aligned words of 8 bytes, bit n for the LLCL_OP_* with number n; integers, signed or not by LLCL_TYPE_* */
    uint32_t atomics_with_cpu;
    uint32_t inline_most; /* most bytes of a write that post() copies */
    uint32_t pieces_most;
    uint32_t needs_local_key; /* local buffers must be registered, except those of inline writes */
    uint32_t frame_most;      /* most bytes of a frame; 512 or more */
    uint32_t card_bytes;      /* size of a card; 64 or less */
    uint64_t message_most;    /* most bytes of a read or write; 0: no limit */
    uint64_t bounce_below;
    uint32_t depth, lanes;
    uint32_t can_fence; /* fence() ends with LLCL_WE_FENCED */
    uint32_t has_fd;
    /* The receives of a class are a queue that all peers share: while they hold frames, a further
     * frame waits at its sender. LLCL_WE_DONE of a frame says that a receive of the peer has taken
     * it, so that poll() returns it there before any frame that is posted later, even if this rank
     * ends; or that the peer is gone. post() answers LLCL_RETRY_QUEUE_FULL while the module takes
     * no more frames for this peer and class. All ranks of a job have it, or none. */
    uint32_t shared_queue;
    uint32_t notice_words; /* 4: a notice may bring words. Writes with signal use them between ranks that both have it. */
} llcl_wire_caps_t;

/* The functions of libllcl that a module may call; valid as long as the wire, those of probe() and
 * launch() during the call. */
typedef struct {
    uint64_t struct_size;
    void *host;                                           /* first parameter of the functions below */
    void (*log)(void *host, int level, const char *text); /* call it before returning an error: text becomes the message of the user's error */
    const char *(*config)(void *host, const char *name);  /* returns the value of an environment variable; 0: it is not set */
    void (*wake)(void *host);                             /* 0 so far */
} llcl_wire_host_t;

typedef struct {
    uint64_t struct_size;
    uint32_t rank, size, node, reserved; /* node: 0 so far */
    /* points to llcl_bootstrap_t.foreign, an int64_t: for MPI the Fortran handle of a communicator.
     * A null pointer, or the number 0: none */
    const void *foreign;
} llcl_wire_open_t;

/* How libllcl may sleep. how 0: not at all, an event is ready; 1: until fd becomes readable, which
 * happens when poll() has an event, and at most after_ns (0: no limit); 2: there is no fd, and no
 * event is ready before after_ns (0: not known) */
typedef struct {
    uint32_t how;
    int32_t fd;
    int64_t after_ns;
} llcl_wire_armed_t;

typedef struct {
    uint32_t major, reserved;
    uint64_t struct_size;
    const char *name, *version, *built_for;
    /* Returns LLCL_OK if this process can use the wire; else writes the reason to why, a string of
     * at most size bytes. Called before any other */
    int32_t (*probe)(const llcl_wire_host_t *, char *why, size_t size);
    /* Opens the wire of a rank. Collective over all ranks. */
    int32_t (*open)(const llcl_wire_host_t *, const llcl_wire_open_t *, llcl_wire_t **);
    /* Closes the wire and its lane. The module has up to drain_ns to send what it has taken.
     * libllcl gives no frame back afterwards. LLCL_OK: the network touches the bytes of no command
     * any more. Else it may do so (LLCL_ERR_SYSTEM), or the calling thread may not close the wire
     * (LLCL_ERR_STATE): libllcl then keeps the bytes and the host until the process ends. It calls
     * nothing of the wire afterwards, whatever the answer. */
    int32_t (*close)(llcl_wire_t *, int64_t drain_ns);
    int32_t (*caps)(llcl_wire_t *, llcl_wire_caps_t *);
    /* Writes this rank's card: the card_bytes bytes by which peers connect to it */
    int32_t (*card)(llcl_wire_t *, void *bytes, size_t size);
    /* Registers memory: peers that have the key may read (access 1) and write (access 2) it;
     * libllcl passes 3. May be 0 */
    int32_t (*register_)(llcl_wire_t *, void *, uint64_t, uint32_t access, llcl_wire_key_t *);
    /* Ends a registration. Waits up to patience_ns for transfers of the memory that are under way.
     * LLCL_OK: after the return no data arrives in the memory, not even data that a dead rank has
     * sent. An error: data may arrive, and libllcl keeps the memory valid until the process ends,
     * or asks the program to. In both cases commands that arrive later end with LLCL_ERR_KEY, even
     * if the memory is registered again: no later registration gets the same key. May be 0 */
    int32_t (*deregister)(llcl_wire_t *, const llcl_wire_key_t *, int64_t patience_ns);
    /* Returns the lane with this number; libllcl asks once, for number 0 */
    int32_t (*lane)(llcl_wire_t *, uint32_t number, llcl_wire_lane_t **);
    /* Begins to connect to the peer that has this card; LLCL_WE_CONNECTED reports success. A peer
     * from which a frame has arrived is connected. */
    int32_t (*connect)(llcl_wire_lane_t *, uint32_t peer, const void *card, size_t size);
    /* Takes a prefix of count commands and returns its length. If it does not take all, stopped_by
     * is the reason: LLCL_RETRY_QUEUE_FULL (libllcl posts the rest after a poll),
     * LLCL_RETRY_CONNECTING (libllcl posts the rest after LLCL_WE_CONNECTED), or an error: the
     * network does not reach the peer any more. libllcl may post to a peer from which a frame has
     * arrived without connect(). */
    uint32_t (*post)(llcl_wire_lane_t *, uint32_t peer, uint32_t cls, const llcl_wire_command_t *, uint32_t count, int32_t *stopped_by);
    /* Writes up to count events and returns their number */
    uint32_t (*poll)(llcl_wire_lane_t *, llcl_wire_event_t *, uint32_t count);
    /* Returns the memory of a received frame to the module */
    void (*give_back)(llcl_wire_lane_t *, uint64_t frame);
    /* Called before a thread sleeps. Until disarm() other threads may post; they may poll if how is
     * 2. After how 0 disarm() is not called. */
    int32_t (*arm)(llcl_wire_lane_t *, llcl_wire_armed_t *);
    void (*disarm)(llcl_wire_lane_t *);
    /* Called when peer has died. The module reports LLCL_WE_DONE for each read, write and atomic
     * for peer, then LLCL_WE_FENCED or LLCL_WE_UNFENCEABLE. Before LLCL_WE_FENCED it also reports
     * LLCL_WE_DONE for each frame for peer that it has taken; libllcl keeps the bytes of the others
     * until close() */
    int32_t (*fence)(llcl_wire_lane_t *, uint32_t peer);
    /* Writes one line for llcl-info, which says what a wire of this module allocates for what may
     * arrive, on each rank and for each peer; and, where that depends on the network's library,
     * whether it reports deaths (LLCL_WE_LOST). size: the bytes of text, 0 included. No wire need
     * be open: llcl-info passes 0. May be 0 */
    int32_t (*describe)(llcl_wire_t *, char *text, size_t size);
    /* For processes that the network's own launcher has started (mpirun). All four may be 0.
     * launch: starts the network's library unless the program has done so, and returns this
     * process's rank and the number of ranks */
    int32_t (*launch)(const llcl_wire_host_t *, uint32_t *rank, uint32_t *size);
    /* Gathers size bytes of every rank, in the order of the ranks. Collective */
    int32_t (*allgather)(const void *mine, size_t size, void *all);
    /* Ends the job with an exit code */
    void (*abort)(int32_t exit_code);
    /* Ends the network's library, if launch() has started it */
    void (*end)(void);
    /* May be 0. Called once for a notice with a number: libllcl has changed the signal's word, or
     * has refused to (status). The module then reports LLCL_WE_DONE of the write at the writer,
     * with this status and value. The answer may wait for other data for this peer, until the end
     * of the next poll() that makes progress (where threads is 2: on the thread that has called
     * open()). While one waits for a poll() of the calling thread arm() answers how 0. The answer
     * to a write with FETCH waits less: if the calling thread can make progress, it leaves when the
     * notices that poll() has returned are answered. Any thread may call this, also where threads
     * is 2. */
    void (*answer)(llcl_wire_lane_t *, uint64_t number, int32_t status, uint64_t value);
} llcl_wire_module_t;

/* The one symbol of a module. Returns its table, which stays valid. host_size: sizeof
 * (llcl_wire_module_t) of this libllcl. A module that does not support host_major returns its table
 * all the same; libllcl refuses it by the major in the table. */
const llcl_wire_module_t *llcl_wire_module(uint32_t host_major, uint64_t host_size);

#ifdef __cplusplus
}
#endif
#endif
