#include "limits.h"

#include "bench.h"
#include "plain.h"
#include "ring.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ORDER_LINE = 1, ORDER_MAILBOX, ORDER_ADD, ORDER_SLEEP, ORDER_TOUCH, ORDER_ECHO, ORDER_STREAM, ORDER_QUIT };

/* A word alone on two cache lines. The second line is there because of the adjacent-line
 * prefetcher. */
typedef struct lone_word {
    uint64_t value __attribute__((aligned(2 * BENCH_LINE)));
} lone_word_t;

/* Shared by both processes. */
typedef struct arena {
    lone_word_t ping, pong, word;
    lone_word_t woke;          /* when the sleeper ran again, ns; 0: not yet */
    lone_word_t asleep;        /* the helper is about to sleep */
    uint32_t order __attribute__((aligned(2 * BENCH_LINE))); /* the number of requests to the helper; a futex */
    uint32_t done __attribute__((aligned(2 * BENCH_LINE)));  /* the number of requests that it has finished; a futex */
    uint32_t bell __attribute__((aligned(2 * BENCH_LINE)));  /* futex of limits_wake */
    int kind, core;
    unsigned rounds;
} arena_t;

struct limits {
    arena_t *arena;
    ring_t *rings;       /* one to the helper, one back */
    pid_t helper;
    ring_end_t to, from; /* this process's ends of them */
    size_t bytes;
    char *private_buffer, *shared_buffer;
    char *helper_buffer; /* private memory at the same address in both processes, each with its own copy */
};

static void futex_wait(uint32_t *word, uint32_t value)
{
    syscall(SYS_futex, word, FUTEX_WAIT, value, NULL, NULL, 0);
}

static void futex_wake(uint32_t *word) { syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0); }

static void wait_until(uint32_t *word, uint32_t value)
{
    uint32_t seen;
    while ((seen = __atomic_load_n(word, __ATOMIC_ACQUIRE)) != value)
        futex_wait(word, seen);
}

static void *map(size_t size, int flags)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        bench_die("limits: mmap of %zu bytes: %s", size, strerror(errno));
    return memory;
}

/* ---- both sides of each measurement ---- */

static void play_line(arena_t *arena, unsigned rounds, int second)
{
    uint64_t mine = (uint64_t)second;
    for (unsigned i = 0; i < rounds; i++, mine += 2) {
        spin_until(&arena->ping.value, mine);
        __atomic_store_n(&arena->ping.value, mine + 1, __ATOMIC_RELEASE);
    }
    if (!second)
        spin_until(&arena->ping.value, mine);
}

static void play_mailbox(arena_t *arena, unsigned rounds, int second)
{
    for (uint64_t i = 1; i <= rounds; i++) {
        if (second) {
            spin_until(&arena->ping.value, i);
            __atomic_store_n(&arena->pong.value, i, __ATOMIC_RELEASE);
        } else {
            __atomic_store_n(&arena->ping.value, i, __ATOMIC_RELEASE);
            spin_until(&arena->pong.value, i);
        }
    }
}

static void play_add(arena_t *arena, unsigned rounds, int second)
{
    __atomic_store_n(second ? &arena->pong.value : &arena->ping.value, 1, __ATOMIC_RELEASE);
    spin_until(second ? &arena->ping.value : &arena->pong.value, 1);
    for (unsigned i = 0; i < rounds; i++)
        __atomic_fetch_add(&arena->word.value, 1, __ATOMIC_SEQ_CST);
}

static void play_sleep(arena_t *arena)
{
    uint32_t bell = __atomic_load_n(&arena->bell, __ATOMIC_ACQUIRE);
    __atomic_store_n(&arena->asleep.value, 1, __ATOMIC_RELEASE);
    while (__atomic_load_n(&arena->bell, __ATOMIC_ACQUIRE) == bell)
        futex_wait(&arena->bell, bell);
    __atomic_store_n(&arena->woke.value, bench_now_ns(), __ATOMIC_RELEASE);
}

static void play_echo(ring_end_t *in, ring_end_t *out, unsigned rounds)
{
    for (unsigned i = 0; i < rounds; i++) {
        ring_receive(in);
        ring_send(out, NULL, 8);
    }
}

static void helper_main(limits_t *limits)
{
    arena_t *arena = limits->arena;
    ring_end_t in = {.ring = &limits->rings[0]}, out = {.ring = &limits->rings[1]};
    for (uint32_t next = 1;; next++) {
        wait_until(&arena->order, next);
        if (arena->core >= 0)
            bench_pin(arena->core);
        else
            bench_unpin();
        switch (arena->kind) {
        case ORDER_LINE: play_line(arena, arena->rounds, 1); break;
        case ORDER_MAILBOX: play_mailbox(arena, arena->rounds, 1); break;
        case ORDER_ADD: play_add(arena, arena->rounds, 1); break;
        case ORDER_SLEEP: play_sleep(arena); break;
        case ORDER_TOUCH: memset(limits->helper_buffer, 1, limits->bytes); break;
        case ORDER_ECHO: play_echo(&in, &out, arena->rounds); break;
        case ORDER_STREAM:
            for (unsigned i = 0; i < arena->rounds; i++)
                ring_receive(&in);
            break;
        default: _exit(0);
        }
        __atomic_store_n(&arena->done, next, __ATOMIC_RELEASE);
        futex_wake(&arena->done);
    }
}

/* ---- open, close ---- */

static pid_t watched; /* the helper */

/* Without this the other side would wait for a killed helper without an end. */
static void on_child(int number)
{
    static const char text[] = "limits: the helper process has ended\n";
    (void)number;
    if (watched > 0 && waitpid(watched, NULL, WNOHANG) == watched) {
        (void)!write(2, text, sizeof text - 1);
        _exit(1);
    }
}

static void watch(pid_t helper)
{
    struct sigaction action = {.sa_handler = helper > 0 ? on_child : SIG_DFL, .sa_flags = SA_RESTART | SA_NOCLDSTOP};
    watched = helper;
    sigaction(SIGCHLD, &action, NULL);
}

static void start(limits_t *limits, int kind, unsigned rounds, int here, int there)
{
    arena_t *arena = limits->arena;
    arena->ping.value = arena->pong.value = arena->word.value = arena->woke.value = arena->asleep.value = 0;
    arena->kind = kind;
    arena->core = there;
    arena->rounds = rounds;
    if (here >= 0)
        bench_pin(here);
    __atomic_add_fetch(&arena->order, 1, __ATOMIC_RELEASE); /* publishes the request; pairs with wait_until */
    futex_wake(&arena->order);
}

static void finish(limits_t *limits) { wait_until(&limits->arena->done, limits->arena->order); }

limits_t *limits_open(size_t bytes)
{
    limits_t *limits = calloc(1, sizeof *limits);
    if (limits == NULL)
        bench_die("limits: no memory");
    bench_cores();
    limits->bytes = bytes;
    limits->arena = map(sizeof(arena_t), MAP_SHARED);
    limits->rings = map(2 * sizeof(ring_t), MAP_SHARED);
    limits->to = (ring_end_t){.ring = &limits->rings[0]};
    limits->from = (ring_end_t){.ring = &limits->rings[1]};
    limits->shared_buffer = map(bytes, MAP_SHARED);
    limits->private_buffer = map(bytes, MAP_PRIVATE);
    limits->helper_buffer = map(bytes, MAP_PRIVATE);
    memset(limits->shared_buffer, 1, bytes);
    memset(limits->private_buffer, 2, bytes);
    pid_t parent = getpid();
    limits->helper = fork();
    if (limits->helper < 0)
        bench_die("limits: fork: %s", strerror(errno));
    if (limits->helper == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(0);
        const char *hub = getenv("LLCL_HUB_FD"); /* while it is open, the launcher does not notice the death of this rank */
        if (hub != NULL)
            close(atoi(hub));
        helper_main(limits);
    }
    watch(limits->helper);
    start(limits, ORDER_TOUCH, 0, -1, -1);
    finish(limits);
    return limits;
}

void limits_close(limits_t *limits)
{
    watch(0);
    start(limits, ORDER_QUIT, 0, -1, -1);
    waitpid(limits->helper, NULL, 0);
    munmap(limits->arena, sizeof(arena_t));
    munmap(limits->rings, 2 * sizeof(ring_t));
    munmap(limits->shared_buffer, limits->bytes);
    munmap(limits->private_buffer, limits->bytes);
    munmap(limits->helper_buffer, limits->bytes);
    free(limits);
}

/* ---- with the helper ---- */

double limits_line(limits_t *limits, unsigned rounds, int here, int there)
{
    start(limits, ORDER_LINE, rounds + 100, here, there);
    play_line(limits->arena, 100, 0); /* wakes the helper */
    uint64_t before = bench_now_ns();
    arena_t *arena = limits->arena;
    for (uint64_t i = 0, mine = 200; i < rounds; i++, mine += 2) {
        __atomic_store_n(&arena->ping.value, mine + 1, __ATOMIC_RELEASE);
        spin_until(&arena->ping.value, mine + 2);
    }
    double spent = (double)(bench_now_ns() - before);
    finish(limits);
    return spent / rounds / 2;
}

double limits_mailbox(limits_t *limits, unsigned rounds, int here, int there)
{
    start(limits, ORDER_MAILBOX, rounds, here, there);
    arena_t *arena = limits->arena;
    __atomic_store_n(&arena->ping.value, 1, __ATOMIC_RELEASE);
    spin_until(&arena->pong.value, 1);
    uint64_t before = bench_now_ns();
    for (uint64_t i = 2; i <= rounds; i++) {
        __atomic_store_n(&arena->ping.value, i, __ATOMIC_RELEASE);
        spin_until(&arena->pong.value, i);
    }
    double spent = (double)(bench_now_ns() - before);
    finish(limits);
    return spent / (rounds - 1) / 2;
}

double limits_ring_way(limits_t *limits, unsigned rounds, int here, int there)
{
    const unsigned warm = 2 * RING_SLOTS; /* brings all slots into the caches, and wakes the helper */
    start(limits, ORDER_ECHO, warm + rounds, here, there);
    uint64_t before = 0;
    for (unsigned i = 0; i < warm + rounds; i++) {
        if (i == warm)
            before = bench_now_ns();
        ring_send(&limits->to, NULL, 8);
        ring_receive(&limits->from);
    }
    double spent = (double)(bench_now_ns() - before);
    finish(limits);
    return spent / rounds / 2;
}

double limits_ring_message(limits_t *limits, size_t size, unsigned rounds, int here, int there)
{
    const unsigned warm = 2 * RING_SLOTS;
    static char payload[RING_PAYLOAD] __attribute__((aligned(BENCH_LINE)));
    if (size > RING_PAYLOAD)
        bench_die("limits: %zu bytes in a slot of %d", size, RING_PAYLOAD);
    rounds -= rounds % RING_LOT;
    unsigned all = warm + rounds + (unsigned)(-(limits->to.next + warm + rounds) % RING_LOT);
    const void *from = size > 8 ? payload : NULL;
    start(limits, ORDER_STREAM, all, here, there);
    for (unsigned i = rounds; i < all; i++)
        ring_send(&limits->to, from, size);
    ring_drain(&limits->to);
    uint64_t before = bench_now_ns();
    for (unsigned i = 0; i < rounds; i++)
        ring_send(&limits->to, from, size);
    ring_drain(&limits->to);
    double spent = (double)(bench_now_ns() - before);
    finish(limits);
    return spent / rounds;
}

typedef struct shared_end {
    ring_end_t end;
    uint64_t end_at;
    sem_t turn;
    sem_t *next; /* of the thread after this one; NULL: the threads take no turns */
    pthread_t thread;
} shared_end_t;

static void *send_shared(void *data)
{
    shared_end_t *shared = data;
    if (shared->next != NULL)
        ring_send_in_turns(&shared->end, shared->end_at, &shared->turn, shared->next);
    else
        ring_send_shared(&shared->end, shared->end_at);
    return NULL;
}

double limits_ring_shared(limits_t *limits, int threads, int in_turns, unsigned rounds)
{
    enum { MOST = 64 };
    shared_end_t ends[MOST];
    if (threads < 1 || threads > MOST)
        bench_die("limits: %d threads, expected 1 to %d", threads, MOST);
    ring_t *ring = limits->rings;
    uint64_t end_at = limits->to.next + rounds;
    end_at -= end_at % RING_LOT; /* the helper returns whole lots */
    unsigned all = (unsigned)(end_at - limits->to.next);
    start(limits, ORDER_STREAM, all, -1, -1);
    __atomic_store_n(&ring->taken, limits->to.next, __ATOMIC_RELAXED);
    uint64_t before = bench_now_ns();
    for (int i = 0; i < threads; i++) {
        ends[i] = (shared_end_t){.end = limits->to, .end_at = end_at, .next = in_turns ? &ends[(i + 1) % threads].turn : NULL};
        ends[i].end.consumed = __atomic_load_n(&ring->consumed, __ATOMIC_RELAXED);
        sem_init(&ends[i].turn, 0, i == 0);
    }
    for (int i = 0; i < threads; i++) {
        if (pthread_create(&ends[i].thread, NULL, send_shared, &ends[i]) != 0)
            bench_die("limits: pthread_create");
    }
    for (int i = 0; i < threads; i++)
        pthread_join(ends[i].thread, NULL);
    for (int i = 0; i < threads; i++)
        sem_destroy(&ends[i].turn);
    limits->to.next = end_at;
    ring_drain(&limits->to);
    double spent = (double)(bench_now_ns() - before);
    finish(limits);
    return spent / all;
}

double limits_contended_add(limits_t *limits, unsigned rounds, int here, int there)
{
    start(limits, ORDER_ADD, rounds, here, there);
    spin_until(&limits->arena->pong.value, 1);
    uint64_t before = bench_now_ns();
    play_add(limits->arena, rounds, 0);
    double spent = (double)(bench_now_ns() - before);
    finish(limits);
    return spent / rounds;
}

double limits_wake(limits_t *limits, unsigned idle_us, int here, int there)
{
    start(limits, ORDER_SLEEP, 0, here, there);
    arena_t *arena = limits->arena;
    while (__atomic_load_n(&arena->asleep.value, __ATOMIC_ACQUIRE) == 0)
        bench_sleep_us(50);
    bench_sleep_us(idle_us);
    uint64_t before = bench_now_ns();
    __atomic_add_fetch(&arena->bell, 1, __ATOMIC_RELEASE);
    futex_wake(&arena->bell);
    finish(limits); /* yields if the sleeper needs this core */
    return (double)(arena->woke.value - before);
}

ssize_t limits_vm_copy(pid_t process, void *here, void *there, size_t size, int write)
{
    struct iovec local = {here, size}, remote = {there, size};
    return write ? process_vm_writev(process, &local, 1, &remote, 1, 0)
                 : process_vm_readv(process, &local, 1, &remote, 1, 0);
}

double limits_vm_read(limits_t *limits, size_t size, unsigned rounds)
{
    uint64_t before = bench_now_ns();
    for (unsigned i = 0; i < rounds; i++)
        if (limits_vm_copy(limits->helper, limits->private_buffer, limits->helper_buffer, size, 0) != (ssize_t)size)
            return NAN;
    return (double)(bench_now_ns() - before) / rounds;
}

/* ---- alone ---- */

double limits_lone_add(limits_t *limits, unsigned rounds)
{
    uint64_t before = bench_now_ns();
    for (unsigned i = 0; i < rounds; i++)
        __atomic_fetch_add(&limits->arena->word.value, 1, __ATOMIC_SEQ_CST);
    return (double)(bench_now_ns() - before) / rounds;
}

double limits_memcpy(limits_t *limits, size_t size, unsigned rounds)
{
    void *(*volatile copy)(void *, const void *, size_t) = memcpy; /* a call each time, as the size is not constant */
    uint64_t before = bench_now_ns();
    for (unsigned i = 0; i < rounds; i++)
        copy(limits->shared_buffer, limits->private_buffer, size);
    return (double)(bench_now_ns() - before) / rounds;
}

double limits_plain(limits_t *limits, char which, unsigned rounds)
{
    plain_region_t local = {limits->private_buffer, limits->bytes}, remote = {limits->shared_buffer, limits->bytes};
    plain_params_t params = {.local = &local, .remote = &remote, .size = 8, .operand = 1};
    int (*function)(const plain_params_t *) = which == 'w' ? plain_write : which == 'r' ? plain_read : plain_fetch_add;
    int failed = 0;
    uint64_t before = bench_now_ns();
    for (unsigned i = 0; i < rounds; i++)
        failed |= function(&params);
    double spent = (double)(bench_now_ns() - before);
    if (failed)
        bench_die("limits: a plain function refused its parameters");
    return spent / rounds;
}

double limits_ticks(unsigned rounds)
{
    uint64_t before = bench_now_ns(), sink = 0;
    for (unsigned i = 0; i < rounds; i++)
        sink ^= bench_ticks();
    __asm__ volatile("" ::"r"(sink));
    return (double)(bench_now_ns() - before) / rounds;
}
