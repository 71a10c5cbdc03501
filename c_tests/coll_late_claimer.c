/* Broken if this fails: the failure of a round, after a rank was killed, is reported while another,
 * living rank is in the middle of a step that may touch this rank's buffers; or it is never
 * reported, although that rank has ended the step. Started alone it drives the ranks.
 * kind: alone
 * modes: auto
 * timeout: 40
 */
#include "coll.h"
#include "job.h"

#include <signal.h>

enum { INSIDE, GO };

/* Words of rank 0, as this process sees them. */
static uint64_t *words;
static uint32_t me;

static void stays(const void *left, const void *right, void *result, uint64_t count, void *data)
{
    coll_user(left, right, result, count, data);
    if (me == 1) {
        word_set(&words[INSIDE], 1);
        AWAIT(&words[GO], 1);
    }
}

static void run(llcl_context_t *context)
{
    struct shared control, buffers;
    llcl_coll_params_t params = {0};
    llcl_coll_t *plan;
    uint64_t calls = 0;
    int64_t begin;
    me = llcl_rank(context);
    share(context, ALLOCATED, 64, &control);
    share(context, ALLOCATED, 4096, &buffers);
    words = llcl_remote_pointer(context, 0, control.remote[0], 16);
    CHECK(words != NULL);
    params.team = coll_world(context);
    params.send = llcl_region_local(buffers.region, 0);
    params.receive = llcl_region_local(buffers.region, 2048);
    params.count = 4;
    params.type = LLCL_TYPE_U64;
    params.op = LLCL_OP_USER;
    params.function = stays;
    params.function_data = &calls;
    params.engine = LLCL_ENGINE_THREAD;
    CHECK_OK(llcl_allreduce_init(&params, &plan));
    fence(context);
    if (me < 2)
        CHECK_OK(llcl_coll_start(plan));
    AWAIT(&words[INSIDE], 1);
    if (me >= 2) /* without having started the round */
        raise(SIGKILL);
    if (me == 0) {
        begin = now_ns();
        while (now_ns() - begin < 1500000000)
            CHECK_STATUS(llcl_coll_wait(plan, 100000000), LLCL_ERR_TIMEOUT);
        CHECK_STATUS(llcl_coll_free(plan), LLCL_ERR_STATE);
        word_set(&words[GO], 1);
    }
    CHECK_STATUS(llcl_coll_wait(plan, TEST_PATIENCE_NS), LLCL_ERR_PEER_DEAD);
    CHECK_OK(llcl_coll_free(plan));
    printf("rank %u was told\n", me);
    fflush(stdout);
}

int main(int count, char **arguments)
{
    struct end end;
    (void)count;
    if (getenv("LLCL_RANK"))
        return test_main(run, NULL);
    CHECK(setenv("LLCL_COLL_ALLREDUCE", "recursive_doubling", 1) == 0);
    end = job("--keep-going -n 4", arguments[0], "", "");
    if (!strstr(end.said, "rank 0 was told") || !strstr(end.said, "rank 1 was told")) {
        fprintf(stderr, "%s", end.said);
        test_fail(__FILE__, __LINE__, "what the survivors said");
    }
    return 0;
}
