! Heat on a ring of columns: each rank owns some columns and keeps copies of its neighbours' outer
! columns next to them. A rank writes its outer columns into its neighbours' copies, each with a
! signal that counts the steps.
! Run: llcl-run -n 4 ./halo_exchange
program halo_exchange
  use, intrinsic :: iso_c_binding
  use llcl
  implicit none
  integer, parameter :: rows = 64, columns = 48, steps = 200
  type, bind(c) :: grid_t
    real(c_double) :: u(rows, 0:columns + 1, 0:1) ! two steps; columns 0 and columns + 1 are the neighbours'
    integer(c_int64_t) :: from_left, from_right   ! how many columns have arrived
  end type
  type(grid_t), pointer :: grid
  type(llcl_context_t) :: context
  type(llcl_region_t) :: region
  type(llcl_remote_t), allocatable :: everybody(:)
  type(llcl_team_t) :: world
  integer(c_int32_t) :: rank, ranks, left, right
  integer(c_int64_t) :: step
  integer :: now, next, i, j
  real(c_double) :: heat, before

  call llcl_init(context=context)
  call llcl_team_world(context, world)
  rank = llcl_rank(context)
  ranks = llcl_size(context)
  left = mod(rank + ranks - 1, ranks)
  right = mod(rank + 1, ranks)
  allocate (everybody(0:ranks - 1))
  call llcl_region_allocate_shared(context, c_sizeof(grid), region, everybody)
  call c_f_pointer(llcl_region_address(region), grid)
  grid%u(:, 1:columns, 0) = reshape([((merge(100d0, 0d0, i == j), i = 1, rows), j = 1, columns)], [rows, columns])
  before = sum_over_ranks(sum(grid%u(:, 1:columns, 0)))

  do step = 1, steps
    now = int(mod(step - 1, 2_c_int64_t))
    next = 1 - now
    ! This rank's first column goes to the right copy of its left neighbour, its last one to the
    ! left copy of the right one.
    call send(left, 1, columns + 1, offset_of(from_right=.true.))
    call send(right, columns, 0, offset_of(from_right=.false.))
    call llcl_wait_word_from(context, grid%from_left, step, -1_c_int64_t, left)
    call llcl_wait_word_from(context, grid%from_right, step, -1_c_int64_t, right)
    do j = 1, columns
      do i = 1, rows
        grid%u(i, j, next) = 0.2d0*(grid%u(i, j, now) + grid%u(i, j - 1, now) + grid%u(i, j + 1, now) &
            + grid%u(merge(rows, i - 1, i == 1), j, now) + grid%u(merge(1, i + 1, i == rows), j, now))
      end do
    end do
  end do

  heat = sum_over_ranks(sum(grid%u(:, 1:columns, next)))
  if (abs(heat - before) > 1d-9*before) error stop 'heat was lost'
  if (rank == 0) print '(a, i0, a, f0.3)', 'after ', steps, ' steps the heat is still ', heat
  call llcl_finalize(context)

contains

  ! Writes a column of this step to column `to` of a neighbour, whose word then grows by 1. Two
  ! steps have different places, so that a neighbour that is a step behind can still read its copy.
  subroutine send(peer, from, to, word)
    integer(c_int32_t), intent(in) :: peer
    integer, intent(in) :: from, to
    integer(c_int64_t), intent(in) :: word
    call llcl_write_signal(context, peer, grid%u(:, from, now), &
        llcl_at(everybody(peer), 8_c_int64_t*rows*(to + (columns + 2)*now)), llcl_at(everybody(peer), word), &
        1_c_int64_t, LLCL_SIGNAL_ADD)
  end subroutine

  integer(c_int64_t) function offset_of(from_right)
    logical, intent(in) :: from_right
    offset_of = c_sizeof(grid%u) + merge(8, 0, from_right)
  end function

  real(c_double) function sum_over_ranks(mine)
    real(c_double), intent(in) :: mine
    call llcl_allreduce(llcl_coll_params(world, mine, sum_over_ranks, LLCL_OP_ADD))
  end function
end program
