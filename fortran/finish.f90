! How the subroutines of the module `llcl` end: they store a status, or, if the caller has left
! `status` out and the call has failed, end the program by error stop.
! SPDX-License-Identifier: MIT OR Apache-2.0
module llcl_finish
  use, intrinsic :: iso_c_binding, only: c_char, c_int32_t, c_size_t
  implicit none
  private
  public :: finish

  interface
    ! In finish.c: stores `answer` in `status`. If `status` is absent, any answer but LLCL_OK and
    ! LLCL_DONE ends the program.
    subroutine finish(name, answer, status) bind(c, name='llclf_finish')
      import
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int32_t), value :: answer
      integer(c_int32_t), intent(out), optional :: status
    end subroutine
  end interface

contains

  ! Ends the program by Fortran's error stop, which flushes its units. Called by llclf_finish.
  subroutine error_stop(sentence, length) bind(c, name='llclf_error_stop')
    integer(c_size_t), value :: length
    character(kind=c_char), intent(in) :: sentence(length)
    character(len=length) :: text
    text = transfer(sentence, text)
    error stop text
  end subroutine
end module llcl_finish
