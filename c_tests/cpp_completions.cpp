/* llcl.hpp: lambdas, futures and coroutines are told of each operation's end once, a refused one is
 * told to nobody and gives back what it has taken; small lambdas and awaited operations allocate
 * nothing; owners end what they own.
 * ranks: 1 2
 */
#include "cpp_check.h"
#include <llcl.hpp>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <numeric>
#include <thread>

/* Every allocation of this program; the library has an allocator of its own. */
static std::atomic<long> allocations, alive;

void *operator new(std::size_t size)
{
    allocations++, alive++;
    if (void *memory = std::malloc(size))
        return memory;
    throw std::bad_alloc();
}
void operator delete(void *memory) noexcept
{
    alive -= memory != nullptr;
    std::free(memory);
}
void operator delete(void *memory, std::size_t) noexcept { operator delete(memory); }

/* The simplest coroutine: runs until it awaits, and is told of by a word that its end sets. */
struct run {
    struct promise_type {
        run get_return_object() { return {}; }
        std::suspend_never initial_suspend() { return {}; }
        std::suspend_never final_suspend() noexcept { return {}; }
        void return_void() {}
        void unhandled_exception() { std::terminate(); }
    };
};

enum { OPERATIONS = 200, WORDS = 64, ECHO = 3, NOBODY = 4 };

static void wait_for(llcl_context_t *context, std::atomic<std::uint64_t> &word, std::uint64_t value)
{
    static_assert(sizeof word == sizeof(std::uint64_t));
    CHECK(llcl_wait_word(context, reinterpret_cast<std::uint64_t *>(&word), value, 10'000'000'000) == LLCL_OK);
}

template <auto Post, class Params, class F> static void until_accepted(llcl_context_t *context, const Params &params, F f)
{
    llcl_status_t answer;
    while ((answer = llcl::post<Post>(context, params, f)) > 0)
        std::this_thread::yield();
    CHECK(answer == LLCL_OK);
}

static void collectives(llcl_context_t *context)
{
    std::atomic<std::uint64_t> ends = 0;
    llcl_coll_params_t params = LLCL_COLL_PARAMS_INIT;
    CHECK(llcl_team_world(context, &params.team) == LLCL_OK);
    for (int i = 0; i < 10; i++) {
        llcl_status_t answer = llcl::post<llcl_barrier_async>(params, [&ends](llcl_status_t status) { ends += status == LLCL_OK; });
        CHECK(answer == LLCL_OK);
        wait_for(context, ends, (std::uint64_t)i + 1);
    }
}

static void lambdas(llcl_context_t *context, const llcl_read_params_t &read)
{
    std::atomic<std::uint64_t> ends = 0;
    long before = allocations;
    for (int i = 0; i < OPERATIONS; i++)
        until_accepted<llcl_try_read_async>(context, read, [&ends](llcl_status_t status) { ends += status == LLCL_OK; });
    wait_for(context, ends, OPERATIONS);
    CHECK(allocations == before);

    /* Larger than a pointer: an allocation each, which goes with the call. */
    std::array<std::uint64_t, 8> many = {1, 2, 3, 4, 5, 6, 7, 8};
    long living = alive;
    ends = 0;
    for (int i = 0; i < OPERATIONS; i++) {
        llcl_status_t answer = llcl::post<llcl_read_async>(context, read,
            [&ends, many](llcl_status_t status) { ends += status == LLCL_OK && std::accumulate(many.begin(), many.end(), 0ul) == 36; });
        CHECK(answer == LLCL_OK);
    }
    wait_for(context, ends, OPERATIONS);
    CHECK(llcl_flush_all(context) == LLCL_OK && allocations == before + OPERATIONS);
    for (int i = 0; i < 10000 && alive != living; i++) /* the last callback is counted before it gives its memory back */
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    CHECK(alive == living);

    llcl_read_params_t wrong = read;
    wrong.peer = llcl_size(context);
    CHECK(llcl::post<llcl_read_async>(context, wrong, [many](llcl_status_t) { CHECK(many[0] == 0); }) == LLCL_ERR_INVALID);
    CHECK(alive == living);
}

/* An operation that ends with an error on a thread whose last error belongs to another call. */
static llcl_status_t ends_badly(llcl_context_t *context, const llcl_read_params_t *read)
{
    CHECK(llcl_flush(context, llcl_size(context)) == LLCL_ERR_INVALID && *llcl_last_error() != 0);
    read->on_complete.call(read->on_complete.target, LLCL_ERR_PEER_DEAD);
    return LLCL_OK;
}

static void futures(llcl_context_t *context, llcl_read_params_t read)
{
    std::string says;
    try {
        llcl::post_future<ends_badly>(context, read).get();
    } catch (const llcl::error &error) {
        says = error.what();
    }
    CHECK(says == llcl_status_string(LLCL_ERR_PEER_DEAD));
    read.flags = LLCL_FLAG_DEFER;
    llcl::post_future<llcl_read_async>(context, read).get();
    read.flags = LLCL_FLAG_DONE; /* which may tell the end by the answer */
    llcl::post_future<llcl_read_async>(context, read).get();
    llcl_am_params_t message = LLCL_AM_PARAMS_INIT;
    message.peer = read.peer;
    message.id = NOBODY;
    llcl_status_t told = LLCL_OK, refused = LLCL_OK;
    try {
        llcl::post_future<llcl_am_async>(context, message).get();
    } catch (const llcl::error &error) {
        told = error.status();
    }
    CHECK(told == LLCL_ERR_NO_HANDLER);
    read.peer = llcl_size(context);
    try {
        llcl::post_future<llcl_read_async>(context, read);
    } catch (const llcl::error &error) {
        refused = error.status();
        CHECK(std::strstr(error.what(), "peer") != nullptr);
    }
    CHECK(refused == LLCL_ERR_INVALID);
}

/* Each read is posted when the one before has ended, on whatever thread told of that. */
static run chain(llcl_context_t *context, llcl_read_params_t read, std::uint32_t flags, std::atomic<std::uint64_t> &done)
{
    for (int i = 0; i < OPERATIONS; i++) {
        read.flags = flags;
        llcl_status_t status;
        while ((status = co_await llcl::await<llcl_try_read_async>(context, read)) > 0) {
        }
        CHECK(status == LLCL_OK);
    }
    read.peer = llcl_size(context);
    CHECK(co_await llcl::await<llcl_try_read_async>(context, read) == LLCL_ERR_INVALID);
    done = 1;
}

static void coroutines(llcl_context_t *context, const llcl_read_params_t &read)
{
    for (std::uint32_t flags : {0u, LLCL_FLAG_DEFER}) {
        std::atomic<std::uint64_t> done = 0;
        long before = allocations;
        chain(context, read, flags, done);
        wait_for(context, done, 1);
        CHECK(allocations == before + 1); /* the coroutine's frame */
    }
}

static void messages(llcl_context_t *context, std::uint32_t peer)
{
    auto echo = [](llcl_am_t *message) {
        llcl_am_view_t view;
        LLCL_CHECK(llcl_am_view(message, &view));
        LLCL_CHECK(llcl_am_reply(message, view.payload, view.payload_size));
    };
    llcl::on_message(context, ECHO, echo);
    llcl::check(llcl_barrier(context));
    std::uint64_t question = 42, answer = 0;
    llcl_am_params_t ask = LLCL_AM_PARAMS_INIT;
    ask.peer = peer;
    ask.id = ECHO;
    ask.payload = &question;
    ask.payload_size = ask.reply_capacity = sizeof question;
    ask.reply = &answer;
    llcl::check(llcl_am(context, &ask));
    CHECK(answer == 42);
    llcl::check(llcl_barrier(context)); /* the handler is a local variable */
}

int main()
{
    llcl::context context = llcl::init();
    std::uint32_t peer = (llcl_rank(context.get()) + 1) % llcl_size(context.get());
    auto [region, all] = llcl::allocate_shared(context, WORDS * sizeof(std::uint64_t));
    std::span<std::uint64_t> words = llcl::span_of<std::uint64_t>(region);
    CHECK(words.size() == WORDS && all.size() == llcl_size(context.get()));
    llcl::check(llcl_connect(context.get(), nullptr, 0));

    std::array<std::uint64_t, WORDS> mine, theirs = {};
    std::iota(mine.begin(), mine.end(), 7);
    llcl_write_params_t write = llcl::write(peer, std::span(std::as_const(mine)), all[peer]);
    llcl::check(llcl_write(context.get(), &write));
    llcl::check(llcl_barrier(context.get()));
    CHECK(std::equal(words.begin(), words.end(), mine.begin()));
    llcl_read_params_t read = llcl::read(peer, all[peer], std::span(theirs));
    llcl::check(llcl_read(context.get(), &read));
    CHECK(theirs == mine);

    lambdas(context.get(), read);
    collectives(context.get());
    futures(context.get(), read);
    coroutines(context.get(), read);
    messages(context.get(), peer);

    llcl_coll_params_t params = LLCL_COLL_PARAMS_INIT;
    {
        llcl::team team = llcl::make<llcl::team>(llcl_team_world, context.get());
        params.team = team.get();
        llcl::plan plan = llcl::make<llcl::plan>(llcl_barrier_init, &params);
        llcl::check(llcl_coll_start(plan.get()));
        llcl::check(llcl_coll_wait(plan.get(), -1));
        llcl_coll_t *handle = plan.get();
        plan.reset();
        CHECK(llcl_coll_start(handle) == LLCL_ERR_STATE);
    }
    llcl_region_t *handle = region.get();
    region.reset();
    CHECK(llcl_region_address(handle) == nullptr);
    llcl_context_t *ended = context.get();
    context.reset();
    CHECK(llcl_flush_all(ended) == LLCL_ERR_STATE);
    return 0;
}
