! Measures blocking calls on an array section of 8 bytes, from a rank to itself. Beside them run the
! same calls in C (in_c.c), which set up the parameter struct before the loop. Prints the
! nanoseconds of a call in the fastest of many batches.
! Build and run: make bench-fortran
! SPDX-License-Identifier: MIT OR Apache-2.0
program calls
  use, intrinsic :: iso_c_binding
  use llcl
  implicit none
  integer, parameter :: batches = 200, in_batch = 2000
  type(llcl_context_t) :: context
  type(llcl_region_t) :: region
  type(llcl_remote_t) :: here(1)
  integer(c_int64_t), target :: numbers(4)
  integer(c_int64_t) :: start, end, rate
  real(c_double) :: fastest(4)
  integer :: batch
  abstract interface
    subroutine loop(context, number, here, count) bind(c)
      import
      type(llcl_context_t), value :: context
      type(c_ptr), value :: number
      type(llcl_remote_t), value :: here
      integer(c_int), value :: count
    end subroutine
  end interface
  procedure(loop), bind(c) :: write_in_c, read_in_c

  call llcl_init(context=context)
  call llcl_region_allocate_shared(context, 64_c_size_t, region, here)
  numbers = 1
  fastest = huge(fastest)
  call system_clock(count_rate=rate)
  do batch = 1, batches
    call system_clock(start); call write_section(); call system_clock(end); call take(1)
    call system_clock(start); call write_in_c(context, c_loc(numbers(2)), here(1), in_batch); call system_clock(end); call take(2)
    call system_clock(start); call read_section(); call system_clock(end); call take(3)
    call system_clock(start); call read_in_c(context, c_loc(numbers(2)), here(1), in_batch); call system_clock(end); call take(4)
  end do
  print '(2(a, f0.1), a)', 'write: Fortran ', fastest(1), ' ns, C ', fastest(2), ' ns', &
      'read: Fortran ', fastest(3), ' ns, C ', fastest(4), ' ns'
  call llcl_region_free(region)
  call llcl_finalize(context)

contains

  subroutine take(which)
    integer, intent(in) :: which
    fastest(which) = min(fastest(which), (end - start) * 1d9 / rate / in_batch)
  end subroutine

  subroutine write_section()
    integer :: i
    do i = 1, in_batch
      call llcl_write(context, 0, numbers(2:2), here(1))
    end do
  end subroutine

  subroutine read_section()
    integer :: i
    do i = 1, in_batch
      call llcl_read(context, 0, here(1), numbers(2:2))
    end do
  end subroutine
end program
