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
    if (status /= LLCL_OK) error stop 'a read failed'
    call c_f_pointer(data, me)
    me%sum = me%sum + me%link%value
    me%left = me%left - 1
    me%peer = mod(me%peer + 1, me%size)
    call read_next(me, .false.)
  end subroutine

  ! A callback must not block (waits = .false.). It leaves a read that is refused to the main
  ! program: if it repeated the read, it could wait for itself, since the queue is not emptied
  ! before the callback returns.
  recursive subroutine read_next(me, waits)
    type(follower_t), pointer, intent(in) :: me
    logical, intent(in) :: waits
    type(llcl_completion_t) :: then
    integer(c_int32_t) :: answer
    then = llcl_callback(c_funloc(arrived), c_loc(me))
    if (me%left == 1) then = llcl_store_on(me%done) ! the main program sleeps on this word
    if (waits) then
      call llcl_read_async(me%context, me%peer, me%link%next, me%link, then, status=answer)
    else
      call llcl_try_read_async(me%context, me%peer, me%link%next, me%link, then, status=answer)
    end if
    if (answer < 0) error stop 'a read failed'
    if (answer > 0) me%done = 2
  end subroutine
end module chase

program pointer_chase
  use chase
  implicit none
  type(link_t), pointer :: mine(:)
  type(follower_t), pointer :: me
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
  me => follower
  me%link%next = everybody(right)
  do
    me%done = 0 ! 1: the list has ended; 2: a read was refused
    call read_next(me, .true.)
    call llcl_wait_word(me%context, me%done, 1_c_int64_t, -1_c_int64_t)
    if (me%done == 1) exit
  end do
  print '(a, i0, a, i0, a, i0)', 'rank ', llcl_rank(follower%context), ' followed ', links, ' links, sum ', &
      follower%sum + follower%link%value
  call llcl_finalize(follower%context)
end program
