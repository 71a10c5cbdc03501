/* Does a source file that includes gasnetex.h only have what clients take from GASNet's headers
 * beside the specification: standard headers that it does not include itself (an example of ARL
 * calls usleep), names of GASNet's own sources, and the numbers and sizes of which Realm keeps
 * copies? */
#include <gasnetex.h>

_Static_assert(sizeof(gex_EP_Index_t) == 2 && sizeof(gex_Rank_t) == 4 && sizeof(gex_OP_t) == 4, "sizes");
_Static_assert(GEX_OP_ADD == 1 << 3 && GEX_DT_U64 == 1 << 3 && GEX_OP_USER == 1 << 30, "operations and types");
_Static_assert(GEX_OP_FCAS == 1 << 26 && GEX_OP_TO_FETCHING(GEX_OP_SET) == GEX_OP_SWAP, "operations that fetch");
_Static_assert(GEX_FLAG_IMMEDIATE == 1 && GEX_FLAG_AM_PREPARE_LEAST_CLIENT == 1 << 11 &&
               GEX_FLAG_AM_PREPARE_LEAST_ALLOC == 1 << 12, "flags");
_Static_assert(GEX_TI_EP == 16 && GEX_EC_RMW == 8 && GASNET_ERR_NOT_READY == 10004, "other numbers");
_Static_assert(GEX_EC_PUT == 3 && GEX_EC_GET == 4 && GEX_EC_AM == 2 && GASNET_BARRIERFLAG_UNNAMED == 9, "sets");
#ifdef GASNET_SEQ
_Static_assert(GASNETI_MAX_THREADS == 1 && GASNET_NULL_ARGV_OK, "threads, and no arguments");
#else
_Static_assert(GASNETI_MAX_THREADS > 1 && GASNET_NULL_ARGV_OK, "threads, and no arguments");
#endif

/* In each list constant i is bit i. 0: another list has this bit. */
static const uint32_t operations[] = {
    GEX_OP_AND, GEX_OP_OR,  GEX_OP_XOR, GEX_OP_ADD, GEX_OP_SUB, GEX_OP_MULT, GEX_OP_MIN, GEX_OP_MAX, GEX_OP_INC,
    GEX_OP_DEC, GEX_OP_SET, GEX_OP_CAS, 0,          0,          0,           GEX_OP_FAND, GEX_OP_FOR, GEX_OP_FXOR,
    GEX_OP_FADD, GEX_OP_FSUB, GEX_OP_FMULT, GEX_OP_FMIN, GEX_OP_FMAX, GEX_OP_FINC, GEX_OP_FDEC, GEX_OP_SWAP,
    GEX_OP_FCAS, GEX_OP_GET, 0, 0, GEX_OP_USER, GEX_OP_USER_NC};
static const uint32_t types[] = {GEX_DT_I32, GEX_DT_U32, GEX_DT_I64, GEX_DT_U64,
                                 GEX_DT_FLT, GEX_DT_DBL, GEX_DT_USER};
static const uint32_t flags[] = {
    GEX_FLAG_IMMEDIATE, GEX_FLAG_LC_COPY_YES, GEX_FLAG_LC_COPY_NO, GEX_FLAG_SELF_SEG_UNKNOWN, GEX_FLAG_SELF_SEG_SOME,
    GEX_FLAG_SELF_SEG_BOUND, GEX_FLAG_SELF_SEG_OFFSET, GEX_FLAG_PEER_SEG_UNKNOWN, GEX_FLAG_PEER_SEG_SOME,
    GEX_FLAG_PEER_SEG_BOUND, GEX_FLAG_PEER_SEG_OFFSET, GEX_FLAG_AM_PREPARE_LEAST_CLIENT,
    GEX_FLAG_AM_PREPARE_LEAST_ALLOC, GEX_FLAG_RANK_IS_JOBRANK, GEX_FLAG_PEER_NEVER_NBRHD, GEX_FLAG_PEER_NEVER_SELF};
static const uint32_t flags_of_domains[] = {GEX_FLAG_AD_FAVOR_MY_RANK, GEX_FLAG_AD_FAVOR_MY_NBRHD,
    GEX_FLAG_AD_FAVOR_REMOTE, 0, 0, 0, 0, 0, 0, 0, 0, GEX_FLAG_AD_MY_RANK, GEX_FLAG_AD_MY_NBRHD};
static const uint32_t flags_of_teams[] = {GEX_FLAG_TM_SCRATCH_SIZE_MIN, GEX_FLAG_TM_SCRATCH_SIZE_RECOMMENDED,
    GEX_FLAG_TM_GLOBAL_SCRATCH, GEX_FLAG_TM_LOCAL_SCRATCH, GEX_FLAG_TM_SYMMETRIC_SCRATCH, GEX_FLAG_TM_NO_SCRATCH,
    GEX_FLAG_SCRATCH_SEG_OFFSET, 0, 0, 0, 0, 0, 0, GEX_FLAG_GLOBALLY_QUIESCED};
static const uint32_t flags_of_handlers[] = {GEX_FLAG_AM_SHORT, GEX_FLAG_AM_MEDIUM, GEX_FLAG_AM_LONG,
    GEX_FLAG_AM_REQUEST, GEX_FLAG_AM_REPLY};
static const uint32_t about_messages[] = {GEX_TI_SRCRANK, GEX_TI_ENTRY, GEX_TI_IS_REQ, GEX_TI_IS_LONG, GEX_TI_EP};

#define ARE_BITS(list) are_bits(#list, list, sizeof list / sizeof *list)
static int are_bits(const char *name, const uint32_t *list, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (list[i] != 0 && list[i] != 1u << i) {
            printf("headers: constant %zu of %s is 0x%x, expected 0x%x\n", i, name, list[i], 1u << i);
            return 0;
        }
    return 1;
}

/* GASNet's headers include stdarg.h. */
static int first(int count, ...) {
    va_list list;
    va_start(list, count);
    count = va_arg(list, int);
    va_end(list);
    return count;
}

/* ARL takes these two from gasnetex.h alone. */
static int (*const info[])(gasnet_seginfo_t *, int) = {gasnet_getSegmentInfo};
static int (*const node_info[])(gasnet_nodeinfo_t *, int) = {gasnet_getNodeInfo};
static void (*const not_used)(void) = _gasneti_threadkey_init;
static void (*const not_used_either)(const char *, ...) = _gasnett_trace_printf_noop;

int main(void) {
    gasneti_tick_t before = gasneti_ticks_now();
    char byte, *address = &byte;
    errno = 0;
    if (usleep(1) != 0 || !isdigit('7') || MIN(strlen("two"), (size_t)INT_MAX) != MAX(3u, 2u) ||
        signal(SIGUSR1, SIG_IGN) == SIG_ERR || !info[0] || !node_info[0] || !not_used ||
        !not_used_either || gasneti_ticks_to_us(gasneti_ticks_now() - before) == 0 || !*gasneti_gethostname() ||
        (char *)(uintptr_t)GASNETI_MAKEWORD(GASNETI_HIWORD(address), GASNETI_LOWORD(address)) != address) {
        printf("headers: a function has failed, errno %d\n", errno);
        return 1;
    }
    return !(ARE_BITS(operations) && ARE_BITS(types) && ARE_BITS(flags) && ARE_BITS(flags_of_domains) &&
             ARE_BITS(flags_of_teams) && ARE_BITS(flags_of_handlers) && ARE_BITS(about_messages) && first(1, 7) == 7);
}
