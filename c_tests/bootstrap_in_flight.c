/* Broken if this fails: llcl_init or llcl_connect fails because other processes of the same user
 * have many descriptors in flight for a moment; the kernel's limit counts all of them. (It does not
 * hold for root.)
 * kind: alone
 * modes: auto
 * timeout: 60
 */
#include "own_start.h"
#include <sys/resource.h>
#include <sys/socket.h>

enum { LIMIT = 128, PACKETS = 4, EACH = 64 };

static void meet(struct own_rank *me)
{
    struct rlimit limit = {LIMIT, LIMIT};
    llcl_context_t *context = NULL;
    alarm(30);
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    CHECK_OK(own_init(me, NULL, &context));
    CHECK_OK(llcl_connect(context, NULL, 0));
    CHECK_OK(llcl_barrier(context));
    CHECK_OK(llcl_finalize(context));
}

/* Keeps more descriptors in flight than the limit for most of the time. */
static void crowd(void)
{
    int fds[EACH], ends[2], i, turn;
    for (i = 0; i < EACH; i++)
        fds[i] = 0;
    for (turn = 0; turn < 10; turn++) {
        CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) == 0);
        for (i = 0; i < PACKETS; i++) {
            union {
                struct cmsghdr head;
                char room[CMSG_SPACE(sizeof fds)];
            } control;
            char byte = 0;
            struct iovec part = {&byte, 1};
            struct msghdr message = {0};
            memset(&control, 0, sizeof control);
            message.msg_iov = &part;
            message.msg_iovlen = 1;
            message.msg_control = &control;
            message.msg_controllen = sizeof control;
            control.head.cmsg_level = SOL_SOCKET;
            control.head.cmsg_type = SCM_RIGHTS;
            control.head.cmsg_len = CMSG_LEN(sizeof fds);
            memcpy(CMSG_DATA(&control.head), fds, sizeof fds);
            CHECK(sendmsg(ends[0], &message, MSG_NOSIGNAL) == 1);
        }
        sleep_ms(190);
        CHECK(close(ends[0]) == 0 && close(ends[1]) == 0);
        sleep_ms(10);
    }
}

int main(void)
{
    pid_t other;
    if (geteuid() == 0)
        CHECK(setgid(65533) == 0 && setuid(65533) == 0);
    other = fork();
    CHECK(other >= 0);
    if (other == 0) {
        crowd();
        _exit(0);
    }
    sleep_ms(50);
    own_ranks_succeed(2, meet);
    CHECK(waitpid(other, NULL, 0) == other);
    return 0;
}
