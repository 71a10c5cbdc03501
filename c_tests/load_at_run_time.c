/* Broken if this fails: the library cannot be loaded by a program that is not linked with it,
 * because it wants more of each thread's memory than the loader keeps for such libraries (Python,
 * Julia and plug-ins load it so); or it cannot be loaded, used and closed several times, also from
 * threads; or not from Python, where there is one.
 * kind: alone
 * modes: auto
 */
#define _GNU_SOURCE
#include <llcl.h>

#include <dlfcn.h>
#include <libgen.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* Not that of test.h, which calls the library. */
#define CHECK(it) ((it) ? (void)0 : failed(#it, __LINE__))

static char library[PATH_MAX];

static void failed(const char *what, int line)
{
    fprintf(stderr, "load_at_run_time.c:%d: failed: %s\n", line, what);
    exit(1);
}

/* A world of one, in which a word is written to oneself. */
static void use(void *handle)
{
    llcl_status_t (*init)(const llcl_config_t *, llcl_context_t **);
    llcl_status_t (*finalize)(llcl_context_t *);
    llcl_status_t (*allocate)(llcl_context_t *, size_t, uint32_t, llcl_region_t **);
    llcl_status_t (*write_value)(llcl_context_t *, const llcl_write_value_params_t *);
    llcl_remote_t (*remote)(const llcl_region_t *, uint64_t);
    void *(*address)(const llcl_region_t *);
    llcl_write_value_params_t value = {0};
    llcl_context_t *context = NULL;
    llcl_region_t *region = NULL;
    *(void **)(&init) = dlsym(handle, "llcl_init");
    *(void **)(&finalize) = dlsym(handle, "llcl_finalize");
    *(void **)(&allocate) = dlsym(handle, "llcl_region_allocate");
    *(void **)(&write_value) = dlsym(handle, "llcl_write_value");
    *(void **)(&remote) = dlsym(handle, "llcl_region_remote");
    *(void **)(&address) = dlsym(handle, "llcl_region_address");
    CHECK(init && finalize && allocate && write_value && remote && address);
    CHECK(init(NULL, &context) == LLCL_OK);
    CHECK(allocate(context, 64, 0, &region) == LLCL_OK);
    value.destination = remote(region, 8);
    value.value = 4711;
    value.size = 8;
    CHECK(write_value(context, &value) == LLCL_OK);
    CHECK(((uint64_t *)address(region))[1] == 4711);
    CHECK(finalize(context) == LLCL_OK);
}

static void *load_and_use(void *data)
{
    void *handle = dlopen(library, RTLD_NOW);
    (void)data;
    if (handle == NULL)
        fprintf(stderr, "%s\n", dlerror());
    CHECK(handle != NULL);
    use(handle);
    CHECK(dlclose(handle) == 0);
    return NULL;
}

static void from_python(void)
{
    static const char program[] =
        "import ctypes, sys\n"
        "llcl = ctypes.CDLL(sys.argv[1])\n"
        "context = ctypes.c_void_p()\n"
        "assert llcl.llcl_init(None, ctypes.byref(context)) == 0\n"
        "assert llcl.llcl_size(context) == 1\n"
        "assert llcl.llcl_finalize(context) == 0\n";
    int state = -1;
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        execlp("python3", "python3", "-c", program, library, (char *)NULL);
        _exit(99);
    }
    CHECK(waitpid(child, &state, 0) == child);
    if (WIFEXITED(state) && WEXITSTATUS(state) == 99)
        fprintf(stderr, "there is no python3: only C programs have loaded the library\n");
    else
        CHECK(state == 0);
}

int main(void)
{
    char self[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    pthread_t thread;
    int round;
    CHECK(length > 0);
    self[length] = 0;
    CHECK(snprintf(library, sizeof library, "%.3000s/../lib/libllcl.so.0", dirname(self)) > 0);
    from_python();
    for (round = 0; round < 3; round++) {
        load_and_use(NULL);
        CHECK(pthread_create(&thread, NULL, load_and_use, NULL) == 0);
        CHECK(pthread_join(thread, NULL) == 0);
    }
    return 0;
}
