! How a subroutine of the module `llcl` ends: with a status, or, where the caller takes none, by an
! error stop.
! SPDX-License-Identifier: MIT OR Apache-2.0
module llcl_finish
  use, intrinsic :: iso_c_binding, only: c_char, c_int32_t, c_size_t
  implicit none
  private
  public :: finish

  interface
    ! In finish.c: stores `answer` in `status`; where that is absent, anything but LLCL_OK and
    ! LLCL_DONE stops the program.
    subroutine finish(name, answer, status) bind(c, name='llclf_finish')
      import
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int32_t), value :: answer
      integer(c_int32_t), intent(out), optional :: status
    end subroutine
  end interface

contains

  ! Called by llclf_finish: units are flushed and the program stops as Fortran's do.
  subroutine error_stop(sentence, length) bind(c, name='llclf_error_stop')
    integer(c_size_t), value :: length
    character(kind=c_char), intent(in) :: sentence(length)
    character(len=length) :: text
    text = transfer(sentence, text)
    error stop text
  end subroutine
end module llcl_finish
