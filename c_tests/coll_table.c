/* Broken if this fails: rows of the file that LLCL_COLL_TABLE names do not choose the algorithm, a
 * row that does not fit does, a file that is malformed is taken or refused without its name, the
 * line and what was expected; or ranks with different files make a plan.
 * ranks: 3
 * modes: auto
 */
#include "coll.h"

static char file[64];

static void write_table(const char *text)
{
    FILE *to = fopen(file, "w");
    CHECK(to != NULL && fputs(text, to) >= 0);
    CHECK(fclose(to) == 0);
}

static void refused(const char *text, const char *line, const char *expected)
{
    llcl_context_t *context = NULL;
    char place[96];
    write_table(text);
    CHECK_STATUS(llcl_init(NULL, &context), LLCL_ERR_INVALID);
    CHECK(context == NULL);
    snprintf(place, sizeof place, "LLCL_COLL_TABLE, %s:%s", file, line);
    CHECK(strstr(llcl_last_error(), place) != NULL);
    CHECK(strstr(llcl_last_error(), expected) != NULL);
}

static void chosen(const struct coll_case *asked, struct coll_memory *memory, const char *name, int by_table)
{
    struct coll_run run;
    llcl_coll_info_t info = {0};
    size_t used = memory->used;
    coll_prepare(&run, asked, memory, memory);
    CHECK_OK(coll_init(asked->operation, asked->varied, &run.params, &run.plan));
    info.struct_size = sizeof info;
    CHECK_OK(llcl_coll_query(run.plan, &info));
    if (strcmp(info.algorithm, name) != 0)
        fprintf(stderr, "%s: %s, expected %s\n", coll_operations[asked->operation].name, info.algorithm, name);
    CHECK(strcmp(info.algorithm, name) == 0);
    CHECK((strstr(info.reason, "LLCL_COLL_TABLE") != NULL) == by_table);
    coll_rounds(&run, 2);
    coll_drop(&run);
    memory->used = used;
}

static void differing(llcl_team_t *team)
{
    llcl_coll_params_t params = {0};
    llcl_coll_t *plan = NULL;
    params.team = team;
    CHECK_STATUS(llcl_barrier_init(&params, &plan), LLCL_ERR_INVALID);
    CHECK(strstr(llcl_last_error(), "LLCL_COLL_TABLE") != NULL && plan == NULL);
}

static void run(llcl_context_t *context)
{
    struct coll_case asked = {0};
    struct coll_memory memory;
    uint32_t last = llcl_rank(context) == 2;
    CHECK(unlink(file) == 0);
    coll_memory_make(context, ALLOCATED, (size_t)1 << 20, &memory);
    differing(coll_world(context));
    CHECK_OK(llcl_team_split(coll_world(context), last, 0, &asked.team));
    if (last) { /* it has another file */
        fence(context);
        CHECK_OK(llcl_team_free(asked.team));
        region_drop(&memory.shared);
        return;
    }
    asked.type = LLCL_TYPE_I32;
    asked.op = LLCL_OP_ADD;
    asked.operation = ALLREDUCE;
    asked.count = 100; /* 400 bytes */
    chosen(&asked, &memory, "ring", 1);
    asked.count = 101;
    chosen(&asked, &memory, "rabenseifner", 1);
    asked.operation = BROADCAST; /* the row is for one rank */
    chosen(&asked, &memory, "eager", 0);
    asked.algorithm = "chain"; /* a name goes before */
    chosen(&asked, &memory, "chain", 0);
    asked.algorithm = NULL;
    asked.operation = ALLREDUCE; /* ring does not keep the order of ranks, and so the next row counts */
    asked.type = LLCL_TYPE_U64;
    asked.op = LLCL_OP_USER;
    asked.count = 50;
    chosen(&asked, &memory, "rabenseifner", 1);
    fence(context);
    CHECK_OK(llcl_team_free(asked.team));
    region_drop(&memory.shared);
}

int main(void)
{
    llcl_context_t *context = NULL;
    snprintf(file, sizeof file, "/tmp/llcl-table-%ld", (long)getpid());
    CHECK(setenv("LLCL_COLL_TABLE", "/no/such/table", 1) == 0);
    CHECK_STATUS(llcl_init(NULL, &context), LLCL_ERR_INVALID);
    CHECK(strstr(llcl_last_error(), "/no/such/table") != NULL);
    CHECK(setenv("LLCL_COLL_TABLE", file, 1) == 0);
    refused("barrier - - tree\n\nscan 2 eager\n", "3", "expected \"operation ranks bytes algorithm\"");
    refused("scam 2 - eager\n", "1", "expected one of barrier, ");
    refused("# none\nscan two - eager\n", "2", "expected a whole number");
    refused("scan 2 - ring\n", "1", "expected one of auto, ");
    CHECK(getenv("LLCL_RANK") != NULL);
    write_table(atoi(getenv("LLCL_RANK")) == 2 ? "scan 9 9 eager\n"
                                               : "# of this test\nallreduce - 400 ring\nallreduce - - direct several\nallreduce 64 - rabenseifner # else\n"
                                                 "broadcast 1 - direct\n");
    return test_main(run, NULL);
}
