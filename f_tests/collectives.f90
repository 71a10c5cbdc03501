! Broken if this fails: a collective on arrays, by a plan or by a blocking call, gives a wrong
! result; llcl_coll_params takes a wrong type or count from the arrays; or a team that is split or
! made from a list is wrong.
! ranks: 1 3
module sums
  use testing
  implicit none

contains

  ! Returns the value with the larger absolute value; if they are equal, the left one.
  subroutine larger(left, right, result, count, data) bind(c)
    type(c_ptr), value :: left, right, result, data
    integer(c_int64_t), value :: count
    real(c_double), pointer :: a(:), b(:), c(:)
    integer(c_int64_t) :: i
    call c_f_pointer(left, a, [count])
    call c_f_pointer(right, b, [count])
    call c_f_pointer(result, c, [count])
    if (c_associated(data)) return
    do i = 1, count
      c(i) = merge(b(i), a(i), abs(b(i)) > abs(a(i)))
    end do
  end subroutine
end module sums

program collectives
  use sums
  implicit none
  integer, parameter :: barrier = 0, broadcast = 1, reduce = 2, allreduce = 3, gather = 4, gatherv = 5, scatter = 6, &
      scatterv = 7, allgather = 8, allgatherv = 9, alltoall = 10, alltoallv = 11, reduce_scatter = 12, reduce_scatterv = 13, &
      scan = 14, exscan = 15
  type(llcl_team_t) :: world, team
  type(llcl_coll_params_t) :: params
  type(llcl_coll_t) :: plan
  type(llcl_coll_info_t) :: info
  integer(c_int32_t) :: status, me
  integer(c_int64_t), allocatable, target :: counts(:), offsets(:)
  integer(c_int32_t), allocatable, target, asynchronous :: one(:), every(:, :), other(:, :), got(:)
  integer(c_int64_t), target, asynchronous :: ends
  integer :: which, i

  call begin(4096)
  call llcl_team_world(context, world)
  me = rank
  allocate (one(2), got(2), every(2, 0:ranks - 1), other(2, 0:ranks - 1))
  allocate (counts(0:ranks - 1), offsets(0:ranks - 1))
  counts = 2
  offsets = [(2 * i, i = 0, ranks - 1)]
  do which = barrier, exscan
    call prepare()
    call at_once()
    call right_result(' at once')
    call prepare()
    call by_plan()
    call right_result(' by a plan')
  end do
  call types()
  call teams()
  call end_well()

contains

  subroutine prepare()
    one = [10 * me, 10 * me + 1]
    got = -1
    do i = 0, ranks - 1
      every(:, i) = [100 * me + 10 * i, 100 * me + 10 * i + 1]
    end do
    other = -1
    select case (which)
    case (barrier)
      params = llcl_coll_params(world)
    case (broadcast)
      if (me == 0) got = [7, 8]
      params = llcl_coll_params(world, receive=got)
    case (reduce, allreduce, scan, exscan)
      params = llcl_coll_params(world, one, got, LLCL_OP_ADD)
    case (gather, gatherv, allgather, allgatherv)
      params = llcl_coll_params(world, one, other)
    case (scatter, scatterv)
      params = llcl_coll_params(world, every, got)
    case (alltoall, alltoallv)
      params = llcl_coll_params(world, every, other, count=2_c_int64_t)
    case (reduce_scatter, reduce_scatterv)
      params = llcl_coll_params(world, every, got, LLCL_OP_ADD)
    end select
    params%send_counts = c_loc(counts)
    params%send_offsets = c_loc(offsets)
    params%receive_counts = c_loc(counts)
    params%receive_offsets = c_loc(offsets)
  end subroutine

  subroutine at_once()
    select case (which)
    case (barrier); call llcl_team_barrier(world)
    case (broadcast); call llcl_broadcast(params)
    case (reduce); call llcl_reduce(params)
    case (allreduce); call llcl_allreduce(params)
    case (gather); call llcl_gather(params)
    case (gatherv); call llcl_gatherv(params)
    case (scatter); call llcl_scatter(params)
    case (scatterv); call llcl_scatterv(params)
    case (allgather); call llcl_allgather(params)
    case (allgatherv); call llcl_allgatherv(params)
    case (alltoall); call llcl_alltoall(params)
    case (alltoallv); call llcl_alltoallv(params)
    case (reduce_scatter); call llcl_reduce_scatter(params)
    case (reduce_scatterv); call llcl_reduce_scatterv(params)
    case (scan); call llcl_scan(params)
    case (exscan); call llcl_exscan(params)
    end select
  end subroutine

  subroutine by_plan()
    ends = 0
    params%on_complete = llcl_add_on(ends)
    select case (which)
    case (barrier); call llcl_barrier_init(params, plan)
    case (broadcast); call llcl_broadcast_init(params, plan)
    case (reduce); call llcl_reduce_init(params, plan)
    case (allreduce); call llcl_allreduce_init(params, plan)
    case (gather); call llcl_gather_init(params, plan)
    case (gatherv); call llcl_gatherv_init(params, plan)
    case (scatter); call llcl_scatter_init(params, plan)
    case (scatterv); call llcl_scatterv_init(params, plan)
    case (allgather); call llcl_allgather_init(params, plan)
    case (allgatherv); call llcl_allgatherv_init(params, plan)
    case (alltoall); call llcl_alltoall_init(params, plan)
    case (alltoallv); call llcl_alltoallv_init(params, plan)
    case (reduce_scatter); call llcl_reduce_scatter_init(params, plan)
    case (reduce_scatterv); call llcl_reduce_scatterv_init(params, plan)
    case (scan); call llcl_scan_init(params, plan)
    case (exscan); call llcl_exscan_init(params, plan)
    end select
    call llcl_coll_start(plan)
    if (mod(which, 2) == 0) then
      call llcl_coll_wait(plan, patience)
    else
      do
        call llcl_coll_test(plan, status)
        if (status /= LLCL_RETRY_BUSY) exit
      end do
      call expect(status, LLCL_OK, 'llcl_coll_test')
    end if
    call llcl_wait_word(context, ends, 1_c_int64_t, patience)
    call llcl_coll_query(plan, info)
    call check(info%rounds == 1 .and. len(llcl_text(info%algorithm)) > 0 .and. len(llcl_text(info%reason)) > 0, 'llcl_coll_query')
    call llcl_coll_free(plan)
  end subroutine

  ! The sum of 10 r + j over the first n ranks.
  integer function total(n, j)
    integer, intent(in) :: n, j
    total = 10 * (n * (n - 1) / 2) + n * j
  end function

  subroutine right_result(how)
    character(len=*), intent(in) :: how
    character(len=40) :: what
    logical :: ok
    integer :: r
    write (what, '(a, i0, a)') 'collective ', which, how
    ok = .true.
    select case (which)
    case (broadcast); ok = all(got == [7, 8])
    case (reduce); if (me == 0) ok = all(got == [total(ranks, 0), total(ranks, 1)])
    case (allreduce); ok = all(got == [total(ranks, 0), total(ranks, 1)])
    case (gather, gatherv, allgather, allgatherv)
      if (me == 0 .or. which >= allgather) ok = all([(all(other(:, r) == [10 * r, 10 * r + 1]), r = 0, ranks - 1)])
    case (scatter, scatterv); ok = all(got == [10 * me, 10 * me + 1])
    case (alltoall, alltoallv)
      ok = all([(all(other(:, r) == 100 * r + [10 * me, 10 * me + 1]), r = 0, ranks - 1)])
    case (reduce_scatter, reduce_scatterv)
      ok = all(got == 50 * ranks * (ranks - 1) + ranks * [10 * me, 10 * me + 1])
    case (scan); ok = all(got == [total(me + 1, 0), total(me + 1, 1)])
    case (exscan); if (me > 0) ok = all(got == [total(me, 0), total(me, 1)])
    end select
    call check(ok, trim(what))
  end subroutine

  ! The library's type for each type of a descriptor.
  subroutine types()
    real(c_double), asynchronous :: a8(3), b8(3), c8(3)
    real(c_float) :: a4(2, 2), b4(2, 2)
    complex(c_double_complex) :: c, d
    real(c_long_double) :: long, long_sum
    real(c_double), pointer :: none(:) => null()
    character(len=5) :: text, texts(0:ranks - 1)
    character(len=3) :: shorter(0:ranks - 1)
    logical(c_bool) :: l, m
    a8 = [1d0, 2d0, 3d0]
    params = llcl_coll_params(world, a8, b8, LLCL_OP_ADD)
    call check(params%type == LLCL_TYPE_F64 .and. params%count == 3 .and. params%element_size == 0, 'doubles')
    call llcl_allreduce(params)
    call check(all(b8 == a8 * ranks), 'a sum of doubles')
    a4 = 1.5
    call llcl_allreduce(llcl_coll_params(world, a4, b4, LLCL_OP_ADD))
    call check(all(b4 == 1.5 * ranks), 'a sum of reals')
    c = (1d0, -1d0)
    call llcl_allreduce(llcl_coll_params(world, c, d, LLCL_OP_ADD))
    call check(d == c * ranks, 'a sum of complex numbers')
    l = me == 0
    call llcl_allreduce(llcl_coll_params(world, l, m, LLCL_OP_OR))
    call check(logical(m), 'or')
    write (text, '(a, i0)') 'rank', me
    call llcl_allgather(llcl_coll_params(world, text, texts))
    call check(texts(0) == 'rank0' .and. texts(me) == text, 'characters')
    call llcl_allreduce(llcl_coll_params(world, receive=a8, op=LLCL_OP_MAX, &
                                         count=size(a8, kind=c_int64_t), flags=LLCL_COLL_IN_PLACE))
    call check(all(a8 == [1d0, 2d0, 3d0]), 'in place')
    long = me + 1
    call llcl_allreduce(llcl_coll_params(world, long, long_sum, LLCL_OP_ADD))
    call check(long_sum == ranks * (ranks + 1) / 2, 'a sum of long doubles')
    call llcl_broadcast(llcl_coll_params(world, send=none, receive=b8))
    call check(all(b8 == a8 * ranks), 'an array that is a null pointer is absent')
    a8 = -(me + [1d0, 2d0, 3d0])
    params = llcl_coll_params(world, a8, b8, LLCL_OP_USER)
    params%function = c_funloc(larger)
    call llcl_allreduce(params)
    call check(all(b8 == -(ranks - 1 + [1d0, 2d0, 3d0])), 'a function of the user')
    if (me == ranks - 1) b8 = 4
    call llcl_broadcast(llcl_coll_params(world, receive=b8, root=ranks - 1))
    call check(all(b8 == 4), 'another root')
    ! Another round with other arrays.
    a8 = 2
    params = llcl_coll_params(world, a8, b8, LLCL_OP_ADD, flags=LLCL_COLL_REBIND)
    call llcl_allreduce_init(params, plan)
    call llcl_coll_start_with(plan, llcl_local_address(a8), llcl_local_address(c8))
    call llcl_coll_wait(plan, patience)
    call llcl_coll_free(plan)
    call check(all(c8 == 2*ranks), 'llcl_coll_start_with')
    ! Arrays that cannot be used are refused at every rank.
    call llcl_allreduce(llcl_coll_params(world, a8, b4, LLCL_OP_ADD), status)
    call expect(status, LLCL_ERR_INVALID, 'two types')
    call check(index(llcl_last_error(), 'different types') > 0, 'the sentence of two types')
    call llcl_allgather(llcl_coll_params(world, text, shorter), status)
    call expect(status, LLCL_ERR_INVALID, 'two lengths')
    call check(index(llcl_last_error(), 'different lengths') > 0, 'the sentence of two lengths')
    call llcl_allreduce(llcl_coll_params(world, a4(1, :), b4(1, :), LLCL_OP_ADD), status)
    call expect(status, LLCL_ERR_INVALID, 'rows')
    call check(index(llcl_last_error(), 'one after the other') > 0, 'the sentence of rows')
    ! The array has the blocks of all ranks, so its size is no count.
    call llcl_allgather(llcl_coll_params(world, receive=a8, flags=LLCL_COLL_IN_PLACE), status)
    call expect(status, LLCL_ERR_INVALID, 'in place without a count')
    call check(index(llcl_last_error(), '`count` is absent') > 0, 'the sentence of an absent count')
  end subroutine

  subroutine teams()
    integer(c_int32_t) :: list(ranks)
    call check(llcl_team_size(world) == ranks .and. llcl_team_rank(world) == me, 'the team of all')
    call llcl_team_split(world, merge(0, LLCL_TEAM_NONE, me < 2), -me, team)
    if (me < 2) then
      call check(llcl_team_size(team) == min(ranks, 2) .and. llcl_team_peer(team, llcl_team_rank(team)) == rank, 'llcl_team_split')
      call llcl_team_free(team)
    else
      call check(.not. c_associated(team%handle), 'no team')
    end if
    list = [(ranks - 1 - i, i = 0, ranks - 1)]
    call llcl_team_create(context, list, ranks, team)
    call check(llcl_team_find(team, 0) == ranks - 1 .and. llcl_team_rank(team) == ranks - 1 - me, 'llcl_team_create')
    call llcl_team_barrier(team)
    call llcl_team_free(team)
  end subroutine
end program
