! A remote procedure call: each rank asks its right neighbour for the sum of some numbers. The
! neighbour's handler gets the numbers with the message and replies.
! Run: llcl-run -n 3 ./remote_call
module handlers
  use, intrinsic :: iso_c_binding
  use llcl
  implicit none
  integer(c_int32_t), parameter :: sums = 1 ! the handler's id

contains

  subroutine add_up(message, data) bind(c)
    type(llcl_am_t), value :: message
    type(c_ptr), value :: data
    type(llcl_am_view_t) :: view
    real(c_double), pointer :: numbers(:)
    integer(c_int32_t), pointer :: rank
    call llcl_am_view(message, view)
    call c_f_pointer(view%payload, numbers, [view%payload_size/8])
    call c_f_pointer(data, rank)
    call llcl_am_reply(message, sum(numbers) + rank)
  end subroutine
end module handlers

program remote_call
  use handlers
  implicit none
  type(llcl_context_t) :: context
  integer(c_int32_t), target :: rank
  integer(c_int32_t) :: right
  real(c_double) :: answer

  call llcl_init(context=context)
  rank = llcl_rank(context)
  right = mod(rank + 1, llcl_size(context))
  call llcl_am_register(context, sums, c_funloc(add_up), c_loc(rank))
  call llcl_barrier(context)
  call llcl_am(context, right, sums, payload=[10d0, 20d0, 30d0], reply=answer)
  print '(a, i0, a, f0.1)', 'rank ', right, ' answers ', answer
  call llcl_barrier(context)
  call llcl_finalize(context)
end program
