/* Broken if this fails: memory of freed regions that a rank has used which has died since is never
 * used again; or llcl_region_allocate, which waits for that rank when it dies, waits on until its
 * time is over; or the living rank that has used it too is not asked to let go of it, so that its
 * late write reaches another region.
 * kind: alone
 * modes: auto offload
 * timeout: 40
 */
#include "job.h"
#include "stopped.h"

#define MIB (1u << 20)
/* Room for what a rank needs itself, and for a few regions. */
#define LIMIT (32u * MIB)
#define MOST 32u

enum { OWNER, USER, VICTIM, RANKS };

static uint32_t fill(llcl_context_t *context, llcl_region_t **regions, llcl_status_t *status)
{
    uint32_t count = 0;
    while (count < MOST && (*status = llcl_region_allocate(context, MIB, 0, &regions[count])) == LLCL_OK)
        count++;
    return count;
}

static void free_all(llcl_region_t **regions, uint32_t count)
{
    while (count-- > 0)
        CHECK_OK(llcl_region_free(regions[count]));
}

static void tell(llcl_context_t *context, const struct shared *shared, uint32_t peer,
                 llcl_region_t **regions, uint32_t count)
{
    llcl_write_params_t write = LLCL_WRITE_PARAMS_INIT;
    llcl_remote_t remote[MOST] = {{0, 0}};
    uint32_t i;
    for (i = 0; i < count; i++)
        remote[i] = llcl_region_remote(regions[i], 0);
    write.peer = peer;
    write.size = sizeof remote;
    write.source = llcl_local_address(remote);
    write.destination = remote_at(shared, peer, 0);
    CHECK_OK(llcl_write(context, &write));
}

static void *kill_now(void *process)
{
    CHECK(kill(*(pid_t *)process, SIGKILL) == 0);
    return NULL;
}

/* Both others have used the regions; one of them stands still, and so can let go of nothing until
 * it dies. */
static void owner(llcl_context_t *context, const struct shared *shared)
{
    llcl_region_t *regions[MOST];
    llcl_status_t status;
    uint32_t count = fill(context, regions, &status), again, i;
    int64_t end;
    pthread_t killer;
    pid_t victim;
    CHECK(count > 4 && count < MOST);
    CHECK_STATUS(status, LLCL_ERR_NO_MEMORY);
    tell(context, shared, USER, regions, count);
    tell(context, shared, VICTIM, regions, count);
    fence(context);
    fence(context);
    victim = peer_stop(context, VICTIM);
    free_all(regions, count);
    CHECK(pthread_create(&killer, NULL, kill_now, &victim) == 0);
    end = now_ns() + TEST_PATIENCE_NS;
    /* Where the kernel takes long to tell of the death an allocation may give up before. */
    while ((again = fill(context, regions, &status)) < count && status == LLCL_ERR_TIMEOUT && now_ns() < end)
        free_all(regions, again);
    CHECK(pthread_join(killer, NULL) == 0);
    CHECK_EQUAL(again, count);
    CHECK_STATUS(status, LLCL_ERR_NO_MEMORY);
    /* The living user tries the old addresses once more, which must change none of these. */
    word_set(&shared->words[MOST * 2], 1);
    CHECK_OK(llcl_wake(context, OWNER));
    CHECK_OK(llcl_wait_word_from(context, &shared->words[MOST * 2], 2, -1, USER));
    for (i = 0; i < count; i++) {
        CHECK_EQUAL(*(uint64_t *)llcl_region_address(regions[i]), 0);
        CHECK_EQUAL(*((uint64_t *)llcl_region_address(regions[i]) + 1), 0);
    }
    free_all(regions, count);
}

static void put_all(llcl_context_t *context, const llcl_remote_t *remote, llcl_status_t expected)
{
    llcl_write_value_params_t value = LLCL_WRITE_VALUE_PARAMS_INIT;
    uint32_t i;
    value.value = value.size = 8;
    for (i = 0; i < MOST && remote[i].key != 0; i++) {
        value.destination = llcl_at(remote[i], 8 * (llcl_rank(context) - 1));
        CHECK_STATUS(llcl_write_value(context, &value), expected);
    }
    CHECK(i > 4);
}

static void user(llcl_context_t *context, const struct shared *shared)
{
    const llcl_remote_t *remote = (const llcl_remote_t *)(const void *)shared->bytes;
    llcl_fetch_add_params_t add = LLCL_FETCH_ADD_PARAMS_INIT;
    uint64_t *old = NULL, was = 0;
    fence(context);
    put_all(context, remote, LLCL_OK);
    old = llcl_remote_pointer(context, OWNER, remote[0], 8);
    CHECK(old != NULL);
    fence(context);
    if (llcl_rank(context) == VICTIM) {
        sleep(60);
        test_fail(__FILE__, __LINE__, "the rank lives");
    }
    add.peer = OWNER;
    add.target = remote_at(shared, OWNER, 8 * MOST * 2);
    add.result = &was;
    do
        CHECK_OK(llcl_fetch_add(context, &add));
    while (was == 0);
    put_all(context, remote, LLCL_ERR_KEY);
    *old = 9;
    add.operand = 1;
    CHECK_OK(llcl_fetch_add(context, &add));
}

static void run(llcl_context_t *context)
{
    struct shared shared;
    test_limit_files(LIMIT);
    share(context, ALLOCATED, 4096, &shared);
    (llcl_rank(context) == OWNER ? owner : user)(context, &shared);
    region_drop(&shared);
    printf("survivor\n");
}

int main(int argc, char **argv)
{
    struct end end;
    if (argc > 1)
        return test_main(run, NULL);
    end = job("--keep-going -n 3", argv[0], "rank", "");
    EXPECT(end, 128 + SIGKILL, "survivor\nsurvivor\n");
    return 0;
}
