/* Broken if this fails: a second context of the same ranks shares handlers, regions, flushes or its
 * end with the first one; its configuration is not its own; one rank that is refused leaves others
 * waiting; llcl_abort by it reaches nobody.
 * ranks: 1 3
 * cma: on off
 * threads: yes
 */
#include "test.h"

enum { HANDLER = 5 };

struct client {
    llcl_context_t *context;
    uint64_t handled;
    uint32_t number;
};

static void handle(llcl_am_t *message, void *data)
{
    struct client *client = data;
    llcl_am_view_t view = LLCL_AM_VIEW_INIT;
    CHECK_OK(llcl_am_view(message, &view));
    CHECK(view.header_size == 4 && memcmp(view.header, &client->number, 4) == 0);
    word_add(&client->handled, 1);
}

/* Both contexts use one handler id, each with its own data; every rank sends to every rank. */
static void send_to_all(struct client *client)
{
    uint32_t peer, size = llcl_size(client->context);
    llcl_am_params_t message = LLCL_AM_PARAMS_INIT;
    message.id = HANDLER;
    message.header = &client->number;
    message.header_size = 4;
    for (peer = 0; peer < size; peer++) {
        message.peer = peer;
        CHECK_OK(llcl_am(client->context, &message));
    }
    CHECK_OK(llcl_wait_word(client->context, &client->handled, size, TEST_PATIENCE_NS));
}

static void keys_are_the_contexts_own(struct client *first, struct client *second)
{
    llcl_region_t *region = NULL;
    llcl_remote_t all[8];
    llcl_write_value_params_t out = LLCL_WRITE_VALUE_PARAMS_INIT;
    CHECK_OK(llcl_region_allocate_shared(second->context, 64, &region, all));
    out.peer = (llcl_rank(first->context) + 1) % llcl_size(first->context);
    out.destination = all[out.peer];
    out.size = 8;
    out.value = 3;
    CHECK_OK(llcl_write_value(second->context, &out));
    CHECK_STATUS(llcl_write_value(first->context, &out), LLCL_ERR_KEY);
    CHECK_OK(llcl_barrier(second->context));
    CHECK_EQUAL(*(uint64_t *)llcl_region_address(region), 3);
}

static void refused(llcl_context_t *context)
{
    llcl_config_t config = LLCL_CONFIG_INIT, bad = LLCL_CONFIG_INIT;
    llcl_bootstrap_t bootstrap = LLCL_BOOTSTRAP_INIT;
    llcl_context_t *other = NULL;
    int last = llcl_rank(context) == llcl_size(context) - 1;
    llcl_status_t status = last ? LLCL_ERR_INVALID : LLCL_ERR_SYSTEM;
    bad.am_slots = 3;
    CHECK_STATUS(llcl_context_duplicate(context, last ? &bad : &config, &other), status);
    CHECK(strstr(llcl_last_error(), last ? "am_slots" : "cannot join") != NULL);
    CHECK_STATUS(llcl_context_duplicate(context, NULL, last ? NULL : &other), status);
    CHECK(strstr(llcl_last_error(), last ? "NULL" : "cannot join") != NULL);
    bad.am_slots = 0;
    bad.bootstrap = &bootstrap;
    CHECK_STATUS(llcl_context_duplicate(context, last ? &bad : NULL, &other), status);
    CHECK(strstr(llcl_last_error(), last ? "bootstrap" : "cannot join") != NULL);
    CHECK_STATUS(llcl_context_duplicate(NULL, NULL, &other), LLCL_ERR_INVALID);
    CHECK(other == NULL);
}

static void run(llcl_context_t *context)
{
    struct client first = {0}, second = {0}, third = {0};
    llcl_config_t config = LLCL_CONFIG_INIT;
    llcl_capabilities_t found = LLCL_CAPABILITIES_INIT;
    first.context = context;
    refused(context);
    config.am_slots = 8;
    CHECK_OK(llcl_context_duplicate(context, &config, &second.context));
    CHECK_OK(llcl_context_duplicate(second.context, NULL, &third.context));
    CHECK(second.context != context && third.context != second.context);
    CHECK_EQUAL(llcl_rank(third.context), llcl_rank(context));
    CHECK_EQUAL(llcl_size(third.context), llcl_size(context));
    CHECK_OK(llcl_query(second.context, &found));
    CHECK_EQUAL(found.am_slots, 8);
    first.number = 1, second.number = 2, third.number = 3;
    CHECK_OK(llcl_am_register(first.context, HANDLER, handle, &first));
    CHECK_OK(llcl_am_register(second.context, HANDLER, handle, &second));
    CHECK_OK(llcl_am_register(third.context, HANDLER, handle, &third));
    CHECK_OK(llcl_barrier(first.context));
    CHECK_OK(llcl_barrier(third.context));
    CHECK_OK(llcl_barrier(second.context));
    send_to_all(&third);
    send_to_all(&second);
    send_to_all(&first);
    keys_are_the_contexts_own(&first, &second);
    /* The ends in any order; what is left works on. */
    CHECK_OK(llcl_finalize(second.context));
    first.handled = third.handled = 0;
    CHECK_OK(llcl_barrier(third.context));
    send_to_all(&third);
    CHECK_OK(llcl_barrier(first.context));
    send_to_all(&first);
    CHECK_OK(llcl_finalize(third.context));
}

TEST_MAIN(run)
