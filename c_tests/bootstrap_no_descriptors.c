/* Broken if this fails: llcl_init hangs at some ranks that another launcher has started when the
 * process of rank 0, which has their hub, lacks descriptors.
 * kind: alone
 * modes: auto
 * timeout: 60
 */
#include "own_start.h"
#include <fcntl.h>
#include <sys/resource.h>

static unsigned room;

/* Rank 0 has `room` descriptors. Whoever hangs is killed by the alarm. */
static void with_little_room(struct own_rank *me)
{
    llcl_context_t *context = NULL;
    llcl_status_t status;
    alarm(20);
    if (me->rank == 0) {
        struct rlimit limit;
        int next = open("/dev/null", O_RDONLY);
        CHECK(next >= 0 && close(next) == 0 && getrlimit(RLIMIT_NOFILE, &limit) == 0);
        limit.rlim_cur = (rlim_t)next + room;
        CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    }
    status = own_init(me, NULL, &context);
    if (status == LLCL_OK) {
        CHECK_OK(llcl_finalize(context));
        test_end(1);
    }
    CHECK(status == LLCL_ERR_SYSTEM || status == LLCL_ERR_NO_MEMORY || status == LLCL_ERR_STATE);
    CHECK(strlen(llcl_last_error()) > 0);
}

int main(void)
{
    int codes[OWN_RANKS], all = 0;
    for (room = 0; !all; room++) {
        CHECK(room < 100);
        own_ranks(OWN_RANKS, with_little_room, codes);
        CHECK(codes[0] == 0 || codes[0] == 1);
        all = codes[0] == 1;
        CHECK(codes[1] == codes[0] && codes[2] == codes[0] && codes[3] == codes[0]);
    }
    CHECK(room > 12);
    return 0;
}
