/* Broken if this fails: while requests wait for credit of an owner, a thread of their rank looks
 * again and again; or these requests wait on when the owner takes requests again.
 * ranks: 2
 * modes: auto direct
 */
#include "stopped.h"

#include <sys/resource.h>

#define ROUNDS 6u
#define MANY 512u
#define QUIET_MS 300
#define MOST_SWITCHES 60 /* of that time; a thread that naps has some 150 */
#define SOON_MS 500      /* a thread that nobody rings for sleeps for a second */
#define MOST_LATE 1      /* round; a busy machine may delay one */

static long switches(void)
{
    struct rusage usage;
    CHECK(getrusage(RUSAGE_SELF, &usage) == 0);
    return usage.ru_nvcsw;
}

static llcl_atomic_params_t addition(const struct shared *words)
{
    llcl_atomic_params_t add = LLCL_ATOMIC_PARAMS_INIT;
    add.peer = 1;
    add.target = remote_at(words, 1, 0);
    add.op = LLCL_OP_ADD;
    add.type = LLCL_TYPE_U64;
    add.operand = 1;
    return add;
}

/* Asks the stopped owner for more additions than it has credit for; how many that were. */
static uint64_t ask(llcl_context_t *context, const struct shared *words, uint64_t *ends)
{
    llcl_atomic_params_t add = addition(words);
    llcl_status_t status = LLCL_OK;
    uint64_t count = 0;
    for (; count < MANY && status >= 0; count += status == LLCL_OK) {
        add.on_complete = llcl_store_on(&ends[count]);
        status = llcl_try_atomic_async(context, &add);
        if (status == LLCL_RETRY_QUEUE_FULL || status == LLCL_RETRY_NO_CREDIT)
            break;
    }
    CHECK(status >= 0);
    return count;
}

static uint64_t round_with_a_stopped_owner(llcl_context_t *context, const struct shared *words, uint32_t *late)
{
    static uint64_t ends[MANY];
    pid_t owner = peer_stop(context, 1);
    uint64_t count, i;
    int64_t since;
    long before;
    memset(ends, 0, sizeof ends);
    count = ask(context, words, ends);
    sleep_ms(50);
    before = switches();
    sleep_ms(QUIET_MS);
    before = switches() - before;
    CHECK(count > 0 && word_get(&ends[count - 1]) == 0);
    printf("%ld switches while %llu requests waited\n", before, (unsigned long long)count);
    since = now_ns();
    CHECK(kill(owner, SIGCONT) == 0);
    for (i = 0; i < count; i++)
        while (word_get(&ends[i]) == 0) {
            CHECK(now_ns() - since < TEST_PATIENCE_NS);
            usleep(100);
        }
    *late += now_ns() - since >= SOON_MS * INT64_C(1000000);
    CHECK(before <= MOST_SWITCHES);
    return count;
}

static uint64_t all_rounds(llcl_context_t *context, const struct shared *words)
{
    llcl_atomic_params_t first = addition(words);
    uint64_t all = 1;
    uint32_t i, late = 0;
    CHECK_OK(llcl_atomic(context, &first));
    for (i = 0; i < ROUNDS; i++)
        all += round_with_a_stopped_owner(context, words, &late);
    printf("%u of %u rounds were answered late\n", late, ROUNDS);
    CHECK(late <= MOST_LATE);
    return all;
}

static void run(llcl_context_t *context)
{
    struct shared words;
    uint64_t asked = 0, all[2];
    share(context, REGISTERED, 64, &words);
    fence(context);
    if (llcl_rank(context) == 0)
        asked = all_rounds(context, &words);
    CHECK_OK(llcl_allgather_bytes(context, &asked, sizeof asked, all));
    CHECK_EQUAL(word_get(words.words), llcl_rank(context) == 1 ? all[0] : 0);
    share_end(context, &words);
}

TEST_MAIN(run)
