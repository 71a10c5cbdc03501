/* The smallest wire module. Ranks are threads of one process; post() puts a frame into the
 * receiver's queue. Macros change it, for tests. Forms that libllcl refuses, or a table of another
 * size:
 *   MAJOR    the version in its table
 *   MISSING  number of bytes that its table lacks at the end
 *   MORE     its table has fields that libllcl does not know
 *   NO_POST  its table has no post()
 *   USELESS  its probe() fails
 *   FRAME    most bytes of a frame
 * A form that can do more:
 *   REMOTE   post() executes reads and writes in the memory of peers */
#include "llcl.h"
#include "llcl_wire.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef MAJOR
#define MAJOR LLCL_WIRE_MAJOR
#endif
#ifndef MISSING
#define MISSING 0
#endif

#ifndef FRAME
#define FRAME 1024
#endif

enum { RANKS = 64, DEPTH = 8, FRAME_MOST = FRAME, SPANS = 4096 };

typedef struct frame {
    struct frame *next;
    llcl_wire_event_t event;
    unsigned char bytes[];
} frame_t;

struct llcl_wire_lane {
    frame_t *first, **end;
    int under_way; /* number of commands whose LLCL_WE_DONE was not polled */
};

struct llcl_wire {
    uint32_t number; /* index in ends; the card */
    uint32_t rank;
    llcl_wire_lane_t lane;
    uint32_t peers[RANKS]; /* by rank: 1 + number of the peer's wire; 0: not connected */
#ifdef REMOTE
    struct {
        char *address;
        uint64_t size, life;
    } spans[SPANS]; /* registrations; a key is index and life. size 0: the place is free. life: how many registrations this place has had */
#endif
};

/* The lock protects everything that ends reaches. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static llcl_wire_t *ends[4096];

static void queue(llcl_wire_lane_t *lane, const llcl_wire_event_t *event, const void *bytes)
{
    frame_t *frame = malloc(sizeof *frame + (size_t)event->size);
    if (frame == NULL)
        abort();
    frame->next = NULL;
    frame->event = *event;
    frame->event.frame = (uint64_t)(uintptr_t)frame;
    frame->event.bytes = frame->bytes;
    if (event->size > 0)
        memcpy(frame->bytes, bytes, (size_t)event->size);
    *lane->end = frame;
    lane->end = &frame->next;
}

static int32_t probe(const llcl_wire_host_t *host, char *why, size_t size)
{
#ifdef USELESS
    (void)host;
    snprintf(why, size, "it is never of use");
    return LLCL_ERR_UNSUPPORTED;
#else
    (void)why, (void)size;
    return host->struct_size >= sizeof *host ? LLCL_OK : LLCL_ERR_UNSUPPORTED;
#endif
}

static int32_t open_wire(const llcl_wire_host_t *host, const llcl_wire_open_t *how, llcl_wire_t **wire)
{
    uint32_t number;
    if (how->rank >= RANKS) {
        host->log(host->host, 0, "more than 64 ranks");
        return LLCL_ERR_RANGE;
    }
    *wire = calloc(1, sizeof **wire);
    if (*wire == NULL)
        return LLCL_ERR_NO_MEMORY;
    (*wire)->rank = how->rank;
    (*wire)->lane.end = &(*wire)->lane.first;
    pthread_mutex_lock(&lock);
    for (number = 0; number < 4095 && ends[number] != NULL; number++)
        ;
    (*wire)->number = number;
    ends[number] = *wire;
    pthread_mutex_unlock(&lock);
    return LLCL_OK;
}

static int32_t close_wire(llcl_wire_t *wire, int64_t drain_ns)
{
    frame_t *frame;
    (void)drain_ns;
    pthread_mutex_lock(&lock);
    ends[wire->number] = NULL;
    pthread_mutex_unlock(&lock);
    while ((frame = wire->lane.first) != NULL) {
        wire->lane.first = frame->next;
        free(frame);
    }
    free(wire);
    return LLCL_OK;
}

/* The number of wires that are open, for tests. */
int trivial_open_wires(void);
int trivial_open_wires(void)
{
    int count = 0;
    pthread_mutex_lock(&lock);
    for (int number = 0; number < 4096; number++)
        count += ends[number] != NULL;
    pthread_mutex_unlock(&lock);
    return count;
}

static int32_t caps(llcl_wire_t *wire, llcl_wire_caps_t *can)
{
    (void)wire;
    can->frame = can->can_fence = 1;
    can->frame_most = FRAME_MOST;
    can->card_bytes = sizeof wire->number;
    can->depth = DEPTH;
#ifdef REMOTE
    can->read = can->write = 1;
#endif
    return LLCL_OK;
}

#ifdef REMOTE
static int32_t register_span(llcl_wire_t *wire, void *address, uint64_t size, uint32_t access, llcl_wire_key_t *key)
{
    uint64_t number;
    (void)access;
    pthread_mutex_lock(&lock);
    for (number = 0; number < SPANS && wire->spans[number].size > 0; number++)
        ;
    if (number < SPANS) {
        wire->spans[number].address = address;
        wire->spans[number].size = size;
        memset(key, 0, sizeof *key);
        key->wire[0] = number;
        key->wire[1] = ++wire->spans[number].life;
    }
    pthread_mutex_unlock(&lock);
    return number < SPANS ? LLCL_OK : LLCL_ERR_NO_MEMORY;
}

/* execute() runs under the lock, so no access is in progress. */
static int32_t deregister(llcl_wire_t *wire, const llcl_wire_key_t *key, int64_t patience_ns)
{
    (void)patience_ns;
    pthread_mutex_lock(&lock);
    wire->spans[key->wire[0]].size = 0;
    pthread_mutex_unlock(&lock);
    return LLCL_OK;
}

/* Copies an aligned word atomically, since threads of the peer may poll it. */
static void move(void *to, const void *from, uint64_t size)
{
    if (size == 8 && ((uintptr_t)to | (uintptr_t)from) % 8 == 0)
        __atomic_store_n((uint64_t *)to, __atomic_load_n((const uint64_t *)from, __ATOMIC_ACQUIRE), __ATOMIC_RELEASE);
    else
        memmove(to, from, (size_t)size);
}

/* Executes a read or a write in the memory of a peer, and returns its status. */
static int32_t execute(const llcl_wire_t *there, const llcl_wire_command_t *command)
{
    const llcl_wire_piece_t *piece = command->piece;
    uint64_t number = command->wire[0], from;
    if (there == NULL)
        return LLCL_ERR_PEER_DEAD;
    if (number >= SPANS || command->wire[1] != there->spans[number].life)
        return LLCL_ERR_KEY;
    from = command->remote - (uint64_t)(uintptr_t)there->spans[number].address;
    if (from > there->spans[number].size || command->size > there->spans[number].size - from)
        return LLCL_ERR_KEY;
    if (command->op == LLCL_W_READ)
        move((void *)(uintptr_t)piece->address, there->spans[number].address + from, command->size);
    else
        move(there->spans[number].address + from, piece->address, command->size);
    return LLCL_OK;
}
#endif

static int32_t card(llcl_wire_t *wire, void *bytes, size_t size)
{
    memcpy(bytes, &wire->number, size);
    return LLCL_OK;
}

static int32_t lane(llcl_wire_t *wire, uint32_t number, llcl_wire_lane_t **it)
{
    (void)number;
    *it = &wire->lane;
    return LLCL_OK;
}

/* The wire that contains a lane. */
static llcl_wire_t *wire_of(llcl_wire_lane_t *it)
{
    return (llcl_wire_t *)((char *)it - offsetof(llcl_wire_t, lane));
}

static int32_t connect_peer(llcl_wire_lane_t *it, uint32_t peer, const void *bytes, size_t size)
{
    uint32_t number;
    llcl_wire_event_t event = {LLCL_WE_CONNECTED, peer, 0, 0, 0, 0, 0, NULL, 0, 0};
    if (size != sizeof number || peer >= RANKS)
        return LLCL_ERR_INVALID;
    memcpy(&number, bytes, size);
    pthread_mutex_lock(&lock);
    wire_of(it)->peers[peer] = number + 1;
    queue(it, &event, NULL);
    pthread_mutex_unlock(&lock);
    return LLCL_OK;
}

static uint32_t post(llcl_wire_lane_t *it, uint32_t peer, uint32_t cls, const llcl_wire_command_t *commands, uint32_t count, int32_t *stopped_by)
{
    uint32_t taken, number = wire_of(it)->peers[peer];
    if (number == 0) {
        *stopped_by = LLCL_RETRY_CONNECTING;
        return 0;
    }
    pthread_mutex_lock(&lock);
    for (taken = 0; taken < count && it->under_way < DEPTH; taken++) {
        const llcl_wire_command_t *command = commands + taken;
        llcl_wire_event_t done = {LLCL_WE_DONE, peer, 0, 0, command->tag, 0, 0, NULL, 0, 0};
        llcl_wire_event_t comes = {LLCL_WE_FRAME, wire_of(it)->rank, 0, cls, 0, 0, 0, NULL, command->size, 0};
#ifdef REMOTE
        if (command->op != LLCL_W_FRAME)
            done.status = execute(ends[number - 1], command);
        else
#endif
        if (ends[number - 1] != NULL) {
            ends[number - 1]->peers[wire_of(it)->rank] = wire_of(it)->number + 1;
            queue(&ends[number - 1]->lane, &comes, command->piece->address);
        }
        queue(it, &done, NULL);
        it->under_way++;
    }
    pthread_mutex_unlock(&lock);
    *stopped_by = taken < count ? LLCL_RETRY_QUEUE_FULL : LLCL_OK;
    return taken;
}

static uint32_t poll(llcl_wire_lane_t *it, llcl_wire_event_t *events, uint32_t count)
{
    uint32_t told = 0;
    pthread_mutex_lock(&lock);
    while (told < count && it->first != NULL) {
        frame_t *frame = it->first;
        it->first = frame->next;
        if (it->first == NULL)
            it->end = &it->first;
        events[told++] = frame->event;
        it->under_way -= frame->event.event == LLCL_WE_DONE;
        if (frame->event.event != LLCL_WE_FRAME)
            free(frame);
    }
    pthread_mutex_unlock(&lock);
    return told;
}

static void give_back(llcl_wire_lane_t *it, uint64_t frame)
{
    (void)it;
    free((void *)(uintptr_t)frame);
}

static int32_t arm(llcl_wire_lane_t *it, llcl_wire_armed_t *armed)
{
    pthread_mutex_lock(&lock);
    armed->how = it->first == NULL ? 2 : 0;
    pthread_mutex_unlock(&lock);
    return LLCL_OK;
}

static void disarm(llcl_wire_lane_t *it)
{
    (void)it;
}

static int32_t fence(llcl_wire_lane_t *it, uint32_t peer)
{
    llcl_wire_event_t event = {LLCL_WE_FENCED, peer, 0, 0, 0, 0, 0, NULL, 0, 0};
    pthread_mutex_lock(&lock);
    queue(it, &event, NULL);
    pthread_mutex_unlock(&lock);
    return LLCL_OK;
}

static int32_t describe(llcl_wire_t *it, char *text, size_t size)
{
    (void)it;
    snprintf(text, size, "memory of a rank: one entry for each event, and one copy for each frame, that poll() has not returned");
    return LLCL_OK;
}

#ifdef REMOTE
#define REGISTER register_span
#define DEREGISTER deregister
#else
#define REGISTER 0
#define DEREGISTER 0
#endif
#ifndef NO_POST
#define POST post
#else
#define POST 0
#endif

static const struct {
    llcl_wire_module_t known;
#ifdef MORE
    void *unknown[5];
#endif
} table = {{MAJOR, 0, sizeof table - MISSING, "trivial", "0.2.0", "threads of one process", probe, open_wire, close_wire, caps, card, REGISTER, DEREGISTER, lane,
            connect_peer, POST, poll, give_back, arm, disarm, fence, describe, 0, 0, 0, 0, 0}
#ifdef MORE
           , {0}
#endif
};

const llcl_wire_module_t *llcl_wire_module(uint32_t host_major, uint64_t host_size)
{
    /* libllcl compares the versions, and reads only the fields that both sides know. */
    (void)host_major, (void)host_size;
    (void)post; /* unused with NO_POST */
    return &table.known;
}
