! Broken if this fails: a handler, which is a bind(c) procedure, gets a wrong header, tag or
! payload, or its answer is lost: a reply, a response, or a reply after it has returned. In each
! calling form, and by polling.
module handlers
  use testing
  implicit none
  integer(c_int32_t), parameter :: adds = 1, asks_back = 2, hears = 3, keeps = 4
  type(llcl_am_t) :: kept
  integer(c_int64_t), target, asynchronous :: heard = 0

contains

  ! Replies with the payload's numbers, each plus the header's number and the tag.
  subroutine add(message, data) bind(c)
    type(llcl_am_t), value :: message
    type(c_ptr), value :: data
    type(llcl_am_view_t) :: view
    real(c_double), pointer :: numbers(:), more
    real(c_double) :: answer(8)
    integer :: n
    call llcl_am_view(message, view)
    n = int(view%payload_size / 8)
    call c_f_pointer(view%payload, numbers, [n])
    answer(:n) = numbers + view%tag
    if (view%header_size == 8) then
      call c_f_pointer(view%header, more)
      answer(:n) = answer(:n) + more
    end if
    call check(view%id == adds .and. view%kind == LLCL_AM_MEDIUM .and. c_associated(data), 'a view')
    call llcl_am_reply(message, answer(:n))
  end subroutine

  ! Answers by a message.
  subroutine ask_back(message, data) bind(c)
    type(llcl_am_t), value :: message
    type(c_ptr), value :: data
    type(llcl_am_params_t) :: answer
    answer%id = hears
    call llcl_am_respond(message, answer)
    call check(.not. c_associated(data), 'no data')
  end subroutine

  subroutine hear(message, data) bind(c)
    type(llcl_am_t), value :: message
    type(c_ptr), value :: data
    type(llcl_am_view_t) :: view
    integer(c_int64_t), pointer :: count
    call c_f_pointer(data, count)
    count = count + 1
    call llcl_am_view(message, view)
    call llcl_wake(context, rank)
  end subroutine

  subroutine keep(message, data) bind(c)
    type(llcl_am_t), value :: message
    type(c_ptr), value :: data
    kept = llcl_am_retain(message)
    call hear(message, data)
  end subroutine
end module handlers

program messages
  use handlers
  implicit none
  integer(c_int64_t), target, asynchronous :: complete, local
  integer(c_size_t), asynchronous :: bytes
  real(c_double), asynchronous :: answer(4)
  integer(c_int32_t) :: status, handled
  type(llcl_am_params_t) :: params
  real(c_double), target :: numbers(2)

  call begin(4096)
  complete = 0
  local = 0
  call llcl_am_register(context, adds, c_funloc(add), c_loc(heard))
  call llcl_am_register(context, asks_back, c_funloc(ask_back), c_null_ptr)
  call llcl_am_register(context, hears, c_funloc(hear), c_loc(heard))
  call llcl_am_register(context, keeps, c_funloc(keep), c_loc(heard))
  call llcl_barrier(context)

  numbers = [1d0, 2d0]
  answer = 0
  call llcl_am(context, right, adds, numbers, answer, bytes, header=0.5d0, tag=10_c_int16_t)
  call check(bytes == 16 .and. all(answer == [11.5d0, 12.5d0, 0d0, 0d0]), 'llcl_am')
  call llcl_am_async(context, right, adds, numbers, answer(3:), on_local=llcl_add_on(local), on_complete=llcl_add_on(complete))
  call ended()
  call check(all(answer(3:) == numbers), 'llcl_am_async')
  do
    call llcl_try_am_async(context, right, adds, numbers, answer, on_local=llcl_add_on(local), on_complete=llcl_add_on(complete), &
        status=status)
    if (status <= 0) exit
  end do
  call expect(status, LLCL_OK, 'llcl_try_am_async')
  call ended()
  call check(all(answer(:2) == numbers), 'llcl_try_am_async')

  params%peer = right
  params%id = asks_back
  call llcl_am(context, params)
  call check(heard == 1, 'a response')
  params%on_local = llcl_add_on(local)
  params%on_complete = llcl_add_on(complete)
  call llcl_am_async(context, params)
  call ended()
  do
    call llcl_try_am_async(context, params, status)
    if (status <= 0) exit
  end do
  call ended()
  call check(heard == 3, 'responses by structs')

  ! Replies after the handler has returned, and releases the message.
  call llcl_barrier(context)
  answer = 0
  call llcl_am_async(context, right, keeps, reply=answer, on_complete=llcl_add_on(complete))
  do while (heard < 4)
    call llcl_am_wait(context, 1000000_c_int64_t, status)
    if (status /= LLCL_ERR_TIMEOUT) call expect(status, LLCL_OK, 'llcl_am_wait')
  end do
  call llcl_am_reply(kept, 3.5d0)
  call llcl_am_reply(kept, 3.5d0, status)
  call expect(status, LLCL_ERR_STATE, 'a second answer')
  call llcl_am_release(kept)
  call llcl_wait_word(context, complete, 1_c_int64_t, patience)
  call check(answer(1) == 3.5d0 .and. answer(2) == 0, 'a late answer')
  call llcl_am_poll(context, 4, handled)
  call llcl_am_poll(context, 4)
  call llcl_am_register(context, adds, c_null_funptr, c_null_ptr)
  call llcl_barrier(context)
  call llcl_am(context, right, adds, numbers, status=status)
  call expect(status, LLCL_ERR_NO_HANDLER, 'a removed handler')
  call llcl_am(context, right, adds, numbers(2:1:-1), status=status)
  call expect(status, LLCL_ERR_INVALID, 'a payload in pieces')
  call end_well()

contains

  subroutine ended()
    call llcl_wait_word(context, complete, 1_c_int64_t, patience)
    call check(local == 1 .and. complete == 1, 'completions')
    local = 0
    complete = 0
  end subroutine
end program
