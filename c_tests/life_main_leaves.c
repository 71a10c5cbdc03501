/* Broken if this fails: a rank whose first thread has left by pthread_exit, while others go on,
 * counts as dead, or its memory cannot be reached any more, whether it was contacted before or is
 * contacted for the first time.
 * ranks: 2 3
 * cma: on off
 */
#include "shared.h"

static pthread_t first;
static uint64_t leave;

/* The kernel knows the first thread as a zombie, and the process as what it was. */
static void wait_for_zombie(void)
{
    char path[64], line[512];
    int64_t end = now_ns() + 5000000000;
    const char *state;
    do {
        FILE *file;
        CHECK(now_ns() < end);
        snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)getpid());
        file = fopen(path, "r");
        CHECK(file && fgets(line, sizeof line, file));
        fclose(file);
        state = strrchr(line, ')');
    } while (!state || state[2] != 'Z');
}

static void read_one(llcl_context_t *context, const struct shared *shared, const struct shared *mine, uint32_t peer)
{
    llcl_read_params_t read = {0};
    read.peer = peer;
    read.source = remote_at(shared, peer, 0);
    read.destination = llcl_region_local(mine->region, 0);
    read.size = 8;
    CHECK_OK(llcl_read(context, &read));
    CHECK_EQUAL(mine->words[0], 1000u + peer);
    CHECK_OK(llcl_peer_alive(context, peer));
}

static void run(llcl_context_t *context)
{
    struct shared registered, mine;
    uint32_t peer, size = llcl_size(context);
    share(context, REGISTERED, 4096, &registered);
    region_make(context, ALLOCATED, 64, &mine);
    registered.words[0] = 1000u + llcl_rank(context);
    fence(context);
    read_one(context, &registered, &mine, (llcl_rank(context) + 1) % size);
    word_set(&leave, 1);
    CHECK(pthread_join(first, NULL) == 0);
    wait_for_zombie();
    fence(context);
    for (peer = 0; peer < size; peer++)
        read_one(context, &registered, &mine, peer);
    share_end(context, &registered);
    region_drop(&mine);
}

static void *all(void *unused)
{
    test_main(run, NULL);
    return unused;
}

int main(void)
{
    pthread_t second;
    first = pthread_self();
    CHECK(pthread_create(&second, NULL, all, NULL) == 0);
    CHECK(pthread_detach(second) == 0);
    while (!word_get(&leave))
        usleep(100);
    pthread_exit(NULL);
}
