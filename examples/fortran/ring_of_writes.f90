! A ring: every rank writes an array and then a signal into its right neighbour's memory, sleeps
! until its left neighbour has done the same, and prints what it received.
! Run: llcl-run -n 4 ./ring_of_writes
program ring_of_writes
  use, intrinsic :: iso_c_binding
  use llcl
  implicit none
  integer, parameter :: length = 8
  type, bind(c) :: mailbox_t
    real(c_double) :: numbers(length)
    integer(c_int64_t) :: arrived ! how many messages
  end type
  type(mailbox_t), pointer :: mailbox
  type(llcl_context_t) :: context
  type(llcl_region_t) :: region
  type(llcl_remote_t), allocatable :: everybody(:)
  type(llcl_remote_t) :: there
  real(c_double) :: mine(length)
  integer(c_int32_t) :: rank, size, right
  integer :: i

  call llcl_init(context=context)
  rank = llcl_rank(context)
  size = llcl_size(context)
  right = mod(rank + 1, size)

  ! Allocates a mailbox at every rank, and returns the addresses of all.
  allocate (everybody(0:size - 1))
  call llcl_region_allocate_shared(context, c_sizeof(mailbox), region, everybody)
  call c_f_pointer(llcl_region_address(region), mailbox)

  ! The array to send may lie in any memory.
  mine = [(real(100 * rank + i, c_double), i = 1, length)]
  there = everybody(right)
  call llcl_write_signal(context, right, mine, there, llcl_at(there, 8_c_int64_t * length), 1_c_int64_t, LLCL_SIGNAL_ADD)

  call llcl_wait_word(context, mailbox%arrived, 1_c_int64_t, -1_c_int64_t)
  print '(a, i0, a, i0, a, *(f7.1))', 'rank ', rank, ' of ', size, ':', mailbox%numbers

  call llcl_finalize(context)
end program
