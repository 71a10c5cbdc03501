/* Broken if this fails: ranks that another launcher has started do not become one world by
 * llcl_config_t.bootstrap; a rank that cannot join leaves others waiting; a stranger gets in, or
 * keeps ranks out; wrong parameters are taken; deaths (also of a rank whose child holds its
 * connections) and llcl_abort reach nobody there.
 * kind: alone
 * modes: auto offload
 * timeout: 60
 */
#include "own_start.h"
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>

/* Every rank writes to every other, all meet, and all leave. */
static void one_world(struct own_rank *me)
{
    llcl_context_t *context = NULL;
    llcl_region_t *region = NULL;
    llcl_remote_t remotes[OWN_RANKS];
    llcl_write_value_params_t out = LLCL_WRITE_VALUE_PARAMS_INIT;
    uint32_t size = me->start->ranks, r;
    uint64_t *words;
    CHECK_OK(own_init(me, NULL, &context));
    CHECK_EQUAL(me->rounds, 3);
    CHECK_EQUAL(llcl_rank(context), me->rank);
    CHECK_EQUAL(llcl_size(context), size);
    CHECK_OK(llcl_region_allocate_shared(context, 8 * OWN_RANKS, &region, remotes));
    words = llcl_region_address(region);
    for (r = 0; r < size; r++) {
        out.peer = r;
        out.destination = llcl_at(remotes[r], 8 * me->rank);
        out.value = 1 + me->rank;
        out.size = 8;
        CHECK_OK(llcl_write_value(context, &out));
    }
    for (r = 0; r < size; r++) {
        CHECK_OK(llcl_wait_word(context, &words[r], 1, TEST_PATIENCE_NS));
        CHECK_EQUAL(words[r], 1 + r);
    }
    CHECK_OK(llcl_finalize(context));
}

/* One whose own start fails refuses all. */
static void refused(struct own_rank *me)
{
    llcl_context_t *context = NULL;
    int fails = me->rank == me->start->ranks - 1;
    me->refuse = fails ? 1 : 0;
    CHECK_STATUS(own_init(me, NULL, &context), LLCL_ERR_SYSTEM);
    CHECK(context == NULL && strlen(llcl_last_error()) > 0);
    if (fails) {
        /* The others are in the second round. */
        unsigned char failed[4] = {1, 0, 0, 0}, all[4 * OWN_RANKS];
        me->refuse = 0;
        CHECK(own_allgather(me, failed, sizeof failed, all) == 0);
    }
}

#define BOTH "world and bootstrap are set"

/* One whose own settings are refused refuses all, and says why. */
static void refused_by_itself(struct own_rank *me, const char *variable, int slots, int place, const char *why)
{
    llcl_world_t *world = NULL;
    llcl_context_t *context = NULL;
    llcl_bootstrap_t bootstrap = LLCL_BOOTSTRAP_INIT;
    llcl_config_t config = LLCL_CONFIG_INIT;
    int fails = me->rank == 1;
    bootstrap.rank = me->rank;
    bootstrap.size = me->start->ranks;
    bootstrap.allgather = own_allgather;
    bootstrap.data = me;
    config.bootstrap = &bootstrap;
    if (fails) {
        config.am_slots = (uint32_t)slots;
        if (strcmp(why, BOTH) == 0) {
            CHECK_OK(llcl_world_create(1, &world));
            config.world = world;
        }
        CHECK(variable == NULL || setenv(variable, "/wrong", 1) == 0);
    }
    CHECK_STATUS(llcl_init(&config, fails && !place ? NULL : &context), fails ? LLCL_ERR_INVALID : LLCL_ERR_SYSTEM);
    CHECK(context == NULL && strstr(llcl_last_error(), fails ? why : "rank 1 cannot join") != NULL);
    CHECK_EQUAL(me->rounds, 1);
    if (world != NULL)
        CHECK_OK(llcl_world_free(world));
}

static void a_bad_field(struct own_rank *me)
{
    refused_by_itself(me, NULL, 3, 1, "am_slots");
}

static void a_bad_variable(struct own_rank *me)
{
    refused_by_itself(me, "LLCL_AM_SLOTS", 0, 1, "LLCL_AM_SLOTS");
}

/* One that fails when it has joined refuses all, in a second context, too; the first one goes on.
 * Rank 0 has the machine's hub. */
static void refused_late(struct own_rank *me, uint32_t failing)
{
    llcl_context_t *context = NULL, *other = NULL;
    int fails = me->rank == failing, turn;
    char sentence[32];
    snprintf(sentence, sizeof sentence, "rank %u cannot join", (unsigned)failing);
    for (turn = 0; turn < 2; turn++) {
        CHECK(!fails || setenv("LLCL_PROGRESS_CPUS", "none", 1) == 0);
        if (turn == 0)
            CHECK_STATUS(own_init(me, NULL, &context), fails ? LLCL_ERR_INVALID : LLCL_ERR_SYSTEM);
        else
            CHECK_STATUS(llcl_context_duplicate(context, NULL, &other), fails ? LLCL_ERR_INVALID : LLCL_ERR_SYSTEM);
        CHECK(strstr(llcl_last_error(), fails ? "LLCL_PROGRESS_CPUS" : sentence) != NULL);
        CHECK_EQUAL(me->rounds, turn == 0 ? 3 : 6);
        CHECK(unsetenv("LLCL_PROGRESS_CPUS") == 0);
        if (turn == 0)
            CHECK_OK(own_init(me, NULL, &context));
    }
    CHECK(other == NULL);
    CHECK_OK(llcl_barrier(context));
    CHECK_OK(llcl_context_duplicate(context, NULL, &other));
    CHECK_OK(llcl_barrier(other));
    CHECK_OK(llcl_finalize(other));
    CHECK_OK(llcl_finalize(context));
}

static void another_refused_late(struct own_rank *me) { refused_late(me, 1); }

static void host_refused_late(struct own_rank *me) { refused_late(me, 0); }

static void no_file_of_choices(struct own_rank *me)
{
    refused_by_itself(me, "LLCL_COLL_TABLE", 0, 1, "/wrong");
}

static void two_places(struct own_rank *me)
{
    refused_by_itself(me, NULL, 0, 1, BOTH);
}

static void no_place(struct own_rank *me)
{
    refused_by_itself(me, NULL, 0, 0, "context is NULL");
}

static void twice_the_same_number(struct own_rank *me)
{
    llcl_context_t *context = NULL;
    llcl_bootstrap_t bootstrap = LLCL_BOOTSTRAP_INIT;
    llcl_config_t config = LLCL_CONFIG_INIT;
    bootstrap.size = me->start->ranks;
    bootstrap.allgather = own_allgather;
    bootstrap.data = me;
    config.bootstrap = &bootstrap;
    CHECK_STATUS(llcl_init(&config, &context), LLCL_ERR_INVALID);
    CHECK(strstr(llcl_last_error(), "rank 0") != NULL);
}

/* The address under which rank 0 listens, as anybody can see it who looks: it is the one of which
 * `told` speaks. */
static socklen_t listening(struct sockaddr_un *address, const unsigned char *told, size_t size,
                           const unsigned char **secret)
{
    char line[512];
    FILE *file = fopen("/proc/net/unix", "r");
    socklen_t length = 0;
    CHECK(file != NULL);
    while (fgets(line, sizeof line, file)) {
        char *name = strstr(line, "@llcl-");
        unsigned char key[16];
        size_t i;
        unsigned byte;
        for (i = 0; name && i < sizeof key; i++)
            key[i] = sscanf(name + 6 + 2 * i, "%2x", &byte) == 1 ? (unsigned char)byte : 0;
        for (i = 0; name && i + sizeof key <= size; i++) {
            if (memcmp(told + i, key, sizeof key) != 0)
                continue;
            *secret = told + i + sizeof key; /* lies behind the name */
            memset(address, 0, sizeof *address);
            address->sun_family = AF_UNIX;
            memcpy(address->sun_path + 1, name + 1, 5 + 2 * sizeof key);
            length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 6 + 2 * sizeof key);
        }
    }
    fclose(file);
    return length;
}

/* Comes as a process of `user` and says it is rank 2, with a secret, or nothing. It finds the
 * connection closed. */
static void knock(uid_t user, const struct sockaddr_un *address, socklen_t length, const unsigned char *secret)
{
    int state = 0;
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        char packet[20] = {0}, answer;
        int end = socket(AF_UNIX, SOCK_SEQPACKET, 0);
        if (secret)
            memcpy(packet, secret, 16);
        packet[16] = 2;
        if (user != geteuid() && setuid(user) != 0)
            _exit(2);
        if (connect(end, (const struct sockaddr *)address, length) != 0)
            _exit(3);
        if (!secret)
            _exit(0);
        (void)!send(end, packet, sizeof packet, MSG_NOSIGNAL);
        _exit(recv(end, &answer, 1, 0) <= 0 ? 0 : 4);
    }
    CHECK(waitpid(child, &state, 0) == child);
    CHECK(WIFEXITED(state));
    CHECK_EQUAL(WEXITSTATUS(state), 0);
}

/* At the end of the first round rank 1 has not connected, so the door is open. */
static void knock_at_the_door(struct own_rank *me, unsigned round, const void *all, size_t size)
{
    struct sockaddr_un address;
    const unsigned char *secret = NULL, wrong[16] = {0};
    socklen_t length;
    if (round != 1 || me->rank != 1)
        return;
    length = listening(&address, all, size, &secret);
    CHECK(length > 0);
    knock(geteuid(), &address, length, NULL);
    knock(geteuid(), &address, length, wrong);
    if (geteuid() == 0)
        knock(65534, &address, length, secret);
}

static void strangers(struct own_rank *me)
{
    me->after = knock_at_the_door;
    one_world(me);
}

/* A child that holds the connections of its parent until all survivors have noticed the death. */
static void fork_holder(struct own_start *start)
{
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        (void)word_reaches(&start->noticed, start->ranks - 1, TEST_PATIENCE_NS);
        _exit(0);
    }
}

/* `dying` dies. Rank 0 has the machine's hub. */
static void a_death(struct own_rank *me, uint32_t dying, int held)
{
    llcl_context_t *context = NULL;
    int64_t end = now_ns() + TEST_PATIENCE_NS / 2;
    CHECK_OK(own_init(me, NULL, &context));
    CHECK_OK(llcl_barrier(context));
    if (me->rank == dying) {
        if (held)
            fork_holder(me->start);
        raise(SIGKILL);
    }
    while (llcl_peer_alive(context, dying) == LLCL_OK) {
        CHECK(now_ns() < end);
        sched_yield();
    }
    CHECK_STATUS(llcl_allgather_bytes(context, NULL, 0, NULL), dying == 0 ? LLCL_ERR_SYSTEM : LLCL_ERR_PEER_DEAD);
    CHECK_STATUS(llcl_finalize(context), dying == 0 ? LLCL_ERR_SYSTEM : LLCL_OK);
    word_add(&me->start->noticed, 1);
}

static void death_of_the_host(struct own_rank *me) { a_death(me, 0, 0); }
static void death_of_another(struct own_rank *me) { a_death(me, 1, 0); }
static void death_of_the_host_with_a_child(struct own_rank *me) { a_death(me, 0, 1); }
static void death_of_another_with_a_child(struct own_rank *me) { a_death(me, 1, 1); }

static void one_aborts(struct own_rank *me)
{
    llcl_context_t *context = NULL;
    CHECK_OK(own_init(me, NULL, &context));
    CHECK_OK(llcl_barrier(context));
    if (me->rank == 2)
        llcl_abort(context, 9);
    sleep_ms(60000);
}

static void own_abort(void *data, int32_t code)
{
    struct own_rank *me = data;
    CHECK(me->rank == 1 && code == 7);
    test_end(77);
}

static void one_aborts_by_the_launcher(struct own_rank *me)
{
    llcl_context_t *context = NULL;
    CHECK_OK(own_init(me, own_abort, &context));
    CHECK_OK(llcl_barrier(context));
    if (me->rank == 1)
        llcl_abort(context, 7);
    CHECK_OK(llcl_finalize(context));
}

static void say_farewell(void)
{
    /* Exit handlers run, and are not cut short by what ends the others. */
    sleep_ms(50);
    _exit(12);
}

static void one_exits(struct own_rank *me)
{
    llcl_context_t *context = NULL;
    CHECK_OK(own_init(me, NULL, &context));
    if (me->rank == 1)
        CHECK(signal(SIGTERM, SIG_IGN) != SIG_ERR);
    CHECK_OK(llcl_barrier(context));
    if (me->rank == 2 && atexit(say_farewell) == 0)
        llcl_exit(context, 11, 500);
    sleep_ms(60000);
}

static void one_exits_slowly_and_one_aborts(struct own_rank *me)
{
    llcl_context_t *context = NULL;
    CHECK_OK(own_init(me, NULL, &context));
    CHECK(signal(SIGTERM, SIG_IGN) != SIG_ERR);
    CHECK_OK(llcl_barrier(context));
    if (me->rank == 2)
        llcl_exit(context, 11, 60000);
    sleep_ms(100);
    if (me->rank == 1)
        llcl_abort(context, 9);
    sleep_ms(60000);
}

static int32_t not_called(void *data, const void *mine, size_t size, void *all)
{
    (void)data, (void)mine, (void)size, (void)all;
    test_end(1);
    return 0;
}

static void wrong_parameters(void)
{
    llcl_bootstrap_t good = LLCL_BOOTSTRAP_INIT, bad;
    llcl_config_t config = LLCL_CONFIG_INIT;
    llcl_context_t *context = NULL;
    good.size = 2;
    good.allgather = not_called;
#define REFUSED(change, word)                                              \
    do {                                                                   \
        bad = good;                                                        \
        change;                                                            \
        config.bootstrap = &bad;                                           \
        CHECK_STATUS(llcl_init(&config, &context), LLCL_ERR_INVALID);      \
        CHECK(context == NULL && strstr(llcl_last_error(), word) != NULL); \
    } while (0)
    REFUSED(bad.struct_size = 0, "struct_size");
    REFUSED(bad.struct_size++, "struct_size");
    REFUSED(bad.allgather = NULL, "allgather");
    REFUSED(bad.size = 0, "size");
    REFUSED(bad.size = 4097, "size");
    REFUSED(bad.rank = 2, "rank");
}

int main(void)
{
    int codes[OWN_RANKS];
    uint32_t ranks;
    wrong_parameters();
    for (ranks = 1; ranks <= OWN_RANKS; ranks++)
        own_ranks_succeed(ranks, one_world);
    own_ranks_succeed(3, refused);
    own_ranks_succeed(3, a_bad_field);
    own_ranks_succeed(3, a_bad_variable);
    own_ranks_succeed(3, no_file_of_choices);
    own_ranks_succeed(3, another_refused_late);
    own_ranks_succeed(3, host_refused_late);
    own_ranks_succeed(3, two_places);
    own_ranks_succeed(3, no_place);
    own_ranks_succeed(3, twice_the_same_number);
    own_ranks_succeed(3, strangers);
    own_ranks(3, death_of_the_host, codes);
    CHECK(codes[0] == 256 + SIGKILL && codes[1] == 0 && codes[2] == 0);
    own_ranks(3, death_of_the_host_with_a_child, codes);
    CHECK(codes[0] == 256 + SIGKILL && codes[1] == 0 && codes[2] == 0);
    own_ranks(3, death_of_another, codes);
    CHECK(codes[0] == 0 && codes[1] == 256 + SIGKILL && codes[2] == 0);
    own_ranks(3, death_of_another_with_a_child, codes);
    CHECK(codes[0] == 0 && codes[1] == 256 + SIGKILL && codes[2] == 0);
    own_ranks(4, one_aborts, codes);
    CHECK(codes[0] == 9 && codes[1] == 256 + SIGTERM && codes[2] == 9 && codes[3] == 256 + SIGTERM);
    own_ranks(4, one_exits, codes);
    CHECK(codes[0] == 11 && codes[1] == 256 + SIGKILL && codes[2] == 12 && codes[3] == 256 + SIGTERM);
    own_ranks(4, one_exits_slowly_and_one_aborts, codes);
    CHECK(codes[0] == 11 && codes[1] == 9 && codes[2] == 11 && codes[3] == 256 + SIGKILL);
    own_ranks(2, one_aborts_by_the_launcher, codes);
    CHECK_EQUAL(codes[1], 77);
    return 0;
}
