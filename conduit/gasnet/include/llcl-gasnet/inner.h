/* Names of GASNet's own sources, which the specifications do not have, but which clients use.
 * Included by gasnet_tools.h, inside its extern "C". */

/* Chapel reads it. */
#ifdef GASNET_SEQ
#define GASNETI_MAX_THREADS 1
#else
#define GASNETI_MAX_THREADS GASNET_MAX_THREADS
#endif

/* Realm takes the addresses of these two functions, against warnings that they are not used. */
static inline void _gasneti_threadkey_init(void) {}
static inline void _gasnett_trace_printf_noop(const char *format, ...) { (void)format; }

/* The two halves of a pointer or a number of 64 bits, as arguments of messages (PANDO). */
#define GASNETI_HIWORD(number) ((uint32_t)((uint64_t)(number) >> 32))
#define GASNETI_LOWORD(number) ((uint32_t)(uint64_t)(number))
#define GASNETI_MAKEWORD(high, low) ((uint64_t)(uint32_t)(high) << 32 | (uint32_t)(low))

/* Timers (ARL). */
#define gasneti_tick_t gasnett_tick_t
#define gasneti_ticks_now() gasnett_ticks_now()
#define gasneti_ticks_to_us(ticks) gasnett_ticks_to_us(ticks)
#define gasneti_ticks_to_ns(ticks) gasnett_ticks_to_ns(ticks)

/* GASNet-examples. */
#define gasneti_gethostname() gasnett_gethostname()
