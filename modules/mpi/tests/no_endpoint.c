/* The library has opened the module's wire, and finds no further descriptor for its endpoint: the
 * program replaces eventfd(), which fails from MPI_Comm_dup on, the last call of MPI by which the
 * module opens a wire. llcl_init_mpi fails. MPI_Finalize must then not call the wire, whose memory
 * the library has freed. 2 ranks.
 */
#define _GNU_SOURCE
#include "expect.h"
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { BOXES = 20000 };

static int opened;

int MPI_Comm_dup(MPI_Comm comm, MPI_Comm *duplicate)
{
    opened = 1;
    return PMPI_Comm_dup(comm, duplicate);
}

int eventfd(unsigned int value, int flags)
{
    int (*next)(unsigned int, int);
    if (opened) {
        errno = EMFILE;
        return -1;
    }
    *(void **)&next = dlsym(RTLD_NEXT, "eventfd");
    return next(value, flags);
}

int main(void)
{
    int level;
    llcl_context_t *context;
    MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    EXPECT(llcl_init_mpi(MPI_COMM_WORLD, NULL, &context) == LLCL_ERR_SYSTEM);
    EXPECT(opened);
    /* Memory that the library has freed gets other bytes. */
    for (size_t box = 0; box < BOXES; box++) {
        size_t size = 8 + box % 300;
        char *bytes = malloc(size);
        EXPECT(bytes != NULL);
        memset(bytes, 0xee, size);
    }
    end_mpi();
    return 0;
}
