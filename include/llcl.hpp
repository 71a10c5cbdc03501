// llcl.hpp - llcl.h for C++20: owners of handles, spans, and completions as lambdas, futures and
// awaitable operations. Header only. It adds no functions to the library, and uses the structs of
// llcl.h, so a program may use both.
// SPDX-License-Identifier: MIT OR Apache-2.0
#ifndef LLCL_HPP
#define LLCL_HPP

#include <atomic>
#include <coroutine>
#include <cstring>
#include <exception>
#include <future>
#include <llcl.h>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace llcl {

/// The exception of check() and of futures: a status and a message. The first constructor is for
/// the status that a call of this thread has just returned, and takes the library's message.
class error : public std::runtime_error {
public:
    explicit error(llcl_status_t status)
        : error(status, status < 0 && *llcl_last_error() != 0 ? llcl_last_error() : llcl_status_string(status))
    {
    }
    error(llcl_status_t status, const char *message) : std::runtime_error(message), status_(status) {}
    llcl_status_t status() const noexcept { return status_; }

private:
    llcl_status_t status_;
};

/// Throws on every status but LLCL_OK and LLCL_DONE, also on "try again". Callbacks and handlers
/// must not throw, so they must not call it.
inline void check(llcl_status_t status)
{
    if (status != LLCL_OK && status != LLCL_DONE)
        throw error(status);
}

/// Deletes a handle by a C function. Ignores its status: llcl_finalize may have ended the handle
/// already.
template <auto End> struct ends {
    template <class Handle> void operator()(Handle *handle) const noexcept { (void)End(handle); }
};

/// Ends a context by llcl_finalize, except where an exception destroys its owner: the call would
/// wait for the other ranks, which may wait for this one. The context then stays.
class leaves {
public:
    void operator()(llcl_context_t *handle) const noexcept
    {
        if (std::uncaught_exceptions() <= exceptions_)
            (void)llcl_finalize(handle);
    }

private:
    /// Those that were under way when the owner was made.
    int exceptions_ = std::uncaught_exceptions();
};

/// Owners of handles. get() returns the C handle; reset() ends it earlier. The end of a context is
/// collective (llcl_finalize), and an exception that is under way leaves it out: end a context
/// there by llcl_finalize(c.release()). Do the same where a status counts, as that of a network
/// which may still use registered memory: an owner ignores it.
using context = std::unique_ptr<llcl_context_t, leaves>;
using region = std::unique_ptr<llcl_region_t, ends<llcl_region_free>>;
using team = std::unique_ptr<llcl_team_t, ends<llcl_team_free>>;
using plan = std::unique_ptr<llcl_coll_t, ends<llcl_coll_free>>;
using world = std::unique_ptr<llcl_world_t, ends<llcl_world_free>>;

/// Calls a C function that returns a handle in its last argument, and returns the handle's owner:
/// `auto p = llcl::make<llcl::plan>(llcl_allreduce_init, &params);`.
template <class Owner, class Function, class... Arguments> Owner make(Function function, Arguments... arguments)
{
    typename Owner::pointer handle = nullptr;
    check(function(arguments..., &handle));
    return Owner(handle);
}

inline context init(const llcl_config_t *config = nullptr) { return make<context>(llcl_init, config); }

/// This rank's region, and the remote addresses of all ranks' regions
/// (llcl_region_allocate_shared).
struct shared_region {
    region mine;
    std::vector<llcl_remote_t> all;
};

inline shared_region allocate_shared(const context &owner, std::size_t bytes)
{
    shared_region made;
    llcl_region_t *handle = nullptr;
    made.all.resize(llcl_size(owner.get()));
    check(llcl_region_allocate_shared(owner.get(), bytes, &handle, made.all.data()));
    made.mine.reset(handle);
    return made;
}

/// A region's memory as a span of as many objects as fit.
template <class T> std::span<T> span_of(const region &owner) noexcept
{
    static_assert(std::is_trivially_copyable_v<T>);
    return {static_cast<T *>(llcl_region_address(owner.get())), llcl_region_size(owner.get()) / sizeof(T)};
}

/// Parameters of operations between a span and a remote address.
template <class T, std::size_t N> llcl_read_params_t read(std::uint32_t peer, llcl_remote_t source, std::span<T, N> destination) noexcept
{
    static_assert(std::is_trivially_copyable_v<T> && !std::is_const_v<T>);
    llcl_read_params_t params = LLCL_READ_PARAMS_INIT;
    params.peer = peer;
    params.source = source;
    params.destination = llcl_local_address(destination.data());
    params.size = destination.size_bytes();
    return params;
}

template <class T, std::size_t N> llcl_write_params_t write(std::uint32_t peer, std::span<T, N> source, llcl_remote_t destination) noexcept
{
    static_assert(std::is_trivially_copyable_v<T>);
    llcl_write_params_t params = LLCL_WRITE_PARAMS_INIT;
    params.peer = peer;
    params.source = llcl_local_address(source.data());
    params.destination = destination;
    params.size = source.size_bytes();
    return params;
}

namespace detail {

/// Whether a function object fits into the `target` of a completion: it is at most as large as a
/// pointer, and may be copied as bytes.
template <class F> constexpr bool is_small = sizeof(F) <= sizeof(void *) && std::is_trivially_copyable_v<F>;

/// The callback that calls a lambda: one in the bytes of `data`, or one on the heap.
template <class F> void call(void *data, llcl_status_t status) noexcept
{
    if constexpr (is_small<F>) {
        alignas(F) std::byte bytes[sizeof(void *)];
        std::memcpy(bytes, &data, sizeof data);
        (*std::launder(reinterpret_cast<F *>(bytes)))(status);
    } else {
        std::unique_ptr<F> function(static_cast<F *>(data));
        (*function)(status);
    }
}

template <class F> void handle(llcl_am_t *message, void *function) noexcept { (*static_cast<F *>(function))(message); }

/// Posts by `accept`, which takes the parameters; see post().
template <class Call, class Params, class F> llcl_status_t post_by(Call accept, Params params, F function)
{
    if constexpr (is_small<F>) {
        void *data = nullptr;
        std::memcpy(&data, &function, sizeof function);
        params.on_complete = llcl_callback(call<F>, data);
        return accept(&params);
    } else {
        auto owned = std::make_unique<F>(std::move(function));
        params.on_complete = llcl_callback(call<F>, owned.get());
        llcl_status_t answer = accept(&params);
        if (answer == LLCL_OK)
            (void)owned.release(); // the callback owns it, and may have deleted it
        return answer;
    }
}

} // namespace detail

/// Posts an operation whose completion calls `function(status)` once. The conventions of llcl.h say
/// on which thread. The function must not throw. `Post` is one of the _async functions:
/// `llcl::post<llcl_try_read_async>(context, params, [&](llcl_status_t s) { ... })`. Returns the
/// status of `Post`; if that is not LLCL_OK, the function is never called. A function object that
/// is trivially copyable and at most as large as a pointer, as a lambda with one reference, costs
/// no allocation; any other costs one.
template <auto Post, class Params, class F>
    requires std::is_invocable_v<F &, llcl_status_t>
[[nodiscard]] llcl_status_t post(llcl_context_t *handle, Params params, F function)
{
    return detail::post_by([handle](const Params *of) { return Post(handle, of); }, params, std::move(function));
}

/// As above, for the _async functions of collectives, whose parameters name a team.
template <auto Post, class F>
    requires std::is_invocable_v<F &, llcl_status_t>
[[nodiscard]] llcl_status_t post(const llcl_coll_params_t &params, F function)
{
    return detail::post_by(Post, params, std::move(function));
}

/// Posts an operation and returns a future, whose get() throws `llcl::error` if the operation has
/// failed. `Post` is one of the _async functions without "try". A thread in get() sleeps, and does
/// not help with progress.
template <auto Post, class Params> std::future<void> post_future(llcl_context_t *handle, const Params &params)
{
    std::promise<void> promise;
    std::future<void> future = promise.get_future();
    llcl_status_t answer = post<Post>(handle, params, [promise = std::move(promise)](llcl_status_t status) mutable {
        if (status == LLCL_OK)
            promise.set_value();
        else
            // The thread's last error belongs to another call.
            promise.set_exception(std::make_exception_ptr(error(status, llcl_status_string(status))));
    });
    check(answer);
    if (answer == LLCL_DONE) { // nothing fires
        std::promise<void> done;
        done.set_value();
        return done.get_future();
    }
    return future;
}

/// An awaitable operation:
/// `llcl_status_t status = co_await llcl::await<llcl_try_read_async>(context, params);`. If the
/// call was not accepted, the result is its status; otherwise the status of the completion. The
/// thread that ends the operation resumes the coroutine inside a callback. So the coroutine must
/// not block there, and awaits further operations by the try functions. Allocates nothing.
template <auto Post, class Params> class operation {
public:
    operation(llcl_context_t *handle, const Params &params) noexcept : context_(handle), params_(params) {}
    operation(const operation &) = delete;
    operation &operator=(const operation &) = delete;

    bool await_ready() const noexcept { return false; }
    bool await_suspend(std::coroutine_handle<> waiting) noexcept
    {
        waiting_ = waiting;
        params_.on_complete = llcl_callback(ended, this);
        llcl_status_t answer = Post(context_, &params_);
        if (answer != LLCL_OK) {
            status_ = answer;
            return false;
        }
        // This thread and the callback both set `met_`; the second one resumes the coroutine. After
        // the exchange the coroutine may have deleted *this.
        return !met_.exchange(true, std::memory_order_acq_rel);
    }
    llcl_status_t await_resume() const noexcept { return status_; }

private:
    static void ended(void *data, llcl_status_t status) noexcept
    {
        auto *self = static_cast<operation *>(data);
        self->status_ = status;
        if (self->met_.exchange(true, std::memory_order_acq_rel))
            self->waiting_.resume();
    }

    llcl_context_t *context_;
    Params params_;
    std::coroutine_handle<> waiting_;
    llcl_status_t status_ = LLCL_OK;
    std::atomic<bool> met_ = false;
};

/// Makes an operation to co_await; the compiler deduces the type of the parameters.
template <auto Post, class Params> operation<Post, Params> await(llcl_context_t *handle, const Params &params) noexcept
{
    return {handle, params};
}

/// Registers a function object as a handler; it is called with the message and must not throw. The
/// caller owns it, and keeps it alive until the handler is replaced or the context has ended.
template <class F>
    requires std::is_invocable_v<F &, llcl_am_t *>
void on_message(llcl_context_t *handle, std::uint32_t id, F &function)
{
    check(llcl_am_register(handle, id, detail::handle<F>, std::addressof(function)));
}

} // namespace llcl

#endif
