/* Does a source file that uses the tools only, and asks for those that do not depend on threads,
 * compile in each mode? (UPC++ has one, which writes down compiler and versions.) */
#undef GASNET_SEQ
#undef GASNET_PARSYNC
#undef GASNET_PAR
#define GASNETT_LITE_MODE 1
#include <gasnet_tools.h>

#include <stdio.h>
#include <string.h>

#define CHECK(condition) ((condition) ? (void)0 : fail(#condition))

static void fail(const char *condition) {
    printf("tools_lite: failed: %s\n", condition);
    exit(1);
}

GASNETT_IDENT(compiler, "$Compiler: " PLATFORM_COMPILER_IDSTR " $");
GASNETT_IDENT(model, _STRINGIFY(GASNETT_THREAD_MODEL));

#if PLATFORM_COMPILER_VERSION_LT(4, 1, 0) || !PLATFORM_COMPILER_VERSION_GE(4, 1, 0) || PLATFORM_COMPILER_VERSION_GT(999, 0, 0)
#error the order of versions
#endif
#if defined(GASNETT_THREAD_SAFE) || defined(GASNETT_THREAD_SINGLE) || defined(gasnett_mutex_lock)
#error tools that depend on threads
#endif
#if !PLATFORM_OS_LINUX || !PLATFORM_ARCH_64 || !PLATFORM_ARCH_LITTLE_ENDIAN || PLATFORM_COMPILER_ID != PLATFORM_COMPILER_FAMILYID
#error the platform
#endif

int main(void) {
    gasnett_tick_t before = gasnett_ticks_now();
    gasnett_local_mb();
    CHECK(strstr(compiler, PLATFORM_STRINGIFY(PLATFORM_COMPILER_FAMILYNAME) " C " PLATFORM_COMPILER_VERSION_STR));
    CHECK(strcmp(model, "LITE") == 0);
    CHECK(gasnett_ticks_to_ns(gasnett_ticks_now()) >= gasnett_ticks_to_ns(before));
    return 0;
}
