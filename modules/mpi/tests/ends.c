/* Broken if this fails: over MPICH's TCP a job of ranks without MPI hangs in MPI_Finalize if the
 * kernel stops a rank before it has got the last message of the others (finalize.rs). The functions
 * below stop the last rank in the last collective call of the module. With "fails" MPI_Allreduce
 * also fails there, and only there. */
#include <llcl.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int ends, stopped, fails;

/* The rank has begun the call, and gets what the others have sent when it goes on. */
static int finish(MPI_Request *request)
{
    int ended;
    if (ends) {
        PMPI_Test(request, &ended, MPI_STATUS_IGNORE);
        usleep(300000);
        stopped = 1;
    }
    return PMPI_Wait(request, MPI_STATUS_IGNORE);
}

int MPI_Barrier(MPI_Comm comm)
{
    MPI_Request request;
    PMPI_Ibarrier(comm, &request);
    return finish(&request);
}

int MPI_Allreduce(const void *from, void *to, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    MPI_Request request;
    PMPI_Iallreduce(from, to, count, type, op, comm, &request);
    finish(&request);
    return ends && fails ? MPI_ERR_OTHER : MPI_SUCCESS;
}

int main(int argc, char **argv)
{
    llcl_context_t *context;
    fails = argc > 1 && strcmp(argv[1], "fails") == 0;
    LLCL_CHECK(llcl_init(NULL, &context));
    uint32_t rank = llcl_rank(context), size = llcl_size(context);
    LLCL_CHECK(llcl_barrier(context));
    ends = rank == size - 1;
    LLCL_CHECK(llcl_finalize(context));
    if (ends && !stopped) {
        fprintf(stderr, "ends: the module has called neither MPI_Barrier nor MPI_Allreduce\n");
        return 1;
    }
    return 0;
}
