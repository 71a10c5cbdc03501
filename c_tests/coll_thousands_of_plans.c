/* Broken if this fails: a plan costs a region, or a mapping at each other rank, so that a program
 * with thousands of plans runs out of the one or the other.
 * ranks: 2 8
 * modes: auto
 */
#include "coll.h"

#define PLANS 2000u /* LLCL_REGIONS is half of that */

static llcl_coll_t *plans[PLANS];

static uint32_t mappings(void)
{
    FILE *file = fopen("/proc/self/maps", "r");
    uint32_t count = 0;
    int c;
    CHECK(file != NULL);
    while ((c = fgetc(file)) != EOF)
        count += c == '\n';
    fclose(file);
    return count;
}

static void run(llcl_context_t *context)
{
    struct shared input, output;
    llcl_coll_params_t params = {0};
    llcl_team_t *team = coll_world(context);
    uint32_t i, before, ranks = llcl_size(context), me = llcl_rank(context);
    double *in, *out;
    region_make(context, ALLOCATED, 64, &input);
    region_make(context, ALLOCATED, 64, &output);
    in = (double *)(void *)input.bytes;
    out = (double *)(void *)output.bytes;
    params.team = team;
    params.type = LLCL_TYPE_F64;
    params.count = 8;
    params.op = LLCL_OP_ADD;
    params.send = llcl_region_local(input.region, 0);
    params.receive = llcl_region_local(output.region, 0);
    CHECK_OK(llcl_allreduce_init(&params, &plans[0]));
    before = mappings();
    for (i = 1; i < PLANS; i++)
        CHECK_OK(llcl_allreduce_init(&params, &plans[i]));
    printf("rank %u: %u mappings, %u with %u plans\n", me, before, mappings(), PLANS);
    CHECK(mappings() < before + 10 * ranks);
    for (i = 0; i < PLANS; i += PLANS / 10) {
        in[7] = me + i;
        CHECK_OK(llcl_coll_start(plans[i]));
        CHECK_OK(llcl_coll_wait(plans[i], TEST_PATIENCE_NS));
        CHECK(out[7] == (double)ranks * i + ranks * (ranks - 1) / 2);
    }
    CHECK_OK(llcl_team_barrier(team));
    for (i = 0; i < PLANS; i++)
        CHECK_OK(llcl_coll_free(plans[i]));
    fence(context);
    region_drop(&input);
    region_drop(&output);
}

TEST_MAIN(run)
