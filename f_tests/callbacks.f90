! Broken if this fails: a callback, which is a bind(c) procedure, gets wrong data or a wrong status,
! or cannot post the next operation; a chain of a hundred reads does not end; or a completion fires
! not at all or twice. With the functions of llcl and those of llcl_c.
module chain
  use testing
  use llcl_c, only: c_try_read => llcl_try_read_async
  implicit none
  type :: chain_t
    type(llcl_remote_t) :: next
    integer(c_int32_t) :: peer, left
    integer(c_int64_t) :: sum
    integer(c_int64_t) :: got, done
  end type
  type(chain_t), target, asynchronous, save :: it

contains

  recursive subroutine hop(data, status) bind(c)
    type(c_ptr), value :: data
    integer(c_int32_t), value :: status
    type(chain_t), pointer :: me
    type(llcl_read_params_t) :: params
    integer(c_int32_t) :: answer
    call c_f_pointer(data, me)
    if (status /= LLCL_OK) me%left = -1000
    me%sum = me%sum + me%got
    me%left = me%left - 1
    params%peer = me%peer
    params%source = llcl_at(me%next, 8 * me%got)
    params%destination = llcl_local_address(me%got)
    params%size = 8
    params%on_complete = llcl_callback(c_funloc(hop), data)
    if (me%left == 1) params%on_complete = llcl_store_on(me%done)
    do
      if (mod(me%left, 2) == 0) then
        answer = c_try_read(context, params)
      else
        call llcl_try_read_async(context, me%peer, params%source, me%got, params%on_complete, status=answer)
      end if
      if (answer <= 0) exit
    end do
    call expect(answer, LLCL_OK, 'a read by a callback')
  end subroutine
end module chain

program callbacks
  use chain
  implicit none
  integer(c_int64_t), pointer :: words(:)
  type(llcl_completion_t) :: none
  integer :: i
  integer, parameter :: hops = 100

  call begin(4096)
  call c_f_pointer(llcl_region_address(region), words, [512])
  ! Word i holds i + 1.
  words(:300) = [(i, i = 1, 300)]
  call llcl_barrier(context)
  it = chain_t(everybody(right), right, hops, 0_c_int64_t, 0_c_int64_t, 0_c_int64_t)
  call llcl_read_async(context, right, it%next, it%got, llcl_callback(c_funloc(hop), c_loc(it)))
  call llcl_wait_word(context, it%done, 1_c_int64_t, patience)
  call check(it%done == 1 .and. it%left == 1 .and. it%sum + it%got == hops * (hops + 1) / 2, 'the sum of a chain')
  none = llcl_no_completion()
  call check(none%kind == LLCL_COMPLETE_NONE, 'llcl_no_completion')
  call end_well()
end program
