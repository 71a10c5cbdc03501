/* Broken if this fails: callbacks that post two requests each lose some, fire some twice, or lock
 * up when the queue is full of what callbacks post.
 * ranks: 1 2 3
 * cma: on off
 * threads: yes
 * timeout: 40
 */
#include "shared.h"

#define DEPTH 12 /* 2^12 - 1 requests */
#define NODES ((1u << DEPTH) - 1)

struct tree;

struct node {
    struct tree *tree;
    uint32_t number; /* from 1; the children of n are 2n and 2n+1 */
};

struct tree {
    llcl_context_t *context;
    llcl_fetch_add_params_t add;
    uint64_t total;
    pthread_mutex_t lock;
    uint8_t fired[NODES];
    struct node nodes[NODES];
    uint32_t waiting[NODES]; /* refused, to be posted again */
    uint32_t refused;
};

static void fire(void *data, llcl_status_t status);

static void post(struct tree *tree, uint32_t number)
{
    llcl_fetch_add_params_t add = tree->add;
    llcl_status_t status;
    add.on_complete = llcl_callback(fire, &tree->nodes[number - 1]);
    if (number % 3 == 0)
        add.flags = LLCL_FLAG_DEFER;
    status = llcl_try_fetch_add_async(tree->context, &add);
    if (status == LLCL_OK)
        return;
    CHECK(status > 0);
    pthread_mutex_lock(&tree->lock);
    tree->waiting[tree->refused++] = number;
    pthread_mutex_unlock(&tree->lock);
}

static void fire(void *data, llcl_status_t status)
{
    struct node *node = data;
    struct tree *tree = node->tree;
    CHECK_OK(status);
    CHECK(__atomic_fetch_add(&tree->fired[node->number - 1], 1, __ATOMIC_RELAXED) == 0);
    if (node->number * 2 <= NODES) {
        post(tree, node->number * 2);
        post(tree, node->number * 2 + 1);
    }
    word_add(&tree->total, 1);
}

static void configure(llcl_config_t *config)
{
    config->queue_entries = 64;
    config->in_flight = 64;
}

static void run(llcl_context_t *context)
{
    uint32_t me = llcl_rank(context), size = llcl_size(context), i;
    int kind;
    for (kind = 0; kind < MEMORY_KINDS; kind++) {
        struct shared target;
        struct tree *tree = calloc(1, sizeof *tree);
        int64_t end = now_ns() + 2 * TEST_PATIENCE_NS;
        CHECK(tree != NULL);
        share(context, kind, 64, &target);
        pthread_mutex_init(&tree->lock, NULL);
        tree->context = context;
        tree->add.peer = (me + 1) % size;
        tree->add.target = remote_at(&target, tree->add.peer, 0);
        tree->add.operand = 1;
        for (i = 0; i < NODES; i++) {
            tree->nodes[i].tree = tree;
            tree->nodes[i].number = i + 1;
        }
        post(tree, 1);
        while (word_get(&tree->total) < NODES) {
            uint32_t number = 0;
            pthread_mutex_lock(&tree->lock);
            if (tree->refused > 0)
                number = tree->waiting[--tree->refused];
            pthread_mutex_unlock(&tree->lock);
            if (number > 0)
                post(tree, number);
            else
                sched_yield();
            CHECK(now_ns() < end);
        }
        fence(context);
        CHECK_EQUAL(tree->total, NODES);
        CHECK_EQUAL(word_get(target.words), NODES);
        share_end(context, &target);
        pthread_mutex_destroy(&tree->lock);
        free(tree);
    }
}

TEST_MAIN_CONFIG(run, configure)
