! A 2-D stencil, as stencil.c. Only exchange_mpi uses MPI, and only exchange_llcl the library. The
! result must equal that of the whole grid bit by bit.
! Run: llcl-run -n 4 ./stencil [n] [steps]; both ways: mpirun -n 4 ./stencil_mpi [n] [steps]
program stencil
  use, intrinsic :: iso_c_binding
  use world
  implicit none
  integer, parameter :: up = 0, down = 1, left = 2, right = 3 ! ieor(side, 1) is the opposite side
  type(llcl_context_t) :: context
  type(llcl_region_t) :: region
  type(llcl_remote_t), allocatable :: blocks(:)
  real(c_double), pointer, contiguous :: memory(:), u(:, :, :), edges(:, :, :, :) ! edges: cell, side, step, received or to send
  integer(c_int64_t), pointer :: word(:), counters(:, :)
  integer(c_int64_t) :: exchanges(0:1) = 0
  real(c_double), allocatable :: whole(:, :, :)
  integer :: n, steps, cells, ranks_down, ranks_across, place(2), peers(0:3), step, k
  real(c_double) :: by_llcl(5)
#ifdef WITH_MPI
  real(c_double) :: with_mpi(5)
  integer :: error
#endif
  integer(c_int32_t) :: rank, ranks
  call begin(context)
  rank = llcl_rank(context); ranks = llcl_size(context)
  n = argument(1, 64); steps = argument(2, 100)
  ranks_across = int(sqrt(ranks + 0.5))
  do while (mod(ranks, ranks_across) /= 0)
    ranks_across = ranks_across - 1
  end do
  ranks_down = ranks/ranks_across
  place = [rank/ranks_across, mod(rank, ranks_across)]
  peers = [merge(rank - ranks_across, -1, place(1) > 0), merge(rank + ranks_across, -1, place(1) + 1 < ranks_down), &
      merge(rank - 1, -1, place(2) > 0), merge(rank + 1, -1, place(2) + 1 < ranks_across)]

  ! Two grids with a margin of one cell, rows and columns received and to send, counters.
  cells = 2*(n + 2)**2
  allocate (blocks(0:ranks - 1), whole(0:ranks_down*n + 1, 0:ranks_across*n + 1, 0:1))
  call llcl_region_allocate_shared(context, int(8*(cells + 16*n + 8), c_size_t), region, blocks)
  call c_f_pointer(llcl_region_address(region), memory, [cells + 16*n + 8])
  u(0:n + 1, 0:n + 1, 0:1) => memory(:cells)
  edges(1:n, 0:3, 0:1, 0:1) => memory(cells + 1:cells + 16*n)
  call c_f_pointer(c_loc(memory(cells + 16*n + 1)), word, [8])
  counters(0:3, 0:1) => word
  whole = 0
  whole(:, :, 0) = initial(0, 0, ranks_down*n, ranks_across*n)
  do step = 1, steps
    call sweep(whole(:, :, mod(step - 1, 2)), whole(:, :, mod(step, 2)))
  end do

  do k = 1, size(by_llcl)
    by_llcl(k) = run(by_mpi=.false.)
#ifdef WITH_MPI
    with_mpi(k) = run(by_mpi=.true.)
#endif
  end do
  if (rank == 0) print '(a, 4(i0, a), f0.2, a)', 'stencil in Fortran: ', ranks_down, ' x ', ranks_across, ' ranks of ', n, &
      ' x ', n, ' cells: an exchange takes ', minval(by_llcl), ' us by the library'
#ifdef WITH_MPI
  if (rank == 0) print '(a, f0.2, a, f0.2)', '  ', minval(with_mpi), ' us by MPI, ratio ', minval(by_llcl)/minval(with_mpi)
#endif
  call finish(context)

contains

#ifdef WITH_MPI
  subroutine exchange_mpi(now)
    integer, intent(in) :: now
    integer :: side, all(0:7), peer
    do side = up, right
      peer = merge(peers(side), MPI_PROC_NULL, peers(side) >= 0)
      call MPI_Irecv(edges(1, side, now, 0), n, MPI_DOUBLE_PRECISION, peer, ieor(side, 1), MPI_COMM_WORLD, all(side), error)
      call MPI_Isend(edges(1, side, now, 1), n, MPI_DOUBLE_PRECISION, peer, side, MPI_COMM_WORLD, all(4 + side), error)
    end do
    call MPI_Waitall(8, all, MPI_STATUSES_IGNORE, error)
  end subroutine
#endif

  ! A signal counts each write at the neighbour. Even and odd steps have their cells and counters.
  ! A rank overwrites cells two steps later: the neighbour's next signal shows that it read them.
  subroutine exchange_llcl(now)
    integer, intent(in) :: now
    integer :: side
    exchanges(now) = exchanges(now) + 1
    do side = up, right
      if (peers(side) >= 0) call llcl_write_signal_async(context, peers(side), edges(:, side, now, 1), &
          llcl_at(blocks(peers(side)), 8_c_int64_t*(cells + n*(ieor(side, 1) + 4*now))), &
          llcl_at(blocks(peers(side)), 8_c_int64_t*(cells + 16*n + 4*now + ieor(side, 1))), 1_c_int64_t, LLCL_SIGNAL_ADD)
    end do
    do side = up, right
      if (peers(side) >= 0) call llcl_wait_word_from(context, counters(side, now), exchanges(now), -1_c_int64_t, peers(side))
    end do
  end subroutine

  subroutine exchange(by_mpi, now)
    logical, intent(in) :: by_mpi
    integer, intent(in) :: now
    edges(:, up, now, 1) = u(1, 1:n, now)
    edges(:, down, now, 1) = u(n, 1:n, now)
    edges(:, left, now, 1) = u(1:n, 1, now)
    edges(:, right, now, 1) = u(1:n, n, now)
    if (.not. by_mpi) call exchange_llcl(now)
#ifdef WITH_MPI
    if (by_mpi) call exchange_mpi(now)
#endif
    if (peers(up) >= 0) u(0, 1:n, now) = edges(:, up, now, 0)
    if (peers(down) >= 0) u(n + 1, 1:n, now) = edges(:, down, now, 0)
    if (peers(left) >= 0) u(1:n, 0, now) = edges(:, left, now, 0)
    if (peers(right) >= 0) u(1:n, n + 1, now) = edges(:, right, now, 0)
  end subroutine

  subroutine sweep(from, to)
    real(c_double), intent(in), contiguous :: from(0:, 0:)
    real(c_double), intent(inout), contiguous :: to(0:, 0:)
    integer :: i, j
    do j = 1, ubound(from, 2) - 1
      do i = 1, ubound(from, 1) - 1
        to(i, j) = 0.2d0*(from(i, j) + from(i - 1, j) + from(i + 1, j) + from(i, j - 1) + from(i, j + 1))
      end do
    end do
  end subroutine

  ! Sets a grid of n by m cells, whose first cell is the one after (i, j) of the whole grid.
  function initial(i, j, n, m) result(grid)
    integer, intent(in) :: i, j, n, m
    real(c_double) :: grid(0:n + 1, 0:m + 1)
    integer :: k, l
    grid = 0
    grid(1:n, 1:m) = reshape([((mod((i + k)*7919 + (j + l)*104729, 1000)/7d0, k = 1, n), l = 1, m)], [n, m])
  end function

  ! Returns the mean microseconds of an exchange, since single ones vary if ranks share a core.
  real(c_double) function run(by_mpi)
    logical, intent(in) :: by_mpi
    integer(c_int64_t) :: before, after, rate
    integer :: step, k
    u(:, :, 0) = initial(place(1)*n, place(2)*n, n, n)
    run = 0
    call llcl_barrier(context) ! no rank writes into cells that their owner is still setting
    do step = 1, steps
      call system_clock(before)
      call exchange(by_mpi, mod(step - 1, 2))
      call system_clock(after, rate)
      run = run + 1d6*(after - before)/(rate*real(steps, c_double))
      call sweep(u(:, :, mod(step - 1, 2)), u(:, :, mod(step, 2)))
    end do
    k = mod(steps, 2)
    if (any(u(1:n, 1:n, k) /= whole(place(1)*n + 1:(place(1) + 1)*n, place(2)*n + 1:(place(2) + 1)*n, k))) error stop 'wrong cells'
  end function
end program
