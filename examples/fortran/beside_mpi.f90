! A program that uses the library beside MPI. It passes its rank in MPI_COMM_WORLD and an allgather
! by MPI to the library, so the library's ranks are MPI's.
! Build: mpifort -o beside_mpi beside_mpi.f90 $(pkg-config --cflags --libs llcl-fortran)
! Run:   mpirun -n 4 ./beside_mpi
module handed_over
  use, intrinsic :: iso_c_binding
  use mpi
  implicit none

contains

  integer(c_int32_t) function allgather(data, mine, size, all) bind(c)
    type(c_ptr), value :: data, mine, all
    integer(c_size_t), value :: size
    character(kind=c_char), pointer :: one(:), every(:)
    integer :: ranks, error
    call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)
    call c_f_pointer(mine, one, [size])
    call c_f_pointer(all, every, [size*ranks])
    call MPI_Allgather(one, int(size), MPI_BYTE, every, int(size), MPI_BYTE, MPI_COMM_WORLD, error)
    allgather = merge(0, 1, error == MPI_SUCCESS .and. .not. c_associated(data))
  end function

  subroutine end_job(data, exit_code) bind(c)
    type(c_ptr), value :: data
    integer(c_int32_t), value :: exit_code
    integer :: error
    if (.not. c_associated(data)) call MPI_Abort(MPI_COMM_WORLD, int(exit_code), error)
  end subroutine
end module handed_over

program beside_mpi
  use handed_over
  use llcl
  implicit none
  type(llcl_bootstrap_t), target :: start
  type(llcl_config_t) :: config
  type(llcl_context_t) :: context
  type(llcl_region_t) :: region
  type(llcl_remote_t), allocatable :: sums(:)
  integer(c_int64_t), pointer :: sum_here
  integer(c_int64_t) :: mine, expected
  integer :: rank, ranks, level, error

  call MPI_Init_thread(MPI_THREAD_FUNNELED, level, error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)
  start%rank = rank
  start%size = ranks
  start%allgather = c_funloc(allgather)
  start%abort = c_funloc(end_job)
  config%bootstrap = c_loc(start)
  call llcl_init(config, context)

  ! Each rank adds its number to a word of rank 0 by the library. MPI adds the numbers as well.
  allocate (sums(0:ranks - 1))
  call llcl_region_allocate_shared(context, 8_c_size_t, region, sums)
  call c_f_pointer(llcl_region_address(region), sum_here)
  mine = rank + 1
  call llcl_atomic(context, 0, sums(0), LLCL_OP_ADD, mine)
  call llcl_barrier(context)
  call MPI_Reduce(mine, expected, 1, MPI_INTEGER8, MPI_SUM, 0, MPI_COMM_WORLD, error)
  if (rank == 0) print '(i0, a, i0, a, i0, a)', ranks, ' ranks: ', sum_here, ' by the library, ', expected, ' by MPI'

  call llcl_finalize(context)
  ! MPICH over TCP may hang in MPI_Finalize while another rank still makes progress in MPI.
  call MPI_Barrier(MPI_COMM_WORLD, error)
  call MPI_Finalize(error)
end program
