/* Broken if this fails: a region with LLCL_REGION_DEVICE_ATOMICS is refused by a network that has
 * atomics, or made without one; an atomic there gives another value than the same operation in
 * plain C; atomics of some rank, the owner and its neighbours too, are not executed where all
 * others are, so that one of them is lost; or what cannot be there is accepted.
 *
 * The simulated network loads a word, lets others run, and stores it: an atomic instruction that
 * comes between is undone.
 * ranks: 1 2 3 4
 * modes: auto direct offload
 * threads: yes
 */
#include "atomic_reference.h"

#define EACH 40

static int has(const char *name, const char *part)
{
    const char *value = getenv(name);
    return value != NULL && strstr(value, part) != NULL;
}

/* Whether such a region is made, which it must be, or must not be, where that is said; another wire
 * than the simulated one may offer it. */
static int is_offered_here(llcl_context_t *context)
{
    llcl_region_t *region = NULL;
    llcl_status_t status = llcl_region_allocate(context, 4096, LLCL_REGION_DEVICE_ATOMICS, &region);
    int wire = has("LLCL_TRANSPORT", "simulated");
    if (status != LLCL_OK) {
        CHECK_STATUS(status, LLCL_ERR_UNSUPPORTED);
        CHECK(strstr(llcl_last_error(), "LLCL_REGION_DEVICE_ATOMICS, and no network") != NULL);
        CHECK(!wire || (!has("LLCL_WIRE_SEED", "atomics=1") && !has("LLCL_WIRE_SEED", "atomics=2")));
        return 0;
    }
    CHECK(wire ? !has("LLCL_WIRE_SEED", "atomics=0") && !has("LLCL_WIRE_SEED", "remote=0") : getenv("LLCL_TRANSPORT") != NULL);
    CHECK_OK(llcl_region_free(region));
    return 1;
}

static llcl_status_t apply(llcl_context_t *context, llcl_remote_t word, uint32_t peer, uint32_t op, uint32_t type, uint64_t operand,
                           uint64_t compare, uint64_t *result, uint32_t flags)
{
    llcl_atomic_params_t atomic = LLCL_ATOMIC_PARAMS_INIT;
    atomic.peer = peer;
    atomic.flags = flags;
    atomic.target = word;
    atomic.op = op;
    atomic.type = type;
    atomic.operand = operand;
    atomic.compare = compare;
    atomic.result = result;
    return llcl_atomic(context, &atomic);
}

/* Each operation on each type of 8 bytes, at every rank, on a word that is this rank's there. */
static void table(llcl_context_t *context, const struct shared *target)
{
    uint32_t me = llcl_rank(context), peer;
    uint64_t values[16], old, now;
    size_t t, o, a, b, count;
    for (peer = 0; peer < llcl_size(context); peer++) {
        llcl_remote_t word = remote_at(target, peer, 8 + 8 * me);
        for (t = 0; t < TYPES; t++) {
            if (type_size(all_types[t]) != 8)
                continue;
            count = edge_values(all_types[t], values);
            for (o = 0; o < OPS; o++) {
                for (a = 0; a < count && is_offered(all_ops[o], all_types[t]); a += 1 + o % 3) {
                    b = (3 * a + o) % count;
                    CHECK_OK(apply(context, word, peer, LLCL_OP_STORE, LLCL_TYPE_U64, values[a], 0, NULL, 0));
                    CHECK_OK(apply(context, word, peer, all_ops[o], all_types[t], values[b], values[a], &old, o % 2 ? LLCL_FLAG_DEFER : 0));
                    CHECK_EQUAL(old, values[a]);
                    CHECK_OK(apply(context, word, peer, LLCL_OP_LOAD, LLCL_TYPE_U64, 0, 0, &now, 0));
                    CHECK_EQUAL(now, reference(all_ops[o], all_types[t], values[a], values[b], values[a]));
                }
            }
        }
    }
}

static void queries(llcl_context_t *context, const struct shared *device, const struct shared *plain)
{
    llcl_atomic_info_t info = LLCL_ATOMIC_INFO_INIT;
    uint32_t peer;
    for (peer = 0; peer < llcl_size(context); peer++) {
        CHECK_OK(llcl_atomic_query(context, peer, device->remote[peer], LLCL_OP_ADD, LLCL_TYPE_U64, &info));
        CHECK(info.supported == 1 && info.domain == LLCL_DOMAIN_DEVICE && info.cost == LLCL_COST_NETWORK);
        CHECK_OK(llcl_atomic_query(context, peer, device->remote[peer], LLCL_OP_ADD, LLCL_TYPE_F64, &info));
        CHECK(info.supported == 1 && info.domain == LLCL_DOMAIN_DEVICE && info.cost == LLCL_COST_NETWORK_LOOP);
        CHECK_OK(llcl_atomic_query(context, peer, device->remote[peer], LLCL_OP_ADD, LLCL_TYPE_U32, &info));
        CHECK(info.supported == 0 && info.domain == 0 && info.cost == 0);
        CHECK_OK(llcl_atomic_query(context, peer, plain->remote[peer], LLCL_OP_ADD, LLCL_TYPE_U64, &info));
        CHECK(info.supported == 1 && info.domain != LLCL_DOMAIN_DEVICE && info.cost <= LLCL_COST_MESSAGES);
    }
}

static void refusals(llcl_context_t *context, const struct shared *target)
{
    uint64_t old = 7;
    uint32_t peer;
    for (peer = 0; peer < llcl_size(context); peer++) {
        llcl_write_signal_params_t signal = LLCL_WRITE_SIGNAL_PARAMS_INIT;
        llcl_remote_t word = remote_at(target, peer, 0);
        CHECK_STATUS(apply(context, word, peer, LLCL_OP_ADD, LLCL_TYPE_I32, 1, 0, NULL, 0), LLCL_ERR_UNSUPPORTED);
        CHECK_STATUS(apply(context, remote_at(target, peer, 4), peer, LLCL_OP_ADD, LLCL_TYPE_U64, 1, 0, &old, 0), LLCL_ERR_INVALID);
        CHECK_STATUS(apply(context, remote_at(target, peer, 4096), peer, LLCL_OP_ADD, LLCL_TYPE_U64, 1, 0, &old, 0), LLCL_ERR_RANGE);
        signal.peer = peer;
        signal.destination = remote_at(target, peer, 2048);
        signal.source = llcl_region_local(target->region, 1024);
        signal.size = 8;
        signal.signal = word;
        signal.signal_value = 1;
        signal.signal_op = LLCL_SIGNAL_ADD;
        CHECK_STATUS(llcl_write_signal(context, &signal), LLCL_ERR_UNSUPPORTED);
    }
    CHECK_EQUAL(old, 7);
}

static void flip(llcl_context_t *context, const struct shared *target, uint32_t bit)
{
    CHECK_OK(apply(context, remote_at(target, 0, 1024), 0, LLCL_OP_XOR, LLCL_TYPE_U64, UINT64_C(1) << bit, 0, NULL, 0));
}

/* All ranks change words of rank 0 at a time, by an operation that the network may have and by one
 * that it has not; rank 0 until the others have ended. No change is lost, and no number is fetched
 * twice. Beside it words of a region without the flag have the same history. */
static void contended(llcl_context_t *context, const struct shared *device, const struct shared *plain)
{
    const struct shared *regions[2] = {device, plain};
    uint32_t me = llcl_rank(context), size = llcl_size(context), n;
    uint64_t got[EACH], all[4 * EACH], counts[4], mine, total, old, now, i, j;
    llcl_fetch_add_params_t add = LLCL_FETCH_ADD_PARAMS_INIT;
    CHECK(size <= 4);
    add.operand = 1;
    for (n = 0; n < 2; n++) {
        for (mine = 0; mine < EACH || (me == 0 && word_get(&plain->words[40 + n]) < size - 1); mine++) {
            add.target = remote_at(regions[n], 0, 0);
            add.result = &old;
            CHECK_OK(llcl_fetch_add(context, &add));
            if (mine < EACH)
                got[mine] = old;
            flip(context, regions[n], me * 16 + mine % 15);
            flip(context, regions[n], me * 16 + mine % 15);
        }
        add.target = remote_at(plain, 0, 8 * (40 + n));
        add.result = NULL;
        if (me != 0)
            CHECK_OK(llcl_fetch_add(context, &add));
        CHECK_OK(llcl_allgather_bytes(context, &mine, sizeof mine, counts));
        CHECK_OK(llcl_allgather_bytes(context, got, sizeof got, all));
        for (i = total = 0; i < size; i++)
            total += counts[i];
        CHECK_OK(apply(context, remote_at(regions[n], 0, 0), 0, LLCL_OP_LOAD, LLCL_TYPE_U64, 0, 0, &now, 0));
        CHECK_EQUAL(now, total);
        for (i = 0; i < size * EACH; i++)
            for (j = 0; j < i; j++)
                CHECK(all[i] < total && all[i] != all[j]);
        CHECK_OK(apply(context, remote_at(regions[n], 0, 1024), 0, LLCL_OP_LOAD, LLCL_TYPE_U64, 0, 0, &now, 0));
        CHECK_EQUAL(now, 0);
    }
}

struct first_use {
    llcl_context_t *context;
    llcl_remote_t word;
    uint32_t peer;
    uint64_t ended, status;
};

static void first_use(void *data, llcl_status_t status)
{
    struct first_use *use = data;
    llcl_fetch_add_params_t add = LLCL_FETCH_ADD_PARAMS_INIT;
    CHECK_OK(status);
    add.peer = use->peer;
    add.target = use->word;
    use->status = (uint64_t)(int64_t)llcl_try_fetch_add_async(use->context, &add);
    word_add(&use->ended, 1);
}

/* Nobody could ask the owner for a key that a callback is the first to use. */
static void callbacks(llcl_context_t *context, const struct shared *plain)
{
    llcl_fetch_add_params_t add = LLCL_FETCH_ADD_PARAMS_INIT;
    struct first_use use;
    struct shared other;
    share(context, REGISTERED | DEVICE, 4096, &other);
    memset(&use, 0, sizeof use);
    use.context = context;
    use.peer = add.peer = (llcl_rank(context) + 1) % llcl_size(context);
    use.word = remote_at(&other, use.peer, 0);
    add.target = remote_at(plain, use.peer, 64);
    add.on_complete = llcl_callback(first_use, &use);
    CHECK_OK(llcl_fetch_add_async(context, &add));
    CHECK_OK(llcl_wait_word(context, &use.ended, 1, TEST_PATIENCE_NS));
    CHECK_EQUAL((int64_t)use.status, llcl_size(context) > 1 ? LLCL_ERR_STATE : LLCL_OK);
    CHECK_OK(llcl_flush_all(context));
    share_end(context, &other);
}

static void run(llcl_context_t *context)
{
    int kind;
    if (!is_offered_here(context))
        return;
    for (kind = 0; kind < MEMORY_KINDS; kind++) {
        llcl_remote_t word;
        struct shared device, plain;
        share(context, kind | DEVICE, 4096, &device);
        share(context, kind, 4096, &plain);
        queries(context, &device, &plain);
        if (kind == ALLOCATED)
            table(context, &device);
        refusals(context, &device);
        contended(context, &device, &plain);
        callbacks(context, &plain);
        /* Who waits for such a word notices. */
        word = remote_at(&device, 0, 512);
        CHECK_OK(apply(context, word, 0, LLCL_OP_ADD, LLCL_TYPE_U64, 1, 0, NULL, 0));
        if (llcl_rank(context) == 0)
            CHECK_OK(llcl_wait_word(context, device.words + 64, llcl_size(context), TEST_PATIENCE_NS));
        share_end(context, &plain);
        share_end(context, &device);
        fence(context);
        CHECK_STATUS(apply(context, word, 0, LLCL_OP_ADD, LLCL_TYPE_U64, 1, 0, NULL, 0), LLCL_ERR_KEY);
        fence(context);
    }
}

TEST_MAIN(run)
