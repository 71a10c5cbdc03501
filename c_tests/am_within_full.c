/* Broken if this fails: llcl_am_within with a LONG message, while the lane holds as many messages
 * to the peer as it may, looks again and again instead of sleeping, or does not end with its
 * time-out.
 * ranks: 2
 * modes: auto direct
 */
#include "am.h"
#include "stopped.h"

#include <sys/resource.h>

#define SIZE 4096
#define TIMEOUT_MS 400
/* A thread that naps is busy for some 65 ms, one that looks again and again for more than 100. On a
 * node it naps. */
#define MOST_BUSY_MS 50
#define MOST_BUSY_ON_NODE_MS 250

static uint64_t handled;

static void take(llcl_am_t *message, void *data)
{
    (void)message;
    (void)data;
    word_add(&handled, 1);
}

static int64_t busy_ns(void)
{
    struct rusage usage;
    CHECK(getrusage(RUSAGE_THREAD, &usage) == 0);
    return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * INT64_C(1000000000) +
           (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * INT64_C(1000);
}

static uint64_t send_all(llcl_context_t *context, const struct shared *target, struct shared *mine)
{
    llcl_am_params_t am = am_to(1, 0, NULL, 0);
    llcl_peer_info_t info = LLCL_PEER_INFO_INIT;
    pid_t stopped;
    uint64_t sent = 0;
    int64_t begin, busy, most, refused = 0;
    am.kind = LLCL_AM_LONG;
    am.source = llcl_region_local(mine->region, 0);
    am.destination = remote_at(target, 1, 0);
    am.payload_size = SIZE;
    POST(llcl_try_am_async(context, &am));
    sent = 1;
    CHECK_OK(llcl_query_peer(context, 1, &info));
    most = info.transport == LLCL_TRANSPORT_WIRE ? MOST_BUSY_MS : MOST_BUSY_ON_NODE_MS;
    stopped = peer_stop(context, 1);
    while (refused < 100) {
        llcl_status_t status = llcl_try_am_async(context, &am);
        CHECK(status >= 0);
        sent += status == LLCL_OK;
        refused = status == LLCL_OK ? 0 : refused + 1;
        if (refused)
            usleep(1000);
        CHECK(sent < 100000);
    }
    begin = now_ns();
    busy = busy_ns();
    CHECK_STATUS(llcl_am_within(context, &am, TIMEOUT_MS * INT64_C(1000000)), LLCL_ERR_TIMEOUT);
    busy = busy_ns() - busy;
    CHECK(now_ns() - begin >= TIMEOUT_MS * INT64_C(1000000));
    printf("%llu messages, then %lld us of processor time in a call of %d ms\n",
           (unsigned long long)sent, (long long)busy / 1000, TIMEOUT_MS);
    CHECK(busy < most * INT64_C(1000000));
    CHECK(kill(stopped, SIGCONT) == 0);
    return sent;
}

static void run(llcl_context_t *context)
{
    struct shared target, mine;
    uint64_t sent = 0, all[2];
    share(context, REGISTERED, SIZE, &target);
    region_make(context, REGISTERED, SIZE, &mine);
    am_register(context, 0, take, NULL);
    fence(context);
    if (llcl_rank(context) == 0)
        sent = send_all(context, &target, &mine);
    CHECK_OK(llcl_allgather_bytes(context, &sent, sizeof sent, all));
    if (llcl_rank(context) == 1)
        AM_AWAIT(context, &handled, all[0]);
    fence(context);
    CHECK_EQUAL(handled, llcl_rank(context) == 1 ? all[0] : 0);
    region_drop(&mine);
    share_end(context, &target);
}

TEST_MAIN(run)
