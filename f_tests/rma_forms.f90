! Broken if this fails: a calling form of reads or writes (try, async, blocking), with arrays or
! with parameter structs, moves wrong bytes, or a completion that counts, stores or calls does not
! fire.
program rma_forms
  use testing
  implicit none
  integer(c_int64_t), parameter :: half = 32768
  type(llcl_remote_t) :: there, word_there
  type(llcl_read_params_t) :: read_
  type(llcl_write_params_t) :: write_
  type(llcl_write_signal_params_t) :: signal_
  type(llcl_write_value_params_t) :: value_
  type(llcl_write_small_params_t) :: small_
  integer(c_int32_t), target :: a(6), b(6)
  integer(c_int64_t), target, asynchronous :: local, complete, stored
  integer(c_int64_t), pointer :: word
  integer(c_int64_t) :: value
  integer(c_int32_t) :: status
  integer :: i

  call begin(65536)
  there = everybody(right)
  word_there = llcl_at(everybody(right), half)
  call c_f_pointer(llcl_region_address(region), word)
  a = [(rank * 10 + i, i = 1, 6)]
  local = 0
  complete = 0
  call llcl_connect(context, [right], 1)
  call arrays()
  call structs()
  call signals()
  call flushed()
  call end_well()

contains

  subroutine same(what)
    character(len=*), intent(in) :: what
    b = 0
    call llcl_read(context, right, there, b)
    call check(all(a == b), what)
    a = a + 100
  end subroutine

  ! Each write has both completions, each read one.
  subroutine both(wanted_local, wanted_complete)
    integer, intent(in) :: wanted_local, wanted_complete
    call llcl_wait_word(context, local, int(wanted_local, c_int64_t), patience)
    call llcl_wait_word_from(context, complete, int(wanted_complete, c_int64_t), patience, right)
    call check(local == wanted_local .and. complete == wanted_complete, 'completions')
    local = 0
    complete = 0
  end subroutine

  subroutine arrays()
    do
      call llcl_try_write_async(context, right, a, there, llcl_add_on(local), llcl_add_on(complete), status=status)
      if (status <= 0) exit
    end do
    call expect(status, LLCL_OK, 'llcl_try_write_async')
    call both(1, 1); call same('try_write')
    call llcl_write_async(context, right, a, there, llcl_add_on(local), llcl_add_on(complete))
    call both(1, 1); call same('write_async')
    call llcl_write_async(context, right, a, there, on_complete=llcl_add_on(complete), flags=LLCL_FLAG_DEFER)
    call both(0, 1); call same('write_async, deferred')
    do
      call llcl_try_write_small_async(context, right, a, there, llcl_add_on(complete), status=status)
      if (status <= 0) exit
    end do
    call both(0, 1); call same('try_write_small')
    call llcl_write_small_async(context, right, a, there, llcl_add_on(complete))
    call both(0, 1); call same('write_small_async')
    call llcl_write_small(context, right, a, there); call same('write_small')
    call llcl_write(context, right, a, there)
    b = 0
    do
      call llcl_try_read_async(context, right, there, b, llcl_add_on(complete), status=status)
      if (status <= 0) exit
    end do
    call both(0, 1); call check(all(a == b), 'try_read')
    b = 0
    stored = 0
    call llcl_read_async(context, right, there, b, llcl_store_on(stored))
    call llcl_wait_word(context, stored, 1_c_int64_t, patience)
    call check(all(a == b) .and. stored == 1, 'read_async')
  end subroutine

  subroutine structs()
    type(llcl_local_t) :: mine
    mine = llcl_local_address(a)
    write_%peer = right
    write_%source = mine
    write_%destination = there
    write_%size = c_sizeof(a)
    call llcl_write(context, write_); call same('write by a struct')
    write_%on_local = llcl_add_on(local)
    write_%on_complete = llcl_add_on(complete)
    call llcl_write_async(context, write_); call both(1, 1); call same('write_async by a struct')
    do
      call llcl_try_write_async(context, write_, status)
      if (status <= 0) exit
    end do
    call both(1, 1); call same('try_write by a struct')
    small_%peer = right
    small_%source = c_loc(a)
    small_%destination = there
    small_%size = c_sizeof(a)
    call llcl_write_small(context, small_); call same('write_small by a struct')
    small_%on_complete = llcl_add_on(complete)
    call llcl_write_small_async(context, small_); call both(0, 1); call same('write_small_async by a struct')
    do
      call llcl_try_write_small_async(context, small_, status)
      if (status <= 0) exit
    end do
    call both(0, 1); call same('try_write_small by a struct')
    value_ = llcl_write_value_params_t(peer=right, destination=there, value=4711_c_int64_t, size=8)
    call llcl_write_value(context, value_)
    value_%value = value_%value + 1
    value_%on_complete = llcl_add_on(complete)
    call llcl_write_value_async(context, value_); call both(0, 1)
    value_%value = value_%value + 1
    do
      call llcl_try_write_value_async(context, value_, status)
      if (status <= 0) exit
    end do
    call both(0, 1)
    read_%peer = right
    read_%source = there
    read_%destination = llcl_local_address(value)
    read_%size = c_sizeof(value)
    value = 0
    call llcl_read(context, read_); call check(value == 4713, 'read by a struct')
    read_%destination = llcl_local_at(llcl_region_local(region, half), 8_c_int64_t)
    read_%on_complete = llcl_add_on(complete)
    call llcl_read_async(context, read_); call both(0, 1)
    do
      call llcl_try_read_async(context, read_, status)
      if (status <= 0) exit
    end do
    call both(0, 1)
    read_%peer = ranks
    call llcl_read(context, read_, status)
    call expect(status, LLCL_ERR_INVALID, 'no such peer')
  end subroutine

  subroutine signals()
    integer(c_int64_t), pointer :: words(:)
    integer(c_int64_t) :: sevenfold
    call c_f_pointer(llcl_region_address(region), words, [int(half) / 8 + 1])
    sevenfold = 0
    do
      call llcl_try_write_signal_async(context, right, a, there, word_there, 1_c_int64_t, LLCL_SIGNAL_ADD, &
          llcl_add_on(local), llcl_add_on(complete), status=status)
      if (status <= 0) exit
    end do
    call llcl_write_signal_async(context, right, a, there, word_there, 1_c_int64_t, LLCL_SIGNAL_ADD, &
        llcl_add_on(local), llcl_add_on(complete))
    call llcl_write_signal(context, right, a, there, word_there, 1_c_int64_t, LLCL_SIGNAL_ADD)
    signal_%peer = right
    signal_%source = llcl_local_address(a)
    signal_%destination = there
    signal_%size = c_sizeof(a)
    signal_%signal = word_there
    signal_%signal_op = LLCL_SIGNAL_ADD
    signal_%signal_value = 1
    call llcl_write_signal(context, signal_)
    signal_%on_local = llcl_add_on(local)
    signal_%on_complete = llcl_add_on(complete)
    call llcl_write_signal_async(context, signal_)
    do
      call llcl_try_write_signal_async(context, signal_, status)
      if (status <= 0) exit
    end do
    call both(4, 4); call same('signalled')
    call llcl_wait_word(context, words(half / 8 + 1), 6_c_int64_t, patience)
    call llcl_barrier(context)
    call llcl_write_signal(context, right, a, there, word_there, 77_c_int64_t, LLCL_SIGNAL_SET)
    call llcl_wait_word(context, words(half / 8 + 1), 77_c_int64_t, patience)
    sevenfold = words(half / 8 + 1)
    call check(sevenfold == 77, 'a word that was set')
    call llcl_wake(context, right)
  end subroutine

  subroutine flushed()
    call llcl_write_async(context, right, a, there)
    call llcl_flush(context, right)
    call same('flushed')
    call llcl_write_async(context, right, a, there)
    call llcl_flush_all(context)
    call llcl_progress(context, status)
    call expect(status, LLCL_OK, 'llcl_progress')
    call same('flushed all')
  end subroutine
end program
