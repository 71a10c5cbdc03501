/* Broken if this fails: llcl_coll_query says something else than what was asked for or is so: the
 * algorithm, forced by a parameter or by the environment, the engine, the rounds; or the algorithms
 * that these tests know are not those of the library.
 * ranks: 2 3
 * engines: offload thread
 * threads: yes
 */
#include "coll.h"

#include <ctype.h>

static struct coll_case plain(llcl_team_t *team, int operation)
{
    struct coll_case asked = {0};
    asked.team = team;
    asked.operation = operation;
    asked.count = 50;
    asked.type = LLCL_TYPE_U32;
    asked.op = LLCL_OP_ADD;
    return asked;
}

/* One plan; what it says of itself, the algorithm's name if that is given. Answers 0 if the
 * algorithm that was asked for does not fit. */
static int one(const struct coll_case *asked, struct coll_memory *memory, const char *name,
               llcl_coll_info_t *info)
{
    struct coll_run run;
    llcl_status_t status;
    memory->used = 0;
    status = coll_make(&run, asked, memory, memory);
    if (status == LLCL_ERR_UNSUPPORTED && asked->algorithm) {
        coll_forget(&run);
        return 0;
    }
    CHECK_OK(status);
    *info = coll_info(run.plan);
    CHECK_EQUAL(info->rounds, 0);
    CHECK(info->queues >= 1 && info->queues <= 8);
    CHECK(info->steps >= 1 && info->steps < 1000);
    CHECK(info->memory > 0 && info->memory < 1 << 20);
    CHECK(info->algorithm && info->reason && strlen(info->reason) > 5);
    CHECK(!name || strcmp(info->algorithm, name) == 0);
    CHECK(info->any_rank <= 1);
    if (info->engine == LLCL_ENGINE_THREAD)
        CHECK_EQUAL(info->any_rank, 0);
    coll_rounds(&run, 2);
    CHECK_EQUAL(coll_info(run.plan).rounds, 2);
    coll_drop(&run);
    return 1;
}

/* Whether the library's list of an operation's algorithms, in its answer to a name that is none,
 * has exactly the names of the table: each of them, and as many. */
static void check_names(llcl_team_t *team, struct coll_memory *memory, int operation)
{
    struct coll_case asked = plain(team, operation);
    const char *const *name = coll_operations[operation].algorithms;
    char text[1024], *at;
    int known = 0, listed = 0;
    struct coll_run run;
    memory->used = 0;
    asked.algorithm = "wrong-name";
    CHECK_STATUS(coll_make(&run, &asked, memory, memory), LLCL_ERR_INVALID);
    coll_forget(&run);
    snprintf(text, sizeof text, "%s", llcl_last_error());
    for (; *name; name++, known++) {
        if (!strstr(text, *name))
            fprintf(stderr, "%s has no %s\n", coll_operations[operation].name, *name);
        CHECK(strstr(text, *name) != NULL);
    }
    /* "expected one of auto, NAME, NAME": notices a name that the table of these tests lacks. */
    at = strstr(text, "expected one of auto");
    CHECK(at != NULL);
    while ((at = strstr(at, ", ")) != NULL) {
        at++;
        listed++;
    }
    CHECK_EQUAL(known, listed);
}

static void run(llcl_context_t *context)
{
    static const uint32_t engines[] = {LLCL_ENGINE_OFFLOAD, LLCL_ENGINE_THREAD};
    llcl_team_t *team = coll_world(context);
    struct coll_memory memory, registered;
    llcl_coll_info_t info;
    int operation, tried, ran, posted = coll_is_posted(context);
    size_t i;
    coll_memory_make(context, ALLOCATED, 1 << 16, &memory);
    coll_memory_make(context, REGISTERED, 1 << 20, &registered);
    for (operation = 0; operation < OPERATIONS; operation++) {
        struct coll_case asked = plain(team, operation);
        check_names(team, &memory, operation);
        /* By the environment: see main. */
        CHECK(one(&asked, &memory, operation == BROADCAST ? "chain" : operation == BARRIER ? "tree" : NULL,
                  &info));
        CHECK_EQUAL(info.engine, coll_engine_is("thread") ? LLCL_ENGINE_THREAD : LLCL_ENGINE_OFFLOAD);
        /* Of several nodes, ranks that have neighbours on another one run their steps
         * themselves. */
        CHECK(info.any_rank == (info.engine == LLCL_ENGINE_OFFLOAD) || (posted && !info.any_rank));
        for (i = 0; i < 2; i++) {
            asked.engine = engines[i];
            CHECK(one(&asked, &memory, NULL, &info));
            CHECK_EQUAL(info.engine, engines[i]);
        }
        asked.engine = LLCL_ENGINE_FROM_ENVIRONMENT;
        for (ran = 0, tried = 0; coll_operations[operation].algorithms[tried]; tried++) {
            asked.algorithm = coll_operations[operation].algorithms[tried];
            ran += one(&asked, &memory, asked.algorithm, &info);
        }
        CHECK(ran >= 2);
        /* Memory that peers do not map: of what is small the plan has a copy; else only this rank's
         * own threads can work. */
        asked.algorithm = NULL;
        if (operation != BARRIER) {
            CHECK(one(&asked, &registered, NULL, &info));
            CHECK(info.any_rank == (info.engine == LLCL_ENGINE_OFFLOAD) || (posted && !info.any_rank));
            asked.count = 40000 / coll_width(asked.type);
            CHECK(one(&asked, &registered, NULL, &info));
            CHECK_EQUAL(info.any_rank, 0);
        }
    }
    fence(context);
    region_drop(&memory.shared);
    region_drop(&registered.shared);
}

int main(void)
{
    coll_default("LLCL_COLL_BROADCAST", "chain");
    coll_default("LLCL_COLL_BARRIER", "tree");
    return test_main(run, NULL);
}
