/* A wire module for processes of one machine: a frame is a datagram of a UNIX socket. Unlike
 * trivial.c it handles ranks that share no memory, a class whose receives all hold frames, a
 * receiver whose socket is full, and a descriptor to sleep on. */
#define _GNU_SOURCE
#include "llcl.h"
#include "llcl_wire.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { CLASSES = LLCL_CLASS_KNOCK_REQUEST + 1, RECEIVES = 32, DEPTH = 32, FRAME_MOST = 4096 };

/* The head of a datagram. */
typedef struct {
    uint64_t name; /* the sender's, so that the receiver can answer without connect() */
    uint32_t rank, reserved;
} head_t;

/* A receive: the buffer of one frame. */
typedef struct receive {
    struct receive *next;
    uint32_t cls;
    head_t head;
    unsigned char bytes[FRAME_MOST];
} receive_t;

typedef struct {
    uint64_t name; /* 0: not known yet */
    int is_dead;
} peer_t;

/* Each class has a socket of its own, since a full queue in the kernel delays all frames that go
 * through it. */
struct llcl_wire_lane {
    uint64_t name; /* a random number; the card, and a part of the sockets' addresses */
    uint32_t rank, size;
    int sockets[CLASSES];
    int epoll; /* readable when a frame has arrived for which there is a receive, or when tell() has rung the bell */
    int bell, is_armed;
    receive_t *receives, *unused[CLASSES];
    peer_t *peers;
    llcl_wire_event_t *told; /* a ring of events that poll() has not returned yet */
    uint32_t first, count, room; /* index of the first event, number of events, size of the ring */
};

struct llcl_wire {
    llcl_wire_lane_t lane;
};

static int32_t probe(const llcl_wire_host_t *host, char *why, size_t size)
{
    (void)why, (void)size;
    return host->struct_size >= sizeof *host ? LLCL_OK : LLCL_ERR_UNSUPPORTED;
}

/* ---- open and close ---- */

/* Writes the address of a class's socket, in the abstract name space (no file remains after a
 * crash), and returns its length. */
static socklen_t address_of(struct sockaddr_un *address, uint64_t name, uint32_t cls)
{
    char *path = address->sun_path;
    memset(address, 0, sizeof *address);
    address->sun_family = AF_UNIX;
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
                       (size_t)snprintf(path + 1, sizeof address->sun_path - 1, "llcl-%016llx-%u", (unsigned long long)name, (unsigned)cls));
}

static int watch(llcl_wire_lane_t *it, int how, int fd, uint32_t events)
{
    struct epoll_event event = {0};
    event.events = events;
    return epoll_ctl(it->epoll, how, fd, &event);
}

static int open_class(llcl_wire_lane_t *it, uint32_t cls)
{
    struct sockaddr_un address;
    socklen_t length = address_of(&address, it->name, cls);
    uint32_t i;
    for (i = 0; i < RECEIVES; i++) {
        receive_t *receive = it->receives + cls * RECEIVES + i;
        receive->cls = cls;
        receive->next = it->unused[cls];
        it->unused[cls] = receive;
    }
    it->sockets[cls] = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    return it->sockets[cls] >= 0 && bind(it->sockets[cls], (struct sockaddr *)&address, length) == 0 &&
           watch(it, EPOLL_CTL_ADD, it->sockets[cls], EPOLLIN) == 0;
}

static int open_lane(llcl_wire_lane_t *it)
{
    uint32_t cls;
    it->room = DEPTH + 2 * it->size; /* at most DEPTH completions; one CONNECTED and one FENCED of each peer */
    it->told = calloc(it->room, sizeof *it->told);
    it->peers = calloc(it->size, sizeof *it->peers);
    it->receives = calloc((size_t)CLASSES * RECEIVES, sizeof *it->receives);
    it->epoll = epoll_create1(EPOLL_CLOEXEC);
    it->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (it->told == NULL || it->peers == NULL || it->receives == NULL || watch(it, EPOLL_CTL_ADD, it->bell, EPOLLIN) != 0 ||
        getrandom(&it->name, sizeof it->name, 0) != (ssize_t)sizeof it->name)
        return 0;
    for (cls = 0; cls < CLASSES; cls++)
        if (!open_class(it, cls))
            return 0;
    return 1;
}

static int32_t close_wire(llcl_wire_t *wire, int64_t drain_ns)
{
    llcl_wire_lane_t *it = &wire->lane;
    uint32_t cls;
    (void)drain_ns; /* nothing to send: the receivers' sockets hold all frames that post() has taken */
    for (cls = 0; cls < CLASSES; cls++)
        if (it->sockets[cls] >= 0)
            close(it->sockets[cls]);
    if (it->bell >= 0)
        close(it->bell);
    if (it->epoll >= 0)
        close(it->epoll);
    free(it->receives);
    free(it->peers);
    free(it->told);
    free(wire);
    return LLCL_OK;
}

static int32_t open_wire(const llcl_wire_host_t *host, const llcl_wire_open_t *how, llcl_wire_t **answer)
{
    llcl_wire_t *wire = calloc(1, sizeof *wire);
    if (wire == NULL)
        return LLCL_ERR_NO_MEMORY;
    wire->lane.rank = how->rank;
    wire->lane.size = how->size;
    memset(wire->lane.sockets, -1, sizeof wire->lane.sockets);
    if (!open_lane(&wire->lane)) {
        host->log(host->host, 0, strerror(errno));
        close_wire(wire, 0);
        return LLCL_ERR_SYSTEM;
    }
    *answer = wire;
    return LLCL_OK;
}

static int32_t caps(llcl_wire_t *wire, llcl_wire_caps_t *can)
{
    can->frame = can->can_fence = can->has_fd = 1;
    can->frame_most = FRAME_MOST;
    can->card_bytes = sizeof wire->lane.name;
    can->depth = DEPTH;
    /* For tests of programs that need progress on any thread: promises less than the wire does. */
    can->threads = getenv("DATAGRAM_OPENER") ? 2 : 0;
    return LLCL_OK;
}

static int32_t card(llcl_wire_t *wire, void *bytes, size_t size)
{
    memcpy(bytes, &wire->lane.name, size);
    return LLCL_OK;
}

static int32_t lane(llcl_wire_t *wire, uint32_t number, llcl_wire_lane_t **it)
{
    (void)number;
    *it = &wire->lane;
    return LLCL_OK;
}

/* ---- send ---- */

static void tell(llcl_wire_lane_t *it, uint32_t event, uint32_t peer, uint64_t tag)
{
    static const uint64_t one = 1;
    llcl_wire_event_t *place = it->told + (it->first + it->count++) % it->room;
    memset(place, 0, sizeof *place);
    place->event = event;
    place->peer = peer;
    place->tag = tag;
    /* The write fails only if the counter is at its maximum, and then the bell is readable
     * already. */
    if (it->is_armed && write(it->bell, &one, sizeof one) < 0)
        return;
}

static int32_t connect_peer(llcl_wire_lane_t *it, uint32_t peer, const void *bytes, size_t size)
{
    if (peer >= it->size || size != sizeof it->name)
        return LLCL_ERR_INVALID;
    memcpy(&it->peers[peer].name, bytes, size);
    tell(it, LLCL_WE_CONNECTED, peer, 0);
    return LLCL_OK;
}

#ifdef REFUSES
/* A frame for a peer whose process has ended is refused. */
#define DROPPED 0
#else
/* Such a frame is dropped: libllcl hears of the death from others. */
#define DROPPED ECONNREFUSED
#endif

/* Sends a frame. */
static int32_t send_frame(llcl_wire_lane_t *it, uint32_t cls, const llcl_wire_command_t *command, struct sockaddr_un *to, socklen_t length)
{
    head_t head = {it->name, it->rank, 0};
    struct iovec parts[2] = {{&head, sizeof head}, {(void *)(uintptr_t)command->piece->address, (size_t)command->size}};
    struct msghdr message = {0};
    message.msg_name = to;
    message.msg_namelen = length;
    message.msg_iov = parts;
    message.msg_iovlen = 2;
    if (sendmsg(it->sockets[cls], &message, MSG_NOSIGNAL) >= 0 || errno == DROPPED)
        return LLCL_OK;
    return errno == EAGAIN || errno == ENOBUFS || errno == ENOMEM || errno == EINTR ? LLCL_RETRY_QUEUE_FULL : LLCL_ERR_SYSTEM;
}

static uint32_t post(llcl_wire_lane_t *it, uint32_t peer, uint32_t cls, const llcl_wire_command_t *commands, uint32_t count, int32_t *stopped_by)
{
    struct sockaddr_un address;
    socklen_t length = address_of(&address, it->peers[peer].name, cls);
    uint32_t taken;
    *stopped_by = it->peers[peer].name == 0 ? LLCL_RETRY_CONNECTING : LLCL_OK;
    for (taken = 0; taken < count && *stopped_by == LLCL_OK;) {
        *stopped_by = it->count < DEPTH ? send_frame(it, cls, commands + taken, &address, length) : LLCL_RETRY_QUEUE_FULL;
        if (*stopped_by == LLCL_OK)
            tell(it, LLCL_WE_DONE, peer, commands[taken++].tag); /* the kernel has copied the bytes */
    }
    return taken;
}

/* ---- receive ---- */

/* Receives one frame of a class; 0: there is no frame, or no free receive. */
static int receive_frame(llcl_wire_lane_t *it, uint32_t cls, llcl_wire_event_t *event)
{
    for (;;) {
        receive_t *receive = it->unused[cls];
        struct iovec parts[2];
        struct msghdr message = {0};
        ssize_t got;
        if (receive == NULL)
            return 0;
        parts[0].iov_base = &receive->head, parts[0].iov_len = sizeof receive->head;
        parts[1].iov_base = receive->bytes, parts[1].iov_len = sizeof receive->bytes;
        message.msg_iov = parts, message.msg_iovlen = 2;
        got = recvmsg(it->sockets[cls], &message, 0);
        if (got < 0)
            return 0;
        /* Drops malformed datagrams, and those of dead ranks. */
        if (got < (ssize_t)sizeof receive->head || message.msg_flags & MSG_TRUNC || receive->head.rank >= it->size || it->peers[receive->head.rank].is_dead)
            continue;
        it->peers[receive->head.rank].name = receive->head.name;
        it->unused[cls] = receive->next;
        if (it->unused[cls] == NULL)
            watch(it, EPOLL_CTL_MOD, it->sockets[cls], 0);
        memset(event, 0, sizeof *event);
        event->event = LLCL_WE_FRAME;
        event->peer = receive->head.rank;
        event->cls = cls;
        event->frame = (uint64_t)(uintptr_t)receive;
        event->bytes = receive->bytes;
        event->size = (uint64_t)got - sizeof receive->head;
        return 1;
    }
}

static uint32_t poll(llcl_wire_lane_t *it, llcl_wire_event_t *events, uint32_t count)
{
    uint32_t told = 0, cls;
    for (; told < count && it->count > 0; it->count--, it->first = (it->first + 1) % it->room)
        events[told++] = it->told[it->first];
    for (cls = 0; cls < CLASSES; cls++)
        while (told < count && receive_frame(it, cls, events + told))
            told++;
    return told;
}

static void give_back(llcl_wire_lane_t *it, uint64_t frame)
{
    receive_t *receive = (receive_t *)(uintptr_t)frame;
    if (it->unused[receive->cls] == NULL)
        watch(it, EPOLL_CTL_MOD, it->sockets[receive->cls], EPOLLIN);
    receive->next = it->unused[receive->cls];
    it->unused[receive->cls] = receive;
}

static int32_t arm(llcl_wire_lane_t *it, llcl_wire_armed_t *armed)
{
    armed->how = it->count > 0 ? 0 : 1;
    armed->fd = it->epoll;
    it->is_armed = it->count == 0;
    return LLCL_OK;
}

static void disarm(llcl_wire_lane_t *it)
{
    uint64_t rung;
    it->is_armed = 0;
    if (read(it->bell, &rung, sizeof rung) < 0)
        return;
}

/* Frames of the dead peer that are still in this rank's sockets do not arrive after this:
 * receive_frame() drops them. */
static int32_t fence(llcl_wire_lane_t *it, uint32_t peer)
{
    it->peers[peer].is_dead = 1;
    tell(it, LLCL_WE_FENCED, peer, 0);
    return LLCL_OK;
}

static const llcl_wire_module_t table = {LLCL_WIRE_MAJOR, 0, sizeof table, "datagram", "0.2.0", "processes of one machine", probe, open_wire, close_wire,
    caps, card, NULL, NULL, lane, connect_peer, post, poll, give_back, arm, disarm, fence, NULL, NULL, NULL, NULL, NULL, NULL};

const llcl_wire_module_t *llcl_wire_module(uint32_t host_major, uint64_t host_size)
{
    (void)host_major, (void)host_size;
    return &table;
}
