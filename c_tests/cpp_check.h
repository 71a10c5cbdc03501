/* What the tests in C++ share. */
#ifndef CPP_CHECK_H
#define CPP_CHECK_H

#include <llcl.h>

#include <cstdio>
#include <cstdlib>

#define CHECK(condition)                                                                                              \
    do {                                                                                                              \
        if (!(condition)) {                                                                                           \
            std::fprintf(stderr, "%s:%d: failed: %s (%s)\n", __FILE__, __LINE__, #condition, llcl_last_error());      \
            std::_Exit(1);                                                                                            \
        }                                                                                                             \
    } while (0)

#endif
