/* However a rank ends, the job learns of it and the user of the reason: a rank whose llcl_init
 * fails, one that becomes another program, one that ends with 0 but without llcl_finalize. If this
 * were broken, llcl-run would kill a rank before its message is out, or would answer 0 for a job
 * that has failed.
 * kind: alone
 * modes: auto
 * timeout: 60 */
#include "job.h"

/* Rank 1 has no address space to spare but `spare` MiB. */
static int starved(int spare)
{
    llcl_context_t *context = NULL;
    llcl_status_t status;
    if (strcmp(getenv("LLCL_RANK"), "1") == 0) {
        long pages = 0;
        struct rlimit limits;
        FILE *file = fopen("/proc/self/statm", "r");
        CHECK(file != NULL && fscanf(file, "%ld", &pages) == 1);
        fclose(file);
        limits.rlim_cur = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + ((rlim_t)spare << 20);
        limits.rlim_max = RLIM_INFINITY;
        CHECK(setrlimit(RLIMIT_AS, &limits) == 0);
    }
    status = llcl_init(NULL, &context);
    if (status != LLCL_OK) {
        usleep(100000);
        fprintf(stderr, "llcl_init: %s\n", llcl_last_error());
        return 5;
    }
    CHECK_OK(llcl_finalize(context));
    return 0;
}

static int become_another(char **argv)
{
    llcl_context_t *context = NULL;
    llcl_status_t status = llcl_init(NULL, &context);
    if (status != LLCL_OK) {
        usleep(100000);
        fprintf(stderr, "llcl_init: %s\n", llcl_last_error());
        return 6;
    }
    CHECK_OK(llcl_allgather_bytes(context, NULL, 0, NULL));
    if (llcl_rank(context) == 1)
        execv("/proc/self/exe", argv);
    CHECK_STATUS(llcl_allgather_bytes(context, NULL, 0, NULL), LLCL_ERR_PEER_DEAD);
    CHECK_OK(llcl_finalize(context));
    return 0;
}

static int leave_without_finalize(void)
{
    llcl_context_t *context = NULL;
    CHECK_OK(llcl_init(NULL, &context));
    CHECK_OK(llcl_allgather_bytes(context, NULL, 0, NULL));
    if (llcl_rank(context) == 1)
        exit(0);
    llcl_allgather_bytes(context, NULL, 0, NULL);
    sleep(60);
    return 0;
}

int main(int argc, char **argv)
{
    int spare, failed = 0;
    struct end end;
    if (argc > 2 && strcmp(argv[1], "starved") == 0)
        return starved(atoi(argv[2]));
    if (argc > 1 && strcmp(argv[1], "exec") == 0)
        return become_another(argv);
    if (argc > 1)
        return leave_without_finalize();
    for (spare = 1; spare <= 5; spare++) {
        char number[16];
        snprintf(number, sizeof number, "%d", spare);
        end = job("-n 2", argv[0], "starved", number);
        if (end.code == 0)
            continue;
        EXPECT(end, 5, "llcl_init: ");
        failed++;
    }
    CHECK(failed >= 3);
    end = job("-n 2", argv[0], "exec", "");
    EXPECT(end, 6, "llcl_init: LLCL_HUB_FD is");
    end = job("-n 2", argv[0], "deserts", "");
    EXPECT(end, 1, "ended with exit code 0, without llcl_finalize; ending the 1 rank that is left");
    return 0;
}
