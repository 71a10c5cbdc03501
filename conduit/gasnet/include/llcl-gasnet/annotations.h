/* Function attributes, for gcc and clang. */
#ifndef LLCL_GASNET_ANNOTATIONS_H
#define LLCL_GASNET_ANNOTATIONS_H

#ifdef __cplusplus
#define GASNETT_BEGIN_EXTERNC extern "C" {
#define GASNETT_END_EXTERNC }
#define GASNETT_EXTERNC extern "C"
#else
#define GASNETT_BEGIN_EXTERNC
#define GASNETT_END_EXTERNC
#define GASNETT_EXTERNC extern
#endif

#define GASNETT_INLINE(name) static inline __attribute__((always_inline))
#define GASNETT_NEVER_INLINE(name, definition) __attribute__((noinline)) definition
#define GASNETT_RESTRICT __restrict__
#define GASNETT_NORETURN __attribute__((noreturn))
#define GASNETT_NORETURNP(name)
#define GASNETT_MALLOC __attribute__((malloc))
#define GASNETT_MALLOCP(name)
#define GASNETT_PURE __attribute__((pure))
#define GASNETT_PUREP(name)
#define GASNETT_CONST __attribute__((const))
#define GASNETT_CONSTP(name)
#define GASNETT_HOT __attribute__((hot))
#define GASNETT_COLD __attribute__((cold))
#define GASNETT_DEPRECATED __attribute__((deprecated))
#define GASNETT_USED __attribute__((used))
#define GASNETT_WARN_UNUSED_RESULT __attribute__((warn_unused_result))
#define GASNETT_FORMAT_PRINTF(name, at, first, declarator) \
    __attribute__((format(printf, at, first))) declarator
#define GASNETT_FORMAT_PRINTF_FUNCPTR(name, at, first, declarator) \
    __attribute__((format(printf, at, first))) declarator
/* gcc and g++ from 7 on, clang from 10 on. */
#define GASNETT_FALLTHROUGH
#ifdef __has_attribute
#if __has_attribute(fallthrough)
#undef GASNETT_FALLTHROUGH
#define GASNETT_FALLTHROUGH __attribute__((fallthrough));
#endif
#endif
#define GASNETT_PREDICT_TRUE(value) __builtin_expect((value) != 0, 1)
#define GASNETT_PREDICT_FALSE(value) __builtin_expect((value) != 0, 0)
#ifndef if_pf
#define if_pf(condition) if (GASNETT_PREDICT_FALSE(condition))
#define if_pt(condition) if (GASNETT_PREDICT_TRUE(condition))
#endif
#define gasnett_constant_p(value) __builtin_constant_p(value)
#define gasnett_unreachable() __builtin_unreachable()
#define gasnett_assume(condition) ((condition) ? (void)0 : __builtin_unreachable())
#define GASNETT_IDENT(name, text) static const char name[] __attribute__((used)) = text
#define GASNETT_USE_PRAGMA_GCC_DIAGNOSTIC 1

#ifndef _STRINGIFY
#define _STRINGIFY_HELPER(x) #x
#define _STRINGIFY(x) _STRINGIFY_HELPER(x)
#endif
#ifndef _CONCAT
#define _CONCAT_HELPER(a, b) a##b
#define _CONCAT(a, b) _CONCAT_HELPER(a, b)
#endif

#define GASNETT_UNUSED_ARGS1(a) ((void)(a))
#define GASNETT_UNUSED_ARGS2(a, b) (GASNETT_UNUSED_ARGS1(a), (void)(b))
#define GASNETT_UNUSED_ARGS3(a, b, c) (GASNETT_UNUSED_ARGS2(a, b), (void)(c))
#define GASNETT_UNUSED_ARGS4(a, b, c, d) (GASNETT_UNUSED_ARGS3(a, b, c), (void)(d))
#define GASNETT_UNUSED_ARGS5(a, b, c, d, e) (GASNETT_UNUSED_ARGS4(a, b, c, d), (void)(e))
#define GASNETT_UNUSED_ARGS6(a, b, c, d, e, f) (GASNETT_UNUSED_ARGS5(a, b, c, d, e), (void)(f))
#define GASNETT_UNUSED_ARGS7(a, b, c, d, e, f, g) (GASNETT_UNUSED_ARGS6(a, b, c, d, e, f), (void)(g))
#define GASNETT_UNUSED_ARGS8(a, b, c, d, e, f, g, h) (GASNETT_UNUSED_ARGS7(a, b, c, d, e, f, g), (void)(h))

#endif
