/* When the answer to a write with words leaves. The program calls the module in place of libllcl,
 * so that it alone decides who polls, and when. The first argument is the module's file, the second
 * one the level of threads that the program asks MPI for: multiple or funneled. 2 ranks. Rank 0
 * writes no bytes, as for an atomic. Rank 1 answers, and counts its calls of MPI_Isend.
 *
 * The answers to writes with FETCH leave in the call that answers the last notice of a poll, in one
 * message. The writer gets it though rank 1 calls nothing of MPI any more: it waits for a signal of
 * the system, which rank 0 sends. Without FETCH the answer leaves in the next poll, and arm() says
 * that there must be one. With funneled another thread may answer, too. It may not call MPI, so its
 * answer also waits for a poll. */
#include "expect.h"
#include "llcl_wire.h"
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <time.h>

enum { WRITES = 2, SECONDS = 30, VALUE = 1000 };

static const llcl_wire_module_t *module;
static llcl_wire_t *wire;
static llcl_wire_lane_t *lane;
static pid_t pids[2];
static llcl_wire_key_t keys[2];
static uint64_t places[2], word;
static int sends;

int MPI_Isend(const void *bytes, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request)
{
    sends++;
    return PMPI_Isend(bytes, count, type, to, tag, comm, request);
}

static void say(void *unused, int level, const char *text)
{
    (void)unused;
    (void)level;
    fprintf(stderr, "answered: rank %d: the module says: %s\n", rank, text);
}

static void open_module(const char *file)
{
    static llcl_wire_host_t host = {sizeof host, NULL, say, NULL, NULL};
    llcl_wire_open_t how = {sizeof how, (uint32_t)rank, 2, 0, 0, NULL};
    unsigned char cards[2][64];
    llcl_wire_caps_t can = {.struct_size = sizeof can};
    const llcl_wire_module_t *(*table)(uint32_t, uint64_t);
    void *loaded = dlopen(file, RTLD_NOW);
    EXPECT(loaded != NULL);
    *(void **)&table = dlsym(loaded, "llcl_wire_module");
    module = table(LLCL_WIRE_MAJOR, sizeof *module);
    EXPECT(module->major == LLCL_WIRE_MAJOR && module->answer != NULL);
    EXPECT(module->open(&host, &how, &wire) == LLCL_OK && module->caps(wire, &can) == LLCL_OK);
    EXPECT(module->lane(wire, 0, &lane) == LLCL_OK);
    EXPECT(module->card(wire, cards[rank], can.card_bytes) == LLCL_OK);
    EXPECT(module->register_(wire, &word, sizeof word, 3, &keys[rank]) == LLCL_OK);
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_BYTE, cards, sizeof cards[0], MPI_BYTE, MPI_COMM_WORLD);
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_BYTE, keys, sizeof keys[0], MPI_BYTE, MPI_COMM_WORLD);
    EXPECT(module->connect(lane, (uint32_t)(1 - rank), cards[1 - rank], can.card_bytes) == LLCL_OK);
}

/* Polls until there is an event of this kind. */
static llcl_wire_event_t next(uint32_t kind)
{
    static llcl_wire_event_t events[16];
    static uint32_t count, at;
    const time_t limit = time(NULL) + SECONDS;
    for (;;) {
        while (at < count)
            if (events[at++].event == kind)
                return events[at - 1];
        EXPECT(time(NULL) < limit);
        count = module->poll(lane, events, 16);
        at = 0;
    }
}

/* Posts writes of no bytes, which leave in one request. */
static void write_words(uint32_t flags)
{
    llcl_wire_piece_t none = {&word, 0, 0};
    llcl_wire_command_t commands[WRITES];
    int32_t why;
    memset(commands, 0, sizeof commands);
    for (uint32_t at = 0; at < WRITES; at++) {
        llcl_wire_command_t *command = &commands[at];
        command->op = LLCL_W_WRITE;
        command->flags = LLCL_WF_INLINE | LLCL_WF_NOTICE | LLCL_WF_WORDS | flags;
        command->tag = at;
        command->pieces = 1;
        command->piece = &none;
        command->remote = places[1];
        memcpy(command->wire, keys[1].wire, sizeof command->wire);
        command->notice = at;
        command->words[0] = VALUE + at;
    }
    EXPECT(module->post(lane, 1, LLCL_CLASS_RMA, commands, WRITES, &why) == WRITES);
}

/* The second write is refused. */
static void answer(const llcl_wire_event_t *notice)
{
    uint64_t value;
    memcpy(&value, notice->bytes, sizeof value);
    module->answer(lane, notice->frame, notice->tag == 0 ? LLCL_OK : LLCL_ERR_RANGE, value);
}

static void expect_answers(void)
{
    for (uint32_t at = 0; at < WRITES; at++) {
        llcl_wire_event_t done = next(LLCL_WE_DONE);
        EXPECT(done.tag < WRITES && done.fetched == VALUE + done.tag);
        EXPECT(done.status == (done.tag == 0 ? LLCL_OK : LLCL_ERR_RANGE));
    }
}

/* Rank 1 waits for rank 0 without a call of MPI. */
static void wait_for_signal(void)
{
    sigset_t told;
    struct timespec limit = {2 * SECONDS, 0};
    sigemptyset(&told);
    sigaddset(&told, SIGUSR1);
    EXPECT(sigtimedwait(&told, NULL, &limit) == SIGUSR1);
}

static void *answer_all(void *notices)
{
    for (int at = 0; at < WRITES; at++)
        answer((llcl_wire_event_t *)notices + at);
    return NULL;
}

/* Rank 1 answers; `by_thread`: on another thread. Then `at_once` messages have left, and the next
 * poll sends `polled` more. */
static void check(uint32_t flags, int by_thread, int at_once, int polled)
{
    if (rank == 0) {
        write_words(flags);
        expect_answers();
        kill(pids[1], SIGUSR1);
    } else {
        llcl_wire_event_t notices[WRITES], none[16];
        llcl_wire_armed_t armed;
        int before;
        for (int at = 0; at < WRITES; at++)
            notices[at] = next(LLCL_WE_NOTICE);
        before = sends;
        if (by_thread) {
            pthread_t thread;
            EXPECT(pthread_create(&thread, NULL, answer_all, notices) == 0);
            pthread_join(thread, NULL);
        } else {
            answer(&notices[0]);
            EXPECT(sends == before);
            answer(&notices[1]);
        }
        EXPECT(sends == before + at_once);
        if (polled > 0) {
            EXPECT(module->arm(lane, &armed) == LLCL_OK && armed.how == 0);
            EXPECT(module->poll(lane, none, 16) == 0 && sends == before + at_once + polled);
        }
        wait_for_signal();
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    sigset_t told;
    int given, level = argc > 2 && strcmp(argv[2], "funneled") == 0 ? MPI_THREAD_FUNNELED : MPI_THREAD_MULTIPLE;
    /* Before MPI makes threads, which would take the signal. */
    sigemptyset(&told);
    sigaddset(&told, SIGUSR1);
    sigprocmask(SIG_BLOCK, &told, NULL);
    MPI_Init_thread(&argc, &argv, level, &given);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    EXPECT(argc == 3 && given == level);
    pids[rank] = getpid();
    places[rank] = (uint64_t)(uintptr_t)&word;
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_BYTE, pids, sizeof pids[0], MPI_BYTE, MPI_COMM_WORLD);
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_BYTE, places, sizeof places[0], MPI_BYTE, MPI_COMM_WORLD);
    open_module(argv[1]);
    check(0, 0, 0, 1);
    check(LLCL_WF_FETCH, 0, 1, 0);
    if (level == MPI_THREAD_MULTIPLE)
        check(LLCL_WF_FETCH, 1, 1, 0);
    else
        check(LLCL_WF_FETCH, 1, 0, 1);
    EXPECT(module->close(wire, 1000000000) == LLCL_OK);
    printf("answered: rank %d: passed, %s\n", rank, argv[2]);
    end_mpi();
    return 0;
}
