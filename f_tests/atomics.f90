! Broken if this fails: an atomic on a scalar of some type, by value or by parameter struct, in some
! calling form, returns a wrong former value, loses the addition of a rank, or does not count as
! absent where it is not allocated; or a call without its operand is accepted, as if it were 0.
! ranks: 1 3
program atomics
  use testing
  implicit none
  type(llcl_remote_t) :: word
  type(llcl_fetch_add_params_t) :: add
  type(llcl_compare_swap_params_t) :: swap
  type(llcl_atomic_params_t) :: params
  type(llcl_atomic_info_t) :: info
  integer(c_int64_t), target, asynchronous :: complete
  integer(c_int64_t), target :: before, i8
  integer(c_int32_t) :: i4, status
  real(c_float) :: r4
  real(c_double) :: r8
  integer(c_int16_t) :: i2
  integer(c_int32_t), allocatable :: none

  call begin(4096)
  complete = 0
  word = everybody(0)

  ! Every rank adds 6 times; all ranks check the sum.
  add = llcl_fetch_add_params_t(peer=0, target=word, operand=1, result=c_loc(before))
  call llcl_fetch_add(context, add)
  call check(before < 6 * ranks, 'llcl_fetch_add')
  add%on_complete = llcl_add_on(complete)
  call llcl_fetch_add_async(context, add)
  call ended(1)
  do
    call llcl_try_fetch_add_async(context, add, status)
    if (status <= 0) exit
  end do
  call ended(1)
  call llcl_atomic(context, 0, word, LLCL_OP_ADD, 1_c_int64_t, result=i8)
  call llcl_atomic_async(context, 0, word, LLCL_OP_ADD, 1_c_int64_t, on_complete=llcl_add_on(complete))
  call ended(1)
  do
    call llcl_try_atomic_async(context, 0, word, LLCL_OP_ADD, 1_c_int64_t, on_complete=llcl_add_on(complete), status=status)
    if (status <= 0) exit
  end do
  call ended(1)
  call llcl_barrier(context)
  call llcl_atomic(context, 0, word, LLCL_OP_LOAD, result=i8)
  call check(i8 == 6 * ranks, 'all additions')

  ! The rest uses a word at the right neighbour that only this rank accesses.
  word = llcl_at(everybody(right), 64_c_int64_t)
  swap = llcl_compare_swap_params_t(peer=right, target=word, compare=0, desired=5, result=c_loc(before))
  call llcl_compare_swap(context, swap)
  call check(before == 0, 'llcl_compare_swap')
  swap%compare = 5
  swap%desired = 6
  swap%on_complete = llcl_add_on(complete)
  call llcl_compare_swap_async(context, swap)
  call ended(1)
  call check(before == 5, 'llcl_compare_swap_async')
  do
    call llcl_try_compare_swap_async(context, swap, status)
    if (status <= 0) exit
  end do
  call ended(1)
  call check(before == 6, 'llcl_try_compare_swap_async fails')
  call llcl_atomic(context, right, word, LLCL_OP_COMPARE_SWAP, 9_c_int64_t, result=i8, compare=6_c_int64_t)
  call check(i8 == 6, 'compare and swap of a scalar')
  call llcl_atomic(context, right, word, LLCL_OP_STORE, 1.5d0)
  call llcl_atomic(context, right, word, LLCL_OP_ADD, 2.25d0, result=r8)
  call check(r8 == 1.5d0, 'a double before')
  call llcl_atomic(context, right, word, LLCL_OP_MAX, -1d0, result=r8)
  call check(r8 == 3.75d0, 'a double after')
  call llcl_atomic(context, right, word, LLCL_OP_STORE, 0.5)
  call llcl_atomic(context, right, word, LLCL_OP_SWAP, 2.5, result=r4)
  call check(r4 == 0.5, 'a real')
  call llcl_atomic(context, right, word, LLCL_OP_STORE, -3)
  call llcl_atomic(context, right, word, LLCL_OP_SUB, 4, result=i4)
  call check(i4 == -3, 'an integer')
  call llcl_atomic(context, right, word, LLCL_OP_LOAD, result=i4)
  call check(i4 == -7, 'an integer after')

  params = llcl_atomic_params_t(peer=right, target=word, op=LLCL_OP_STORE, type=LLCL_TYPE_U64, operand=12)
  call llcl_atomic(context, params)
  params%op = LLCL_OP_ADD
  params%result = c_loc(before)
  params%on_complete = llcl_add_on(complete)
  call llcl_atomic_async(context, params)
  call ended(1)
  do
    call llcl_try_atomic_async(context, params, status)
    if (status <= 0) exit
  end do
  call ended(1)
  call check(before == 24, 'atomics by a struct')
  call llcl_atomic_query(context, right, word, LLCL_OP_ADD, LLCL_TYPE_F64, info)
  call check(info%supported == 1 .and. info%domain == LLCL_DOMAIN_PROCESSOR, 'llcl_atomic_query')

  call llcl_atomic(context, right, word, LLCL_OP_ADD, 1_c_int16_t, status=status)
  call expect(status, LLCL_ERR_INVALID, 'two bytes')
  call check(index(llcl_last_error(), 'scalars of one type') > 0, 'the sentence of two bytes')
  call llcl_atomic(context, right, word, LLCL_OP_ADD, 1, result=i8, status=status)
  call expect(status, LLCL_ERR_INVALID, 'two types')
  call llcl_atomic(context, right, word, LLCL_OP_ADD, 1, result=i2, status=status)
  call expect(status, LLCL_ERR_INVALID, 'a result of two bytes')
  call llcl_atomic(context, right, word, LLCL_OP_ADD, [1, 2], status=status)
  call expect(status, LLCL_ERR_INVALID, 'an array')
  call llcl_atomic(context, right, word, LLCL_OP_LOAD, status=status)
  call expect(status, LLCL_ERR_INVALID, 'nothing')
  call llcl_atomic(context, right, word, LLCL_OP_LOAD, result=none, status=status)
  call expect(status, LLCL_ERR_INVALID, 'a scalar that is not allocated')
  call llcl_atomic(context, right, word, LLCL_OP_ADD, result=i4, status=status)
  call expect(status, LLCL_ERR_INVALID, 'no operand')
  call check(index(llcl_last_error(), 'operand is absent') > 0, 'the sentence of no operand')
  call llcl_atomic(context, right, word, LLCL_OP_STORE, none, result=i4, status=status)
  call expect(status, LLCL_ERR_INVALID, 'an operand that is not allocated')
  call llcl_atomic_async(context, right, word, LLCL_OP_COMPARE_SWAP, 1, result=i4, status=status)
  call expect(status, LLCL_ERR_INVALID, 'no value to compare')
  call check(index(llcl_last_error(), 'compare is absent') > 0, 'the sentence of no value to compare')
  call llcl_atomic(context, right, word, LLCL_OP_STORE, 8)
  call llcl_atomic(context, right, word, LLCL_OP_LOAD, none, i4, none)
  call check(i4 == 8, 'scalars that are not allocated are absent')
  call llcl_atomic(context, right, word, LLCL_OP_AND, 1d0, status=status)
  call expect(status, LLCL_ERR_UNSUPPORTED, 'and of doubles')
  call end_well()

contains

  subroutine ended(wanted)
    integer, intent(in) :: wanted
    call llcl_wait_word(context, complete, int(wanted, c_int64_t), patience)
    call check(complete == wanted, 'completions')
    complete = 0
  end subroutine
end program
