/* An exception that leaves a callback or a handler ends the process with a message that names the
 * function, whichever thread runs the function and whether or not the program would catch the
 * exception further out. If this were broken, the exception would pass through the library, and
 * leave its locks and roles taken.
 * kind: alone
 */
#include "cpp_check.h"

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { HANDLER = 3, WENT_ON = 3, CAUGHT = 4 };

/* The thread on which the function ran that threw; shared with the children. */
static pid_t *thrower;

static void callback(void *, llcl_status_t)
{
    *thrower = gettid();
    throw std::runtime_error("out of a callback");
}

static void handler(llcl_am_t *, void *)
{
    *thrower = gettid();
    throw 42;
}

using posting = llcl_status_t (*)(llcl_context_t *, const llcl_write_value_params_t *);

static llcl_status_t post(llcl_context_t *context, posting call, std::uint32_t flags)
{
    llcl_region_t *region;
    CHECK(llcl_region_allocate(context, 64, 0, &region) == LLCL_OK);
    llcl_write_value_params_t value = LLCL_WRITE_VALUE_PARAMS_INIT;
    value.destination = llcl_region_remote(region, 0);
    value.size = 8;
    value.flags = flags;
    value.on_complete = llcl_callback(callback, nullptr);
    return call(context, &value);
}

static llcl_status_t at_once(llcl_context_t *context) { return post(context, llcl_write_value_async, 0); }
static llcl_status_t tried(llcl_context_t *context) { return post(context, llcl_try_write_value_async, 0); }
static llcl_status_t deferred(llcl_context_t *context) { return post(context, llcl_write_value_async, LLCL_FLAG_DEFER); }

static llcl_status_t send_by(llcl_context_t *context, llcl_status_t (*call)(llcl_context_t *, const llcl_am_params_t *))
{
    llcl_am_params_t message = LLCL_AM_PARAMS_INIT;
    message.id = HANDLER;
    CHECK(llcl_am_register(context, HANDLER, handler, nullptr) == LLCL_OK);
    return call(context, &message);
}

static llcl_status_t sent(llcl_context_t *context) { return send_by(context, llcl_am_async); }
static llcl_status_t handled(llcl_context_t *context) { return send_by(context, llcl_am); }

static void poll(llcl_context_t *context)
{
    for (int turn = 0; turn < 1000; turn++) {
        CHECK(llcl_am_poll(context, 1, nullptr) >= LLCL_OK);
        usleep(1000);
    }
}

static void sleeps(llcl_context_t *) { sleep(10); }

enum runs_on { CALLER, LIBRARY };

/* One way to the function: how it is started, and what the program's thread does next. */
struct way {
    const char *name, *mode, *handlers;
    llcl_status_t (*start)(llcl_context_t *);
    void (*then)(llcl_context_t *);
    void (*thrower)();
    runs_on thread;
};

static void (*const THE_CALLBACK)() = reinterpret_cast<void (*)()>(callback);
static void (*const THE_HANDLER)() = reinterpret_cast<void (*)()>(handler);

static const way ways[] = {
    {"callback in the call that posts", "auto", "serial", at_once, sleeps, THE_CALLBACK, CALLER},
    {"callback in the call that posts", "direct", "serial", at_once, sleeps, THE_CALLBACK, CALLER},
    {"callback in the call that tries", "auto", "serial", tried, sleeps, THE_CALLBACK, CALLER},
    {"callback in the call that tries", "direct", "serial", tried, sleeps, THE_CALLBACK, CALLER},
    {"callback on a thread of the library", "auto", "serial", deferred, sleeps, THE_CALLBACK, LIBRARY},
    {"callback on a thread of the library", "offload", "serial", at_once, sleeps, THE_CALLBACK, LIBRARY},
    {"callback on a thread of the library", "direct", "serial", deferred, sleeps, THE_CALLBACK, LIBRARY},
    {"handler in a poll", "auto", "polled", sent, poll, THE_HANDLER, CALLER},
    {"handler in a poll", "offload", "polled", sent, poll, THE_HANDLER, CALLER},
    {"handler in a poll", "direct", "polled", sent, poll, THE_HANDLER, CALLER},
    {"handler in a call that waits", "auto", "polled", handled, sleeps, THE_HANDLER, CALLER},
    {"handler in a call that waits", "offload", "polled", handled, sleeps, THE_HANDLER, CALLER},
    {"handler in a call that waits", "direct", "polled", handled, sleeps, THE_HANDLER, CALLER},
    {"handler on a thread of the library", "auto", "serial", sent, sleeps, THE_HANDLER, LIBRARY},
    {"handler on a thread of the library", "auto", "parallel", sent, sleeps, THE_HANDLER, LIBRARY},
    {"handler on a thread of the library", "offload", "serial", sent, sleeps, THE_HANDLER, LIBRARY},
    {"handler on a thread of the library", "direct", "serial", sent, sleeps, THE_HANDLER, LIBRARY},
};

[[noreturn]] static void run(const way &way, bool catches)
{
    llcl_context_t *context;
    alarm(10);
    setenv("LLCL_AM_HANDLERS", way.handlers, 1);
    CHECK(llcl_init(nullptr, &context) == LLCL_OK);
    auto all = [&] {
        CHECK(way.start(context) == LLCL_OK);
        way.then(context);
    };
    if (!catches)
        all();
    else
        try {
            all();
        } catch (...) {
            std::_Exit(CAUGHT);
        }
    std::_Exit(WENT_ON);
}

/* What a child says on stderr that goes this way; `status` is its end. */
static std::string child(const way &way, bool catches, pid_t &pid, int &status)
{
    int ends[2];
    std::string said;
    char bytes[512];
    ssize_t got;
    CHECK(pipe(ends) == 0);
    pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        dup2(ends[1], 2);
        run(way, catches);
    }
    close(ends[1]);
    while ((got = read(ends[0], bytes, sizeof bytes)) > 0)
        said.append(bytes, static_cast<std::size_t>(got));
    close(ends[0]);
    CHECK(waitpid(pid, &status, 0) == pid);
    return said;
}

/* How the message names a function of this program that is not exported. */
static std::string name_of(void (*function)())
{
    Dl_info info;
    char name[64];
    CHECK(dladdr(reinterpret_cast<void *>(function), &info) != 0);
    auto offset = reinterpret_cast<std::uintptr_t>(function) - reinterpret_cast<std::uintptr_t>(info.dli_fbase);
    std::snprintf(name, sizeof name, "the function at %#zx of ", static_cast<std::size_t>(offset));
    return std::string(name) + info.dli_fname;
}

static bool is_right(const way &way, bool catches)
{
    pid_t pid;
    int status;
    *thrower = 0;
    std::string said = child(way, catches, pid, status);
    std::string wanted = "libllcl: " + name_of(way.thrower) + " was left by an exception";
    bool named = said.find(wanted) != std::string::npos;
    bool aborted = WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
    bool there = *thrower != 0 && (*thrower == pid) == (way.thread == CALLER);
    if (named && aborted && there)
        return true;
    std::fprintf(stderr, "%s, mode %s, handlers %s, the program %s: status %#x, thread %d of %d; expected \"%s\" in: %s\n",
                 way.name, way.mode, way.handlers, catches ? "catches" : "does not catch", static_cast<unsigned>(status),
                 *thrower, pid, wanted.c_str(), said.c_str());
    return false;
}

int main()
{
    const char *mode = std::getenv("LLCL_EXECUTION");
    int wrong = 0, tried = 0;
    void *shared = mmap(nullptr, sizeof *thrower, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shared != MAP_FAILED);
    thrower = static_cast<pid_t *>(shared);
    for (const way &way : ways)
        for (bool catches : {false, true})
            if (std::strcmp(way.mode, mode == nullptr ? "auto" : mode) == 0) {
                tried++;
                wrong += !is_right(way, catches);
            }
    CHECK(tried > 0);
    return wrong != 0;
}
