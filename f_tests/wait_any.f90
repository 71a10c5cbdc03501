! Broken if this fails: llcl_wait_any or llcl_wait_fd does not take an array of words, looks at its
! first word only, or needs the arguments that may be left out.
! ranks: 1 2
program wait_any
  use testing
  implicit none
  type(llcl_awaited_t) :: words(2)
  type(llcl_write_value_params_t) :: put
  integer(c_int64_t), pointer :: box(:)
  integer(c_int32_t) :: which, descriptor, status

  call begin(4096)
  call c_f_pointer(llcl_region_address(region), box, [2])
  words(1) = llcl_awaited_t(word=c_loc(box(1)), at_least=1)
  words(2) = llcl_awaited_t(word=c_loc(box(2)), at_least=1)
  call llcl_wait_any(context, words, 2, 0, 0_c_int64_t, which, status)
  call expect(status, LLCL_ERR_TIMEOUT, 'no word has its value')
  call llcl_barrier(context)

  ! The left neighbour changes the second word only.
  put = llcl_write_value_params_t(peer=right, destination=llcl_at(everybody(right), 8_c_int64_t), value=1, size=8)
  call llcl_write_value(context, put)
  which = -1
  call llcl_wait_any(context, words, 2, 0, patience, which)
  call check(which == 1 .and. box(1) == 0, 'the second word')
  call llcl_wait_any(context, words, 2, 0, patience)
  call llcl_wait_any(context, words(1:1), 1, 0, 0_c_int64_t, which, status)
  call expect(status, LLCL_ERR_TIMEOUT, 'the first word alone')
  descriptor = -1
  call llcl_wait_fd(context, words, 2, 0, descriptor)
  call check(descriptor >= 0, 'llcl_wait_fd')

  ! No words.
  call llcl_wait_any(context, count=0, flags=LLCL_WAIT_MESSAGES, timeout_ns=0_c_int64_t, status=status)
  call expect(status, LLCL_ERR_TIMEOUT, 'no message')
  call llcl_wait_fd(context, count=0, flags=0, descriptor=descriptor)
  call end_well()
end program wait_any
