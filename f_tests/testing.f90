! The harness of the Fortran tests: checks that end the job, and the beginning of most tests. A test
! is one program that answers one question. Its first comment says what is broken if the test fails,
! and declares the set-ups for c_tests/run.
module testing
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: error_unit
  use llcl
  implicit none
  type(llcl_context_t) :: context
  type(llcl_region_t) :: region
  type(llcl_remote_t), allocatable :: everybody(:)
  integer(c_int32_t) :: rank, ranks, right
  integer(c_int64_t), parameter :: forever = -1, patience = 10000000000_c_int64_t

contains

  ! Makes a context, and a region of so many bytes at each rank.
  subroutine begin(bytes)
    integer, intent(in) :: bytes
    call llcl_init(context=context)
    rank = llcl_rank(context)
    ranks = llcl_size(context)
    right = mod(rank + 1, ranks)
    allocate (everybody(0:ranks - 1))
    call llcl_region_allocate_shared(context, int(bytes, c_size_t), region, everybody)
  end subroutine

  subroutine end_well()
    call llcl_barrier(context)
    call llcl_region_free(region)
    call llcl_finalize(context)
  end subroutine

  subroutine check(right, what)
    logical, intent(in) :: right
    character(len=*), intent(in) :: what
    if (right) return
    write (error_unit, '(a, i0, 4a)') 'rank ', rank, ': failed: ', what, '; last error: ', llcl_last_error()
    error stop 1
  end subroutine

  subroutine expect(status, wanted, what)
    integer(c_int32_t), intent(in) :: status, wanted
    character(len=*), intent(in) :: what
    if (status == wanted) return
    write (error_unit, '(2a, i0, 3a, i0)') what, ' gave ', status, ' (', llcl_status_string(status), '), expected ', wanted
    call check(.false., what)
  end subroutine
end module testing
