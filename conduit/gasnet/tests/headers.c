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
_Static_assert(GASNETI_MAX_THREADS > 1 && GASNET_NULL_ARGV_OK, "threads, and no arguments");

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
        !not_used_either || gasneti_ticks_to_us(gasneti_ticks_now() - before) == 0 ||
        (char *)(uintptr_t)GASNETI_MAKEWORD(GASNETI_HIWORD(address), GASNETI_LOWORD(address)) != address) {
        printf("headers: a function has failed, errno %d\n", errno);
        return 1;
    }
    return 0;
}
