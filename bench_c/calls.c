/* Requests of 8 bytes on mapped memory, and messages of 8 bytes from a rank to itself, one function
 * for each kind. bench_c/instructions counts the instructions of these functions. */
#include "world.h"

#include <stdlib.h>
#include <string.h>

#define EACH 10000

static const char *about = "Requests one kind after the other; to be run under callgrind by bench_c/instructions.";
static uint64_t fired;

static void count(void *data, llcl_status_t status)
{
    *(uint64_t *)data += status == LLCL_OK;
}

static void (*volatile callback)(void *, llcl_status_t) = count;

/* The loop and the callback alone: bench_c/instructions subtracts them. */
__attribute__((noinline)) void calls_bare_loop(void)
{
    for (int i = 0; i < EACH; i++)
        __asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) void calls_bare_callback(void)
{
    for (int i = 0; i < EACH; i++)
        callback(&fired, LLCL_OK);
}

#define KIND(name, call)                                                                                   \
    __attribute__((noinline)) void calls_##name(llcl_context_t *context, const bench_request_t *request)   \
    {                                                                                                      \
        for (int i = 0; i < EACH; i++)                                                                     \
            call;                                                                                          \
    }
KIND(read_none, llcl_try_read_async(context, &request->as.read))
KIND(read_done, llcl_try_read_async(context, &request->as.read))
KIND(read_callback, llcl_try_read_async(context, &request->as.read))
KIND(read_blocking, llcl_read(context, &request->as.read))
KIND(write_none, llcl_try_write_async(context, &request->as.write))
KIND(write_done, llcl_try_write_async(context, &request->as.write))
KIND(write_callback, llcl_try_write_async(context, &request->as.write))
KIND(write_blocking, llcl_write(context, &request->as.write))

/* Boxes and lists of 64 pieces; a tenth as many calls. */
#define PIECES 64
#define STRIDE 64
#define MANY_KIND(name, type, call)                                                         \
    __attribute__((noinline)) void calls_##name(llcl_context_t *context, const type *params) \
    {                                                                                       \
        for (int i = 0; i < EACH / 10; i++)                                                 \
            call(context, params);                                                          \
    }
MANY_KIND(box_small, llcl_strided_params_t, llcl_write_strided)
MANY_KIND(box_large, llcl_strided_params_t, llcl_write_strided)
MANY_KIND(box_rows, llcl_strided_params_t, llcl_write_strided)
MANY_KIND(list_small, llcl_vector_params_t, llcl_writev)
MANY_KIND(list_large, llcl_vector_params_t, llcl_writev)
MANY_KIND(list_other, llcl_vector_params_t, llcl_writev)

static void many(const bench_world_t *world)
{
    static llcl_local_span_t ours[PIECES];
    static llcl_remote_span_t theirs[PIECES];
    llcl_strided_params_t box = LLCL_STRIDED_PARAMS_INIT;
    llcl_vector_params_t list = LLCL_VECTOR_PARAMS_INIT;
    box.peer = list.peer = world->peer;
    box.local = llcl_local_address(world->source_memory);
    box.remote = world->remote[BENCH_MAPPED];
    box.dimensions = 1;
    box.extents[0] = PIECES;
    box.local_strides[0] = box.remote_strides[0] = STRIDE;
    box.size = 48;
    bench_check(llcl_write_strided(world->context, &box), "llcl_write_strided");
    calls_box_large(world->context, &box);
    box.size = 8;
    calls_box_small(world->context, &box);
    box.dimensions = 2;
    box.extents[0] = box.extents[1] = 8;
    box.local_strides[1] = box.remote_strides[1] = 7 * STRIDE;
    calls_box_rows(world->context, &box);
    list.locals = ours;
    list.remotes = theirs;
    list.local_count = list.remote_count = PIECES;
    for (int size = 8; size <= 48; size += 20) {
        for (int piece = 0; piece < PIECES; piece++) {
            ours[piece].place = llcl_local_address(world->source_memory + piece * STRIDE);
            theirs[piece].place = llcl_at(world->remote[BENCH_MAPPED], piece * STRIDE);
            ours[piece].size = theirs[piece].size = (size_t)size;
        }
        (size == 8 ? calls_list_small : size == 48 ? calls_list_large : calls_list_other)(world->context, &list);
    }
}

/* BATCH messages are sent, then one poll takes them. */
#define BATCH 50

static void handle(llcl_am_t *message, void *data)
{
    (void)message;
    ++*(uint64_t *)data;
}

__attribute__((noinline)) void calls_message_send(llcl_context_t *context, const llcl_am_params_t *message)
{
    for (int i = 0; i < BATCH; i++)
        llcl_try_am_async(context, message);
}

__attribute__((noinline)) void calls_message_take(llcl_context_t *context)
{
    llcl_am_poll(context, BATCH, NULL);
}

/* A message by itself, as in a ping-pong: one poll takes one message. */
__attribute__((noinline)) void calls_alone_send(llcl_context_t *context, const llcl_am_params_t *message)
{
    llcl_try_am_async(context, message);
}

__attribute__((noinline)) void calls_alone_take(llcl_context_t *context) { llcl_am_poll(context, BATCH, NULL); }

/* A message by itself with a payload and no header. */
__attribute__((noinline)) void calls_small_send(llcl_context_t *context, const llcl_am_params_t *message)
{
    llcl_try_am_async(context, message);
}

__attribute__((noinline)) void calls_small_take(llcl_context_t *context) { llcl_am_poll(context, BATCH, NULL); }

/* A request that is answered by a response. In a round trip one rank sends the request and takes
 * the response, and the other takes the request, whose handler sends the response. */
static void answer(llcl_am_t *message, void *response) { llcl_am_respond(message, response); }

__attribute__((noinline)) void calls_asked_send(llcl_context_t *context, const llcl_am_params_t *message)
{
    llcl_try_am_async(context, message);
}

__attribute__((noinline)) void calls_asked_take(llcl_context_t *context) { llcl_am_poll(context, 1, NULL); }

__attribute__((noinline)) void calls_response_take(llcl_context_t *context) { llcl_am_poll(context, 1, NULL); }

/* A request whose response has a payload and no header. */
__attribute__((noinline)) void calls_asked_small_take(llcl_context_t *context) { llcl_am_poll(context, 1, NULL); }

__attribute__((noinline)) void calls_poll_empty(llcl_context_t *context)
{
    for (int i = 0; i < EACH; i++)
        llcl_am_poll(context, BATCH, NULL);
}

static void messages(const bench_world_t *world)
{
    uint64_t handled = 0, word = 0;
    llcl_am_params_t message;
    memset(&message, 0, sizeof message);
    message.peer = world->rank;
    message.header = &word;
    message.header_size = sizeof word;
    bench_check(llcl_am_register(world->context, 0, handle, &handled), "llcl_am_register");
    bench_check(llcl_am(world->context, &message), "llcl_am"); /* takes the costs of the first use */
    for (int i = 0; i < EACH / BATCH; i++) {
        calls_message_send(world->context, &message);
        calls_message_take(world->context);
    }
    for (int i = 0; i < EACH; i++) {
        calls_alone_send(world->context, &message);
        calls_alone_take(world->context);
    }
    llcl_am_params_t small = message, response = message;
    small.header = NULL;
    small.header_size = 0;
    small.payload = &word;
    small.payload_size = sizeof word;
    for (int i = 0; i < EACH; i++) {
        calls_small_send(world->context, &small);
        calls_small_take(world->context);
    }
    message.id = 1;
    bench_check(llcl_am_register(world->context, 1, answer, &response), "llcl_am_register");
    for (int i = 0; i < EACH; i++) {
        calls_asked_send(world->context, &message);
        calls_asked_take(world->context);
        calls_response_take(world->context);
    }
    response = small;
    for (int i = 0; i < EACH; i++) {
        llcl_try_am_async(world->context, &message);
        calls_asked_small_take(world->context);
        llcl_am_poll(world->context, 1, NULL);
    }
    if (handled != 5 * EACH + 1)
        bench_die("calls: %llu messages were handled", (unsigned long long)handled);
    calls_poll_empty(world->context);
}

int main(int argc, char **argv)
{
    bench_options_t options = bench_parse(argc, argv, about);
    bench_world_t world;
    setenv("LLCL_AM_HANDLERS", "polled", 1);
    world_open(&world, &options, 4096);
    if (options.show) {
        llcl_completion_t none = llcl_no_completion(), call = llcl_callback(count, &fired);
        for (int op = BENCH_WRITE; op <= BENCH_READ; op++) {
            bench_request_t quiet = world_request(&world, (bench_op_t)op, BENCH_MAPPED, 0, 8, none, 0);
            bench_request_t done = world_request(&world, (bench_op_t)op, BENCH_MAPPED, 0, 8, call, LLCL_FLAG_DONE);
            bench_request_t called = world_request(&world, (bench_op_t)op, BENCH_MAPPED, 0, 8, call, 0);
            bench_post(world.context, (bench_op_t)op, &called); /* takes the costs of the first use */
            bench_check(llcl_flush(world.context, world.peer), "llcl_flush");
            (op == BENCH_READ ? calls_read_none : calls_write_none)(world.context, &quiet);
            (op == BENCH_READ ? calls_read_done : calls_write_done)(world.context, &done);
            (op == BENCH_READ ? calls_read_callback : calls_write_callback)(world.context, &called);
            (op == BENCH_READ ? calls_read_blocking : calls_write_blocking)(world.context, &quiet);
        }
        many(&world);
        messages(&world);
        calls_bare_loop();
        calls_bare_callback();
        if (fired < 2 * EACH)
            bench_die("calls: callbacks are missing");
    }
    world_close(&world);
    return 0;
}
