/* llcl_mpi.h - a context of the ranks of an MPI communicator
 * SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Header only: libllcl does not depend on MPI, and this file works with every MPI that compiles it.
 * Between machines libllcl communicates through a module for that MPI (make mpi MPICC=...), on a
 * communicator of its own. */
#ifndef LLCL_MPI_H
#define LLCL_MPI_H

#include <llcl.h>
#include <mpi.h>

#ifdef __cplusplus
extern "C" {
#endif

static inline int32_t llcl_mpi_allgather_(void *data, const void *mine, size_t size, void *all)
{
    MPI_Comm comm = MPI_Comm_f2c((MPI_Fint)(intptr_t)data);
    return MPI_Allgather((void *)(intptr_t)mine, (int)size, MPI_BYTE, all, (int)size, MPI_BYTE, comm) != MPI_SUCCESS;
}

static inline void llcl_mpi_abort_(void *data, int32_t exit_code)
{
    MPI_Abort(MPI_Comm_f2c((MPI_Fint)(intptr_t)data), exit_code);
}

/* llcl_init for the ranks of a communicator, in its order. Collective over them.
 *
 * comm: an intracommunicator. It is used during this call and llcl_context_duplicate, by llcl_abort
 * and llcl_exit, and by nothing else; it stays valid until the context has ended. config: as of
 * llcl_init; its world, bootstrap and rank are ignored; NULL: the default. context: where the new
 * context goes; ended by llcl_finalize, before MPI_Finalize. If MPI_COMM_WORLD has one rank, as
 * under llcl-run, the call is llcl_init without a bootstrap: the ranks are those of llcl-run, and
 * llcl_init refuses if another launcher has started several processes.
 * LLCL_ERR_STATE: MPI is not initialised, or is finalised; LLCL_ERR_INVALID also if comm is
 * MPI_COMM_NULL or an intercommunicator, or if MPI does not tell its rank and size. Else as of
 * llcl_init. Each call makes a context of its own. One thread of a rank at a time.
 *
 * If the ranks run on several machines, libllcl calls MPI. With less than MPI_THREAD_MULTIPLE only
 * the thread that has called MPI_Init_thread does, inside its calls of libllcl: no other thread may
 * call MPI meanwhile, with MPI_THREAD_SERIALIZED, either. */
static inline llcl_status_t llcl_init_mpi(MPI_Comm comm, const llcl_config_t *config, llcl_context_t **context)
{
    llcl_config_t with = LLCL_CONFIG_INIT;
    llcl_bootstrap_t start = LLCL_BOOTSTRAP_INIT;
    int begun = 0, ended = 0, inter = 0, world = 0, rank = 0, size = 0;
    MPI_Initialized(&begun);
    MPI_Finalized(&ended);
    if (!begun || ended) {
        llcl_set_last_error(begun ? "llcl_init_mpi: MPI is finalised" : "llcl_init_mpi: MPI is not initialised");
        return LLCL_ERR_STATE;
    }
    /* In an intercommunicator MPI_Allgather would bring the other group's places in the world. */
    if (comm == MPI_COMM_NULL || (MPI_Comm_test_inter(comm, &inter) == MPI_SUCCESS && inter)) {
        llcl_set_last_error(inter ? "llcl_init_mpi: comm is an intercommunicator, expected an intracommunicator"
                                  : "llcl_init_mpi: comm is MPI_COMM_NULL, expected an intracommunicator");
        return LLCL_ERR_INVALID;
    }
    if (MPI_Comm_size(MPI_COMM_WORLD, &world) != MPI_SUCCESS || MPI_Comm_rank(comm, &rank) != MPI_SUCCESS ||
        MPI_Comm_size(comm, &size) != MPI_SUCCESS) {
        llcl_set_last_error("llcl_init_mpi: MPI does not tell the rank and the size of comm, expected a valid communicator");
        return LLCL_ERR_INVALID;
    }
    if (config)
        with = *config;
    with.world = NULL;
    with.bootstrap = NULL;
    if (world > 1) {
        start.rank = (uint32_t)rank;
        start.size = (uint32_t)size;
        start.allgather = llcl_mpi_allgather_;
        start.abort = llcl_mpi_abort_;
        start.data = (void *)(intptr_t)MPI_Comm_c2f(comm);
        start.foreign = (int64_t)MPI_Comm_c2f(comm);
        with.bootstrap = &start;
    }
    return llcl_init(&with, context);
}

/* Like llcl_init_mpi, with the communicator's Fortran handle: an INTEGER of mpi, or comm%MPI_VAL of
 * mpi_f08. */
static inline llcl_status_t llcl_init_mpi_fortran(MPI_Fint comm, const llcl_config_t *config, llcl_context_t **context)
{
    return llcl_init_mpi(MPI_Comm_f2c(comm), config, context);
}

#ifdef __cplusplus
}
#endif
#endif
