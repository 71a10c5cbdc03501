! The beginning and the end of the larger examples. Their ranks are those of llcl-run, or, if
! mpifort -DWITH_MPI compiles them, those of mpirun, with MPI beside the library.
module world
  use, intrinsic :: iso_c_binding
  use llcl
#ifdef WITH_MPI
  use mpi
#endif
  implicit none

contains

  subroutine begin(context)
    type(llcl_context_t), intent(out) :: context
    type(llcl_config_t) :: config
#ifdef WITH_MPI
    type(llcl_bootstrap_t), target :: start
    integer :: error, level, rank, ranks
    call MPI_Init_thread(MPI_THREAD_FUNNELED, level, error)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
    call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)
    start%rank = rank
    start%size = ranks
    start%allgather = c_funloc(allgather)
    config%bootstrap = c_loc(start)
#endif
    call llcl_init(config, context)
  end subroutine

  subroutine finish(context)
    type(llcl_context_t), intent(in) :: context
#ifdef WITH_MPI
    integer :: error
#endif
    call llcl_finalize(context)
#ifdef WITH_MPI
    call MPI_Finalize(error)
  end subroutine

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
#else
  end subroutine
#endif

  ! The i-th argument, or its default.
  integer function argument(i, by_default)
    integer, intent(in) :: i, by_default
    character(len=20) :: text
    argument = by_default
    if (command_argument_count() < i) return
    call get_command_argument(i, text)
    read (text, *) argument
  end function
end module world
