/* llcl_wire.h - the table by which libllcl uses a network that lies in a shared object of its own
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Programs do not need this file. A wire module is a shared object, libllcl-NAME.so, with one symbol, llcl_wire_module(). libllcl looks for it
 * in the folder llcl beside itself, or in the folders of LLCL_MODULES, where LLCL_TRANSPORT=NAME asks for it.
 *
 * - Plain data only; no ownership crosses. Events are returned in arrays; a module calls nothing of libllcl but llcl_wire_host_t.
 * - Statuses are those of llcl.h, which a module may include: 0, positive "try again", negative errors.
 * - Growth: fields are appended to structs that begin with struct_size; those beyond struct_size are not there. Commands have 128 bytes and events
 *   64 for ever; their reserved words are 0. What would change the meaning of a field changes LLCL_WIRE_MAJOR.
 * - Threads: functions that take a lane are called by one thread at a time, not always the same. The others by any.
 * - Functions marked "may be 0" may be missing; all others must be there.
 *
 * libllcl posts frames, and, where caps() has read, write, register_ and deregister, reads and writes of peers' memory with one piece each (and INLINE up
 * to inline_most), in class LLCL_CLASS_RMA; so, too, where atomics[0] has compare-and-swap, atomics without pieces on aligned words of 8 bytes, at any
 * rank, the own one too. It does not post other commands. Notices, orders and fences are not used so far. */
#ifndef LLCL_WIRE_H
#define LLCL_WIRE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A module of another major version is refused. */
#define LLCL_WIRE_MAJOR 1u

typedef struct llcl_wire llcl_wire_t;           /* the module's: one network as one rank uses it */
typedef struct llcl_wire_lane llcl_wire_lane_t; /* the module's: what one thread at a time posts to and polls */

/* Memory that was registered: lkey or descriptor; address and rkey, STADD, or MR key. */
typedef struct {
    uint64_t local;
    uint64_t wire[4];
} llcl_wire_key_t;

/* Classes of commands. A module has a fixed number of receives for the frames of each class, 16 or more. A frame that finds none, since libllcl
 * has not given back those before it, stays with the network, and delays no frame of another class. Those of the last three classes have at most
 * LLCL_KNOCK_MOST bytes, and libllcl may keep them for long. */
enum { LLCL_CLASS_ANSWER, LLCL_CLASS_LIB, LLCL_CLASS_USER, LLCL_CLASS_RMA, LLCL_CLASS_KNOCK_LIB, LLCL_CLASS_KNOCK_RESPONSE, LLCL_CLASS_KNOCK_REQUEST };
#define LLCL_KNOCK_MOST 512u

/* llcl_wire_command_t.op */
enum { LLCL_W_READ = 1, LLCL_W_WRITE, LLCL_W_ATOMIC, LLCL_W_FRAME, LLCL_W_EXPECT, LLCL_W_DELIVER };

/* llcl_wire_command_t.flags. SILENT: no LLCL_WE_DONE on success */
enum { LLCL_WF_INLINE = 1, LLCL_WF_NOTICE = 2, LLCL_WF_FENCE = 4, LLCL_WF_SILENT = 8 };

/* Bytes in this process's memory. local: of their key; 0: the wire needs none */
typedef struct {
    const void *address;
    uint64_t size, local;
} llcl_wire_piece_t;

typedef struct {
    uint8_t op, atomic, type, pieces;
    uint32_t flags;
    uint64_t tag; /* comes back with LLCL_WE_DONE; until then the bytes are valid and unchanged */
    uint64_t remote, wire[4];
    uint64_t size; /* of all pieces */
    uint64_t operand, compare;
    uint32_t notice, order; /* commands of one order other than 0 keep their order */
    const llcl_wire_piece_t *piece; /* valid during post() */
    uint64_t reserved[4];
} llcl_wire_command_t;

/* llcl_wire_event_t.event */
enum {
    LLCL_WE_DONE = 1,   /* a command has ended: tag, peer, status. Of a read: the bytes are here; of a write: the peer sees them */
    LLCL_WE_FRAME,      /* a frame has come: peer, cls, bytes, size; to be given back as frame */
    LLCL_WE_NOTICE,     /* a write with notice has come */
    LLCL_WE_CONNECTED,  /* peer */
    LLCL_WE_LOST,       /* peer is not reached any more: status */
    LLCL_WE_FENCED,     /* nothing of peer comes any more */
    LLCL_WE_UNFENCEABLE, /* it cannot be said when nothing of peer comes any more */
    LLCL_WE_DEVICE,     /* the device has failed: status */
    LLCL_WE_SERVED      /* poll() has done something for peer, which may go on: whoever polls should go on, too */
};

typedef struct {
    uint32_t event, peer;
    int32_t status;
    uint32_t cls;
    uint64_t tag, fetched, frame;
    const void *bytes;
    uint64_t size, reserved;
} llcl_wire_event_t;

/* What a wire can do. caps() fills in what fits into struct_size; what it does not know stays 0. So far libllcl looks at read, write, frame, threads,
 * atomics[0], inline_most, needs_local_key, frame_most, card_bytes and message_most. */
typedef struct {
    uint64_t struct_size;
    uint32_t read, write, frame, two_sided, ordered, notice_bits, remote_flag_ordered;
    uint32_t threads; /* 0: a lane may be used by one thread after another; 1: by one thread only, which libllcl refuses so far */
    uint64_t atomics[2]; /* [0]: on aligned words of 8 bytes, a bit for each LLCL_OP_* that the wire has; integers, by LLCL_TYPE_* signed or not */
    uint32_t atomics_with_cpu, inline_most, pieces_most, needs_local_key;
    uint32_t frame_most; /* bytes of a frame; 512 or more */
    uint32_t card_bytes; /* 64 or less */
    uint64_t message_most, bounce_below;
    uint32_t depth, lanes, can_fence, has_fd;
} llcl_wire_caps_t;

/* What libllcl offers to a module; valid as long as the wire. */
typedef struct {
    uint64_t struct_size;
    void *host;                                             /* first parameter of the functions below */
    void (*log)(void *host, int level, const char *text);   /* why the call under way fails: the text of the user's error */
    const char *(*config)(void *host, const char *name);    /* value of an environment variable; 0: it is not set */
    void (*wake)(void *host);                               /* 0 so far */
} llcl_wire_host_t;

typedef struct {
    uint64_t struct_size;
    uint32_t rank, size, node, reserved;
    /* llcl_bootstrap_t.foreign, an int64_t: of MPI the communicator's Fortran handle; 0, or a number that is 0: nothing */
    const void *foreign;
} llcl_wire_open_t;

/* how 0: poll again at once; 1: fd becomes readable when poll() has an event, poll after after_ns at the latest (0: no limit); 2: nothing tells, and
 * nothing comes before after_ns (0: not known) */
typedef struct {
    uint32_t how;
    int32_t fd;
    int64_t after_ns;
} llcl_wire_armed_t;

typedef struct {
    uint32_t major, reserved;
    uint64_t struct_size;
    const char *name, *version, *built_for;
    /* Whether the wire can be used in this process; else why not. Before anything else */
    int32_t (*probe)(const llcl_wire_host_t *, char *why, size_t size);
    /* Collective over all ranks. */
    int32_t (*open)(const llcl_wire_host_t *, const llcl_wire_open_t *, llcl_wire_t **);
    /* Ends the wire with its lanes, after up to drain_ns for what was taken. Frames that were not given back are the module's again. */
    int32_t (*close)(llcl_wire_t *, int64_t drain_ns);
    int32_t (*caps)(llcl_wire_t *, llcl_wire_caps_t *);
    /* card_bytes bytes that peers need to connect to this rank */
    int32_t (*card)(llcl_wire_t *, void *bytes, size_t size);
    /* Lets peers that have the key read (access 1) and write (2) this memory. May be 0 */
    int32_t (*register_)(llcl_wire_t *, void *, uint64_t, uint32_t access, llcl_wire_key_t *);
    /* When it has returned, nothing lands there, also of what the dead have sent; commands that come later end with LLCL_ERR_KEY, also when the
     * memory is registered again: no later registration gets a key that was used before. May be 0 */
    int32_t (*deregister)(llcl_wire_t *, const llcl_wire_key_t *);
    int32_t (*lane)(llcl_wire_t *, uint32_t number, llcl_wire_lane_t **);
    /* Begins to connect; LLCL_WE_CONNECTED ends it. A peer of which a frame has come counts as connected. */
    int32_t (*connect)(llcl_wire_lane_t *, uint32_t peer, const void *card, size_t size);
    /* Takes a prefix; answers how many, and where these are not all, why: LLCL_RETRY_QUEUE_FULL (posted again after a poll),
     * LLCL_RETRY_CONNECTING (after LLCL_WE_CONNECTED), or an error, which ends what is between the two ranks. It may come without connect() for a
     * peer of which a frame has come. */
    uint32_t (*post)(llcl_wire_lane_t *, uint32_t peer, uint32_t cls, const llcl_wire_command_t *, uint32_t count, int32_t *stopped_by);
    uint32_t (*poll)(llcl_wire_lane_t *, llcl_wire_event_t *, uint32_t count);
    void (*give_back)(llcl_wire_lane_t *, uint64_t frame);
    /* Before a thread sleeps; posts are allowed until disarm(), and polls where no descriptor is named. */
    int32_t (*arm)(llcl_wire_lane_t *, llcl_wire_armed_t *);
    void (*disarm)(llcl_wire_lane_t *);
    /* peer has died: LLCL_WE_FENCED or LLCL_WE_UNFENCEABLE is asked for. Before it LLCL_WE_DONE of each read, write and atomic for peer comes. */
    int32_t (*fence)(llcl_wire_lane_t *, uint32_t peer);
    /* One line for people; not called so far. May be 0 */
    int32_t (*describe)(llcl_wire_t *, char *text, size_t size);
    /* The ranks of this network's own launcher, by which the process was started; all four may be 0. Begins the
     * network's library where the program has not, and answers this process's number and how many there are; later
     * the bytes of every rank, in their order; the end of the job with an exit code; the end of what was begun. */
    int32_t (*launch)(const llcl_wire_host_t *, uint32_t *rank, uint32_t *size);
    int32_t (*allgather)(const void *mine, size_t size, void *all);
    void (*abort)(int32_t exit_code);
    void (*end)(void);
} llcl_wire_module_t;

/* The one symbol of a module: its table, which stays valid. host_size: sizeof (llcl_wire_module_t) as libllcl knows it. A module that can not serve
 * this major version answers its table all the same, by whose major it is refused. */
const llcl_wire_module_t *llcl_wire_module(uint32_t host_major, uint64_t host_size);

#ifdef __cplusplus
}
#endif
#endif
