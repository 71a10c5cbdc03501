! Broken if this fails: a read or a write of an array of some type and rank moves wrong bytes:
! whole, as a section with or without gaps, as a scalar, allocatable, through a pointer; or a
! section that runs backwards, or one with gaps in another operation, is not refused or changes
! memory.
! ranks: 1 2
program rma_arrays
  use testing
  implicit none
  type :: point_t
    real(c_float) :: x, y
    integer(c_int8_t) :: colour
  end type
  type(llcl_remote_t) :: there
  real(c_double) :: a(4, 5), b(4, 5)
  integer(c_int32_t) :: status
  integer :: i

  call begin(65536)
  there = everybody(right)
  a = reshape([(rank + i / 7d0, i = 1, 20)], [4, 5])
  call types()
  call sections()
  call gaps()
  call refused()
  call end_well()

contains

  subroutine types()
    integer(c_int8_t) :: i1(3), j1(3)
    integer(c_int16_t) :: i2, j2
    integer(c_int32_t) :: i4(2, 2), j4(2, 2)
    integer(c_int64_t) :: i8(2, 2, 2), j8(2, 2, 2)
    real(c_float) :: r4(1, 2, 1, 2), s4(1, 2, 1, 2)
    complex(c_float_complex) :: c4(5), d4(5)
    complex(c_double_complex) :: c8(5), d8(5)
    logical :: l(4), m(4)
    character(len=11) :: text, other
    type(point_t) :: p(2), q(2)
    real(c_double), allocatable :: allocated_(:)
    real(c_double), pointer :: pointer_(:)
    b = 0
    call llcl_write(context, right, a, there)
    call llcl_read(context, right, there, b)
    call check(all(a == b), 'doubles')
    i1 = [1_c_int8_t, -2_c_int8_t, 3_c_int8_t]
    call llcl_write(context, right, i1, there); call llcl_read(context, right, there, j1)
    call check(all(i1 == j1), 'bytes')
    i2 = -7
    call llcl_write(context, right, i2, there); call llcl_read(context, right, there, j2)
    call check(i2 == j2, 'a scalar')
    i4 = reshape([1, 2, 3, 4], [2, 2])
    call llcl_write(context, right, i4, there); call llcl_read(context, right, there, j4)
    call check(all(i4 == j4), 'integers')
    i8 = reshape([(i * 10000000000_c_int64_t, i = 1, 8)], [2, 2, 2])
    call llcl_write(context, right, i8, there); call llcl_read(context, right, there, j8)
    call check(all(i8 == j8), 'large integers')
    r4 = reshape([1., 2., 3., 4.], [1, 2, 1, 2])
    call llcl_write(context, right, r4, there); call llcl_read(context, right, there, s4)
    call check(all(r4 == s4), 'reals of rank 4')
    c4 = [(cmplx(i, -i, c_float_complex), i = 1, 5)]
    call llcl_write(context, right, c4, there); call llcl_read(context, right, there, d4)
    call check(all(c4 == d4), 'complex')
    c8 = [(cmplx(i, -i, c_double_complex), i = 1, 5)]
    call llcl_write(context, right, c8, there); call llcl_read(context, right, there, d8)
    call check(all(c8 == d8), 'double complex')
    l = [.true., .false., .true., .true.]
    call llcl_write(context, right, l, there); call llcl_read(context, right, there, m)
    call check(all(l .eqv. m), 'logicals')
    text = 'hello world'; other = ''
    call llcl_write(context, right, text, there); call llcl_read(context, right, there, other)
    call check(text == other, 'characters')
    p = [point_t(1, 2, 3_c_int8_t), point_t(4, 5, 6_c_int8_t)]
    call llcl_write(context, right, p, there); call llcl_read(context, right, there, q)
    call check(all(p%x == q%x) .and. all(p%colour == q%colour), 'derived types')
    allocate (allocated_(3), pointer_(3))
    allocated_(:) = [1d0, 2d0, 3d0]
    call llcl_write(context, right, allocated_, there); call llcl_read(context, right, there, pointer_)
    call check(all(allocated_ == pointer_), 'allocated and pointed to')
    deallocate (pointer_)
  end subroutine

  subroutine sections()
    real(c_double) :: line(6)
    call llcl_write(context, right, a, there)
    b = -1
    call llcl_read(context, right, llcl_at(there, 32_c_int64_t), b(:, 4))
    call check(all(b(:, 4) == a(:, 2)) .and. all(b(:, :3) == -1) .and. all(b(:, 5) == -1), 'a column')
    line = -1
    call llcl_read(context, right, there, line(2:5))
    call check(all(line(2:5) == a(:, 1)) .and. line(1) == -1 .and. line(6) == -1, 'a part of a column')
    call llcl_write(context, right, a(2:3, 5), there)
    call llcl_read(context, right, there, line(1:2))
    call check(all(line(:2) == a(2:3, 5)), 'a written part')
    call llcl_write(context, right, a(3, 3), there)
    call llcl_read(context, right, there, line(1))
    call check(line(1) == a(3, 3), 'an element')
    call llcl_write(context, right, a(:, 4:3), there, status)
    call expect(status, LLCL_OK, 'an empty section')
    call llcl_write(context, right, a(4:3, :), there, status)
    call expect(status, LLCL_OK, 'a section of empty columns')
    call of_assumed_shape(a(:, 2:3))
    call of_explicit_shape(a, 4)
  end subroutine

  ! At the peer the elements lie one after the other, in the order of the array.
  subroutine gaps()
    real(c_double) :: packed(20), cube(3, 4, 5), back(3, 4, 5)
    integer(c_int64_t), asynchronous, target :: ended
    type(point_t) :: p(3)
    integer(c_int32_t) :: many(2, 2, 2, 2, 2, 2, 2, 2, 2, 2), every_second(512)
    call llcl_write(context, right, a(2, :), there)
    call llcl_read(context, right, there, packed(:5))
    call check(all(packed(:5) == a(2, :)), 'a row')
    call llcl_write(context, right, a, there)
    b = -1
    call llcl_read(context, right, there, b(4, :))
    call check(all(b(4, :) == reshape(a, [5])) .and. all(b(:3, :) == -1), 'a row that is read')
    call llcl_write(context, right, a(::3, 2:5:2), there)
    call llcl_read(context, right, there, packed(:4))
    call check(all(packed(:4) == reshape(a(::3, 2:5:2), [4])), 'gaps in both dimensions')
    cube = reshape([(rank + i / 3d0, i = 1, 60)], [3, 4, 5])
    call llcl_write(context, right, cube(:, 2:4:2, ::2), there)
    back = -1
    call llcl_read(context, right, there, back(:, 1:3:2, 1:5:2))
    call check(all(back(:, 1:3:2, 1:5:2) == cube(:, 2:4:2, ::2)) .and. count(back == -1) == 60 - 18, 'columns of a cube')
    p%x = [1., 2., 3.]
    p%y = 7
    call llcl_write(context, right, p%x, there)
    p%x = 0
    call llcl_read(context, right, there, p%y)
    call check(all(p%y == [1., 2., 3.]) .and. all(p%x == 0), 'a component')
    ! Nine dimensions with one common stride count as one dimension.
    many = reshape([(i, i = 1, 1024)], shape(many))
    call llcl_write(context, right, many(2, :, :, :, :, :, :, :, :, :), there)
    call llcl_read(context, right, there, every_second)
    call check(all(every_second == [(i, i = 2, 1024, 2)]), 'ten dimensions with one gap')
    ended = 0
    call llcl_write_async(context, right, a(1, :), there, on_complete=llcl_add_on(ended), flags=LLCL_FLAG_DEFER)
    call llcl_wait_word(context, ended, 1_c_int64_t, patience)
    do
      call llcl_try_write_async(context, right, a(3, :), llcl_at(there, 40_c_int64_t), &
          on_complete=llcl_add_on(ended), status=status)
      if (status <= 0) exit
    end do
    call expect(status, LLCL_OK, 'a row, if it is possible now')
    call llcl_wait_word(context, ended, 2_c_int64_t, patience)
    b = -1
    call llcl_read_async(context, right, there, b(1, :), llcl_add_on(ended))
    call llcl_wait_word(context, ended, 3_c_int64_t, patience)
    do
      call llcl_try_read_async(context, right, llcl_at(there, 40_c_int64_t), b(2, :), &
          llcl_add_on(ended), status=status)
      if (status <= 0) exit
    end do
    call llcl_wait_word(context, ended, 4_c_int64_t, patience)
    call check(all(b(1, :) == a(1, :)) .and. all(b(2, :) == a(3, :)) .and. all(b(3:, :) == -1), 'rows without a wait')
  end subroutine

  subroutine of_assumed_shape(x)
    real(c_double), intent(in) :: x(:, :)
    call llcl_write(context, right, x, there)
    call llcl_read(context, right, there, b(:, 1:2))
    call check(all(b(:, 1:2) == x), 'assumed shape')
  end subroutine

  subroutine of_explicit_shape(x, n)
    integer, intent(in) :: n
    real(c_double), intent(in) :: x(n)
    call llcl_write(context, right, x, there)
    call llcl_read(context, right, there, b(:, 1))
    call check(all(b(:, 1) == x), 'explicit shape')
  end subroutine

  subroutine refused()
    type(llcl_region_t) :: no_region
    integer(c_int64_t), asynchronous :: unused
    b = -1
    call llcl_read(context, right, there, b(4:1:-1, 1), status)
    call expect(status, LLCL_ERR_INVALID, 'backwards')
    call check(index(llcl_last_error(), 'backwards') > 0, 'the sentence of a section that runs backwards')
    call check(all(b == -1), 'a refused read touches nothing')
    call llcl_write(context, right, a(4:1:-1, 1), there, status)
    call expect(status, LLCL_ERR_INVALID, 'backwards, written')
    call llcl_write_async(context, right, a(1, :), there, on_local=llcl_add_on(unused), status=status)
    call expect(status, LLCL_ERR_INVALID, 'a row with on_local')
    call check(index(llcl_last_error(), 'on_local') > 0, 'the sentence of a row with on_local')
    call llcl_write_small(context, right, a(1, :), there, status)
    call expect(status, LLCL_ERR_INVALID, 'small: a row')
    call check(index(llcl_last_error(), 'one after the other') > 0, 'the sentence of a row')
    call llcl_write_signal(context, right, a(1, :), there, there, 1_c_int64_t, LLCL_SIGNAL_ADD, status)
    call expect(status, LLCL_ERR_INVALID, 'signalled: a row')
    call llcl_region_register(context, a(1, :), no_region, status)
    call expect(status, LLCL_ERR_INVALID, 'registered: a row')
    call of_assumed_size(a)
    ! The sentence of a function without a status replaces the module's.
    call check(.not. c_associated(llcl_remote_pointer(context, ranks, there, 8_c_size_t)), 'no such rank')
    call check(index(llcl_last_error(), 'peer is') > 0, 'the sentence of a function without a status')
    call llcl_write(context, right, a(4:1:-1, 1), there, status)
    call check(index(llcl_last_error(), 'backwards') > 0, 'the sentence of the refusal after it')
    ! The library's message replaces the module's.
    call llcl_write(context, ranks, a, there, status)
    call expect(status, LLCL_ERR_INVALID, 'no such rank')
    call check(index(llcl_last_error(), 'peer') > 0, 'the sentence of a rank')
  end subroutine

  subroutine of_assumed_size(x)
    real(c_double), intent(in) :: x(*)
    call llcl_write(context, right, x(1:4), there, status)
    call expect(status, LLCL_OK, 'a part of an assumed-size array')
  end subroutine
end program
