/* Included before every source by the build: what a header of GASNet declares is exported, all else is hidden. */
#pragma GCC visibility push(default)
#include "gasnet.h"
#pragma GCC visibility pop
