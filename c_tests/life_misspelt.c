/* A variable LLCL_* that the library does not know is named once, with the one that was meant; an
 * empty one counts as unset. If this were broken, a setting would be ignored silently, or an empty
 * variable would be fatal.
 * kind: alone
 * modes: auto */
#include "job.h"

static int times(const char *in, const char *what)
{
    int count = 0;
    for (; (in = strstr(in, what)) != NULL; in++)
        count++;
    return count;
}

int main(int argc, char **argv)
{
    struct end end;
    if (argc > 1) {
        llcl_context_t *context;
        llcl_config_t config;
        llcl_world_t *world;
        CHECK_OK(llcl_init(NULL, &context));
        CHECK_OK(llcl_finalize(context));
        CHECK_OK(llcl_world_create(1, &world));
        CHECK_OK(llcl_config_default(&config));
        config.world = world;
        CHECK_OK(llcl_init(&config, &context));
        CHECK_OK(llcl_finalize(context));
        CHECK_OK(llcl_world_free(world));
        return 0;
    }
    CHECK(setenv("LLCL_EXECUTON", "offload", 1) == 0 && setenv("LLCL_QUEUE_ENTRIES", "", 1) == 0);
    end = job("-n 3", argv[0], "rank", "");
    EXPECT(end, 0, "libllcl: LLCL_EXECUTON is no variable of this library and is ignored; did you mean "
                   "LLCL_EXECUTION?");
    CHECK_EQUAL(times(end.said, "libllcl: "), 1);
    return 0;
}
