/* The build includes this before every source. The libraries export what a header of GASNet
 * declares, and hide all else. They always check addresses, also if they are compiled with
 * NDEBUG. */
#undef NDEBUG
#pragma GCC visibility push(default)
#include "gasnet.h"
#pragma GCC visibility pop
