/* Broken if this fails: memory that is in no region cannot be the local side of some operation
 * (stack, heap, static; every size and alignment; each tier; messages; collectives), or its key
 * gives access as a remote side: to a peer, or to the rank itself. Or NULL cannot be the local side
 * of an operation of no bytes; or the first operation on a region, which is parked until this rank
 * knows the region, is accepted although its local side is wrong.
 * ranks: 1 2
 * cma: on off
 * threads: yes
 */
#include "test.h"

enum { BYTES = 70000, HANDLER = 3 };

struct scene {
    llcl_context_t *context;
    uint32_t peer;
    llcl_region_t *allocated;
    llcl_remote_t targets[2]; /* of the peer: memory that it allocated, and memory that it registered */
    uint64_t *came;
};

static unsigned char byte_at(size_t i, unsigned seed)
{
    return (unsigned char)(i * 7 + i / 251 + seed);
}

static void there_and_back(struct scene *in, llcl_remote_t target, unsigned char *from, unsigned char *to,
                           size_t size)
{
    llcl_write_params_t out = LLCL_WRITE_PARAMS_INIT;
    llcl_read_params_t back = LLCL_READ_PARAMS_INIT;
    uint64_t ended = 0;
    size_t i;
    for (i = 0; i < size; i++) {
        from[i] = byte_at(i, (unsigned)size);
        to[i] = 0;
    }
    out.peer = back.peer = in->peer;
    out.source = llcl_local_address(from);
    out.destination = back.source = target;
    out.size = back.size = size;
    CHECK_OK(llcl_write(in->context, &out));
    back.destination = llcl_local_address(to);
    back.on_complete = llcl_store_on(&ended);
    POST(llcl_try_read_async(in->context, &back));
    CHECK_OK(llcl_wait_word(in->context, &ended, 1, -1));
    CHECK_EQUAL(ended, 1);
    CHECK(memcmp(from, to, size) == 0);
}

static void sizes(struct scene *in, llcl_remote_t target)
{
    static const size_t of[] = {0, 1, 7, 8, 9, 120, 4096, BYTES - 8};
    unsigned char *heap = malloc(BYTES), *other = malloc(BYTES);
    uint64_t stack[2][4];
    size_t i;
    CHECK(heap != NULL && other != NULL);
    for (i = 0; i < sizeof of / sizeof of[0]; i++) {
        there_and_back(in, target, heap, other, of[i]);
        there_and_back(in, target, heap + 3, other + 5, of[i]);
        if (of[i] <= sizeof stack[0])
            there_and_back(in, target, (unsigned char *)stack[0], (unsigned char *)stack[1], of[i]);
    }
    free(heap);
    free(other);
}

static void signal_from_the_stack(struct scene *in, llcl_remote_t target)
{
    uint64_t word = 4711, found = 0;
    llcl_write_signal_params_t put = LLCL_WRITE_SIGNAL_PARAMS_INIT;
    llcl_read_params_t get = LLCL_READ_PARAMS_INIT;
    put.peer = get.peer = in->peer;
    put.source = llcl_local_address(&word);
    put.destination = target;
    put.size = sizeof word;
    put.signal = llcl_at(target, 64);
    put.signal_value = 5;
    put.signal_op = LLCL_SIGNAL_SET;
    CHECK_OK(llcl_write_signal(in->context, &put));
    get.source = put.signal;
    get.destination = llcl_local_at(llcl_local_address(&found - 1), 8);
    get.size = sizeof found;
    CHECK_OK(llcl_read(in->context, &get));
    CHECK_EQUAL(found, 5);
}

static void on_message(llcl_am_t *message, void *data)
{
    struct scene *in = data;
    llcl_am_view_t view = LLCL_AM_VIEW_INIT;
    CHECK_OK(llcl_am_view(message, &view));
    if (view.payload_size > 0)
        CHECK(view.payload_size == 24 && memcmp(view.payload, "payload from the stack!", 24) == 0);
    word_add(in->came, 1);
}

static void messages(struct scene *in)
{
    char text[] = "payload from the stack!";
    llcl_am_params_t message = LLCL_AM_PARAMS_INIT;
    message.peer = in->peer;
    message.id = HANDLER;
    message.kind = LLCL_AM_LONG;
    message.source = llcl_local_address(text);
    message.destination = in->targets[0];
    message.payload_size = sizeof text;
    CHECK_OK(llcl_am(in->context, &message));
    message.kind = LLCL_AM_BULK;
    CHECK_STATUS(llcl_am(in->context, &message), LLCL_ERR_INVALID);
    CHECK(strstr(llcl_last_error(), "source") != NULL);
}

static void collective(struct scene *in)
{
    uint64_t mine = llcl_rank(in->context) + 1, sum = 0, n = llcl_size(in->context);
    llcl_coll_params_t params = LLCL_COLL_PARAMS_INIT;
    CHECK_OK(llcl_team_world(in->context, &params.team));
    params.send = llcl_local_address(&mine);
    params.receive = llcl_local_address(&sum);
    params.count = 1;
    params.type = LLCL_TYPE_U64;
    params.op = LLCL_OP_ADD;
    CHECK_OK(llcl_allreduce(&params));
    CHECK_EQUAL(sum, n * (n + 1) / 2);
}

/* Regions of the peer, one for each kind of operation in first_use(). */
enum { WRITE, SIGNAL, STRIDED, LISTS, MESSAGE, KINDS };

/* Parked operations on regions that this rank has not used yet. */
static void first_use(struct scene *in, const llcl_remote_t *targets)
{
    llcl_write_params_t put = LLCL_WRITE_PARAMS_INIT;
    llcl_write_signal_params_t signal = LLCL_WRITE_SIGNAL_PARAMS_INIT;
    llcl_strided_params_t strided = LLCL_STRIDED_PARAMS_INIT;
    llcl_vector_params_t lists = LLCL_VECTOR_PARAMS_INIT;
    llcl_am_params_t message = LLCL_AM_PARAMS_INIT;
    llcl_local_span_t ours = {LLCL_LOCAL_INIT, 8};
    llcl_remote_span_t theirs = {LLCL_REMOTE_INIT, 8};
    put.peer = signal.peer = strided.peer = lists.peer = message.peer = in->peer;
    put.flags = signal.flags = strided.flags = lists.flags = message.flags = LLCL_FLAG_PARK;
    put.size = signal.size = strided.size = message.payload_size = 8;
    put.destination = targets[WRITE];
    signal.destination = signal.signal = targets[SIGNAL];
    signal.signal_op = LLCL_SIGNAL_ADD;
    strided.remote = targets[STRIDED];
    strided.dimensions = 1;
    strided.extents[0] = 1;
    theirs.place = targets[LISTS];
    lists.locals = &ours;
    lists.remotes = &theirs;
    lists.local_count = lists.remote_count = 1;
    message.id = HANDLER;
    message.kind = LLCL_AM_LONG;
    message.destination = targets[MESSAGE];
    CHECK_STATUS(llcl_write_async(in->context, &put), LLCL_ERR_KEY);
    CHECK_STATUS(llcl_write_signal_async(in->context, &signal), LLCL_ERR_KEY);
    CHECK_STATUS(llcl_write_strided_async(in->context, &strided), LLCL_ERR_KEY);
    CHECK_STATUS(llcl_writev_async(in->context, &lists), LLCL_ERR_KEY);
    CHECK_STATUS(llcl_am_async(in->context, &message), LLCL_ERR_KEY);
    CHECK_OK(llcl_flush_all(in->context));
}

/* Operations of no bytes. */
static void nothing_at_null(struct scene *in, llcl_remote_t target)
{
    llcl_write_params_t put = LLCL_WRITE_PARAMS_INIT;
    llcl_read_params_t get = LLCL_READ_PARAMS_INIT;
    llcl_write_signal_params_t signal = LLCL_WRITE_SIGNAL_PARAMS_INIT;
    llcl_strided_params_t strided = LLCL_STRIDED_PARAMS_INIT;
    llcl_vector_params_t lists = LLCL_VECTOR_PARAMS_INIT;
    llcl_am_params_t message = LLCL_AM_PARAMS_INIT;
    llcl_local_span_t ours[2];
    llcl_remote_span_t theirs;
    uint64_t word = 0, from = 7, ended = 0;
    put.peer = get.peer = signal.peer = strided.peer = lists.peer = message.peer = in->peer;
    put.source = get.destination = signal.source = strided.local = ours[0].place = message.source =
        llcl_local_address(NULL);
    put.destination = get.source = signal.destination = signal.signal = strided.remote = theirs.place =
        message.destination = target;
    CHECK_OK(llcl_write(in->context, &put));
    CHECK_OK(llcl_read(in->context, &get));
    signal.signal_op = LLCL_SIGNAL_SET;
    signal.signal_value = 5;
    CHECK_OK(llcl_write_signal(in->context, &signal));
    get.destination = llcl_local_address(&word);
    get.size = sizeof word;
    CHECK_OK(llcl_read(in->context, &get));
    CHECK_EQUAL(word, 5);
    signal.signal_op = LLCL_SIGNAL_ADD;
    signal.on_complete = llcl_store_on(&ended);
    POST(llcl_try_write_signal_async(in->context, &signal));
    CHECK_OK(llcl_wait_word(in->context, &ended, 1, -1));
    CHECK_EQUAL(ended, 1);
    CHECK_OK(llcl_read(in->context, &get));
    CHECK_EQUAL(word, 10);
    strided.dimensions = 1;
    strided.extents[0] = 1;
    CHECK_OK(llcl_write_strided(in->context, &strided));
    CHECK_OK(llcl_read_strided(in->context, &strided));
    ours[0].size = 0;
    ours[1].place = llcl_local_address(&from);
    ours[1].size = theirs.size = sizeof from;
    lists.locals = ours;
    lists.remotes = &theirs;
    lists.local_count = 2;
    lists.remote_count = 1;
    CHECK_OK(llcl_writev(in->context, &lists));
    CHECK_OK(llcl_read(in->context, &get));
    CHECK_EQUAL(word, 7);
    message.id = HANDLER;
    message.kind = LLCL_AM_LONG;
    CHECK_OK(llcl_am(in->context, &message));
    /* No address of this process has the key 0, and the receiver cannot read at NULL. */
    put.source.offset = 8;
    CHECK_STATUS(llcl_write(in->context, &put), LLCL_ERR_KEY);
    message.kind = LLCL_AM_BULK;
    memset(&message.destination, 0, sizeof message.destination);
    CHECK_STATUS(llcl_am(in->context, &message), LLCL_ERR_INVALID);
}

/* What the key of such an address must not be good for. */
static void hostile(struct scene *in)
{
    uint64_t word = 1, other = 2;
    llcl_local_t near = llcl_local_address(&word);
    llcl_remote_t far;
    llcl_write_params_t out = LLCL_WRITE_PARAMS_INIT;
    llcl_read_params_t back = LLCL_READ_PARAMS_INIT;
    llcl_fetch_add_params_t add = LLCL_FETCH_ADD_PARAMS_INIT;
    uint32_t peer;
    far.offset = near.offset;
    far.key = near.key;
    for (peer = 0; peer < llcl_size(in->context); peer++) {
        out.peer = back.peer = add.peer = peer;
        out.size = back.size = 8;
        out.source = back.destination = llcl_local_address(&other);
        out.destination = back.source = add.target = far;
        CHECK_STATUS(llcl_write(in->context, &out), LLCL_ERR_KEY);
        CHECK_STATUS(llcl_read(in->context, &back), LLCL_ERR_KEY);
        CHECK_STATUS(llcl_fetch_add(in->context, &add), LLCL_ERR_KEY);
        CHECK(llcl_remote_pointer(in->context, peer, far, 8) == NULL);
        out.size = back.size = 16; /* behind the paths for words */
        CHECK_STATUS(llcl_write(in->context, &out), LLCL_ERR_KEY);
        CHECK_STATUS(llcl_read(in->context, &back), LLCL_ERR_KEY);
    }
    CHECK(word == 1 && other == 2);
    out.peer = in->peer;
    out.destination = in->targets[0];
    out.source = llcl_local_address(NULL);
    CHECK_EQUAL(out.source.key, 0);
    CHECK_STATUS(llcl_write(in->context, &out), LLCL_ERR_KEY);
    out.source = llcl_local_address(&word);
    out.source.offset = UINT64_MAX - 3;
    CHECK_STATUS(llcl_write(in->context, &out), LLCL_ERR_RANGE);
}

static void run(llcl_context_t *context)
{
    struct scene in = {0};
    llcl_region_t *registered = NULL;
    unsigned char *memory = calloc(BYTES, 1);
    llcl_region_t *fresh[KINDS];
    llcl_remote_t mine[2 + KINDS], all[2 * (2 + KINDS)];
    uint32_t size = llcl_size(context);
    int kind;
    in.context = context;
    in.peer = (llcl_rank(context) + 1) % size;
    CHECK(memory != NULL && size <= 2);
    CHECK_OK(llcl_region_allocate(context, BYTES, 0, &in.allocated));
    CHECK_OK(llcl_region_register(context, memory, BYTES, 0, &registered));
    in.came = (uint64_t *)((char *)llcl_region_address(in.allocated) + BYTES - 8 - BYTES % 8);
    mine[0] = llcl_region_remote(in.allocated, 0);
    mine[1] = llcl_region_remote(registered, 0);
    for (kind = 0; kind < KINDS; kind++) {
        CHECK_OK(llcl_region_allocate(context, 8, 0, &fresh[kind]));
        mine[2 + kind] = llcl_region_remote(fresh[kind], 0);
    }
    CHECK_OK(llcl_am_register(context, HANDLER, on_message, &in));
    CHECK_OK(llcl_allgather_bytes(context, mine, sizeof mine, all));
    memcpy(in.targets, all + (2 + KINDS) * in.peer, sizeof in.targets);
    first_use(&in, all + (2 + KINDS) * in.peer + 2);
    sizes(&in, in.targets[0]);
    sizes(&in, in.targets[1]);
    signal_from_the_stack(&in, in.targets[0]);
    signal_from_the_stack(&in, in.targets[1]);
    CHECK_OK(llcl_barrier(context)); /* the counter lies where the peer has written */
    word_set(in.came, 0);
    CHECK_OK(llcl_barrier(context));
    messages(&in);
    nothing_at_null(&in, in.targets[0]);
    nothing_at_null(&in, in.targets[1]);
    CHECK_OK(llcl_wait_word(context, in.came, 3, TEST_PATIENCE_NS));
    collective(&in);
    hostile(&in);
    CHECK_OK(llcl_barrier(context));
    CHECK_OK(llcl_region_free(registered));
    for (kind = 0; kind < KINDS; kind++)
        CHECK_OK(llcl_region_free(fresh[kind]));
    free(memory);
}

TEST_MAIN(run)
