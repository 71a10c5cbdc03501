/* The build includes this before every source. The libraries export what a header of GASNet
 * declares, and hide all else. */
#pragma GCC visibility push(default)
#include "gasnet.h"
#pragma GCC visibility pop
