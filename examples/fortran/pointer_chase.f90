! A list runs through the ranks; each link names the place of the next one. The callback of a read
! posts the next read, so the program can do something else meanwhile.
! Run: llcl-run -n 4 ./pointer_chase
module chase
  use, intrinsic :: iso_c_binding
  use llcl
  implicit none
  integer, parameter :: links = 1000
  type, bind(c) :: link_t
    type(llcl_remote_t) :: next ! the link at the next rank
    integer(c_int64_t) :: value
  end type
  type :: follower_t
    type(llcl_context_t) :: context
    type(link_t) :: link ! the last link read
    integer(c_int32_t) :: peer = 0, size = 0, left = links
    integer(c_int64_t) :: sum = 0, done = 0
  end type
  type(follower_t), target, asynchronous :: follower

contains

  recursive subroutine arrived(data, status) bind(c)
    type(c_ptr), value :: data
    integer(c_int32_t), value :: status
    type(follower_t), pointer :: me
    type(llcl_completion_t) :: then
    integer(c_int32_t) :: answer
    if (status /= LLCL_OK) error stop 'a read failed'
    call c_f_pointer(data, me)
    me%sum = me%sum + me%link%value
    me%left = me%left - 1
    me%peer = mod(me%peer + 1, me%size)
    then = llcl_callback(c_funloc(arrived), data)
    if (me%left == 1) then = llcl_store_on(me%done) ! the main program sleeps on this word
    ! A callback must not repeat a refused call: the library may wait for the callback to return.
    ! With LLCL_FLAG_PARK the library keeps a read for which there is no room, and posts it later.
    call llcl_try_read_async(me%context, me%peer, me%link%next, me%link, then, flags=LLCL_FLAG_PARK, status=answer)
    if (answer /= LLCL_OK) error stop 'a read was refused'
  end subroutine
end module chase

program pointer_chase
  use chase
  implicit none
  type(link_t), pointer :: mine(:)
  type(llcl_region_t) :: region
  type(llcl_remote_t), allocatable :: everybody(:)
  integer :: i, right

  call llcl_init(context=follower%context)
  follower%size = llcl_size(follower%context)
  right = mod(llcl_rank(follower%context) + 1, follower%size)
  allocate (everybody(0:follower%size - 1))
  call llcl_region_allocate_shared(follower%context, int(24*links, c_size_t), region, everybody)
  call c_f_pointer(llcl_region_address(region), mine, [links])
  do i = 1, links
    mine(i) = link_t(llcl_at(everybody(right), 24_c_int64_t*mod(7*i, links)), int(i, c_int64_t))
  end do
  call llcl_barrier(follower%context)

  follower%peer = right
  call llcl_connect(follower%context, count=0)
  call llcl_read_async(follower%context, right, everybody(right), follower%link, &
      llcl_callback(c_funloc(arrived), c_loc(follower)))
  call llcl_wait_word(follower%context, follower%done, 1_c_int64_t, -1_c_int64_t)
  print '(a, i0, a, i0, a, i0)', 'rank ', llcl_rank(follower%context), ' followed ', links, ' links, sum ', &
      follower%sum + follower%link%value
  call llcl_finalize(follower%context)
end program
