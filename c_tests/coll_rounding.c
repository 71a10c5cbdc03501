/* Broken if this fails: the result of a reduction depends on which thread runs a step: it is not
 * rounded, and denormal numbers are not flushed, as in the threads that made the plan; or a thread
 * that runs steps does not keep its own floating-point environment; or ranks that differ in theirs
 * are not all told.
 * ranks: 1 2 3 5
 * engines: offload thread
 * modes: auto
 * threads: yes
 */
#include "coll.h"
#include <fenv.h>

#define N 8192u

#if defined(__x86_64__)
#include <xmmintrin.h>
#define FLUSH 0x8040u /* FTZ, DAZ */
static uint64_t environment(void) { return _mm_getcsr() & 0xe040u; }
static void set_flush(int on) { _mm_setcsr((_mm_getcsr() & ~FLUSH) | (on ? FLUSH : 0)); }
#elif defined(__aarch64__)
#define FLUSH (UINT64_C(1) << 24) /* FZ */
static uint64_t environment(void)
{
    uint64_t word;
    __asm__ volatile("mrs %0, fpcr" : "=r"(word));
    return word;
}
static void set_flush(int on)
{
    __asm__ volatile("msr fpcr, %0" : : "r"((environment() & ~FLUSH) | (on ? FLUSH : 0)));
}
#else
static uint64_t environment(void) { return (uint64_t)fegetround(); }
static void set_flush(int on) { (void)on; test_skip("denormal numbers cannot be flushed here"); }
#endif

struct scene {
    llcl_context_t *context;
    uint32_t me, ranks;
    struct shared send, receive;
    llcl_coll_params_t params;
};

static void add(const void *left, const void *right, void *result, uint64_t count, void *data)
{
    const double *a = left, *b = right;
    double *to = result;
    uint64_t i;
    for (i = 0; i < count; i++)
        to[i] = a[i] + b[i];
    (void)data;
}

static void fill(struct scene *scene, double first, double other)
{
    double *in = (double *)(void *)scene->send.bytes;
    uint64_t i;
    for (i = 0; i < N; i++)
        in[i] = scene->me == 0 ? first : other;
}

/* Rounds in which this rank waits at once, or leaves the steps to others for a while. Every element
 * must be the same bits; answers the first. The thread's environment is what it was. */
static double rounds(struct scene *scene, llcl_coll_t *plan)
{
    double *out = (double *)(void *)scene->receive.bytes;
    uint64_t before = environment(), i;
    int round;
    for (round = 0; round < 12; round++) {
        memset(out, 1, N * sizeof *out);
        fence(scene->context);
        CHECK_OK(llcl_coll_start(plan));
        if ((uint32_t)round % 3 == scene->me % 3)
            sleep_ms(1);
        CHECK_OK(llcl_coll_wait(plan, TEST_PATIENCE_NS));
        CHECK_EQUAL(environment(), before);
        for (i = 1; i < N; i++)
            CHECK(memcmp(out + i, out, sizeof *out) == 0);
    }
    return *out;
}

static int is_zero(double number)
{
    static const unsigned char zero[sizeof number];
    return memcmp(&number, zero, sizeof number) == 0;
}

/* Made with denormal numbers flushed, and not; run the other way round. */
static void flushed(struct scene *scene)
{
    llcl_coll_t *flushes, *keeps;
    double exact = 0;
    uint32_t r;
    for (r = 0; r < scene->ranks; r++)
        exact += 1e-310;
    fill(scene, 1e-310, 1e-310);
    CHECK_OK(llcl_allreduce_init(&scene->params, &keeps));
    set_flush(1);
    CHECK_OK(llcl_allreduce_init(&scene->params, &flushes));
    if (scene->ranks > 1)
        CHECK(is_zero(rounds(scene, flushes)));
    {
        double got = rounds(scene, keeps);
        CHECK(memcmp(&got, &exact, sizeof got) == 0);
    }
    set_flush(0);
    if (scene->ranks > 1)
        CHECK(is_zero(rounds(scene, flushes)));
    CHECK_OK(llcl_coll_free(flushes));
    CHECK_OK(llcl_coll_free(keeps));
}

static void rounded_up(struct scene *scene)
{
    llcl_coll_t *upwards;
    double sum;
    fill(scene, 1.0, 1e-20);
    CHECK(fesetround(FE_UPWARD) == 0);
    CHECK_OK(llcl_allreduce_init(&scene->params, &upwards));
    sum = rounds(scene, upwards);
    CHECK(fesetround(FE_TONEAREST) == 0);
    CHECK(scene->ranks == 1 ? sum == 1.0 : sum > 1.0 && sum < 1.0 + 1e-12);
    sum = rounds(scene, upwards);
    CHECK(scene->ranks == 1 ? sum == 1.0 : sum > 1.0 && sum < 1.0 + 1e-12);
    CHECK_OK(llcl_coll_free(upwards));
}

/* One rank differs: told to all where the result depends on it, and of no account elsewhere. */
static void differing(struct scene *scene)
{
    llcl_coll_params_t params = scene->params;
    llcl_coll_t *plan = NULL;
    if (scene->me + 1 == scene->ranks)
        CHECK(fesetround(FE_UPWARD) == 0);
    if (scene->ranks > 1) {
        CHECK_STATUS(llcl_allreduce_init(&params, &plan), LLCL_ERR_INVALID);
        CHECK(strstr(llcl_last_error(), "floating-point environment is rounding to nearest at rank 0") != NULL);
        CHECK(strstr(llcl_last_error(), "rounding up at rank") != NULL);
        CHECK(plan == NULL);
    }
    CHECK_OK(llcl_allgather_init((params.count = 1, &params), &plan));
    CHECK_OK(llcl_coll_free(plan));
    params.type = LLCL_TYPE_I64;
    params.op = LLCL_OP_ADD;
    CHECK_OK(llcl_allreduce(&params));
    CHECK(fesetround(FE_TONEAREST) == 0);
}

static void run(llcl_context_t *context)
{
    struct scene scene = {0};
    int kind, user;
    scene.context = context;
    scene.me = llcl_rank(context);
    scene.ranks = llcl_size(context);
    for (kind = 0; kind < MEMORY_KINDS; kind++) {
        region_make(context, kind, N * sizeof(double), &scene.send);
        region_make(context, kind, N * sizeof(double), &scene.receive);
        scene.params.team = coll_world(context);
        scene.params.type = LLCL_TYPE_F64;
        scene.params.count = N;
        scene.params.send = llcl_region_local(scene.send.region, 0);
        scene.params.receive = llcl_region_local(scene.receive.region, 0);
        for (user = 0; user < 2; user++) {
            scene.params.op = user ? LLCL_OP_USER : LLCL_OP_ADD;
            scene.params.function = user ? add : NULL;
            flushed(&scene);
            rounded_up(&scene);
        }
        differing(&scene);
        fence(context);
        region_drop(&scene.send);
        region_drop(&scene.receive);
    }
}

TEST_MAIN(run)
