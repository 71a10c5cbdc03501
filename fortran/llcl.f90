! libllcl for Fortran 2018. The module has every function of llcl.h under its name. A function that
! returns a status is a subroutine with `status` as its last argument. If the caller leaves it out,
! any status but LLCL_OK and LLCL_DONE ends the program with the library's message.
! Reads, writes, atomics, messages and collectives also take arrays instead of parameter structs.
! docs/fortran.md introduces the module, and llcl.h documents the functions. The module llcl_c has
! the functions as they are in C.
! SPDX-License-Identifier: MIT OR Apache-2.0
module llcl
  use, intrinsic :: iso_c_binding, only: c_associated, c_char, c_f_pointer, c_int32_t, c_ptr, c_size_t
  use llcl_constants
  use llcl_types
  ! These have a form in llcl_arrays or llcl_values that takes an array.
  use llcl_functions, address_local => llcl_local_address
  use llcl_calls_life, address_register => llcl_region_register, address_allgather => llcl_allgather_bytes
  use llcl_calls_rma
  use llcl_calls_words
  use llcl_calls_am, address_reply => llcl_am_reply
  use llcl_calls_plans
  use llcl_calls_inits
  use llcl_calls_colls
  use llcl_arrays
  use llcl_values
  use llcl_c_life, only: c_version_string => llcl_version_string, c_status_string => llcl_status_string
  implicit none
  private :: c_associated, c_char, c_f_pointer, c_int32_t, c_ptr, c_size_t
  private :: address_local, address_register, address_allgather, address_reply
  private :: c_version_string, c_status_string, c_last_error, length_of, status_string, last_error, version_string

  interface llcl_status_string; procedure status_string; end interface
  interface llcl_last_error; procedure last_error; end interface
  interface llcl_version_string; procedure version_string; end interface

  interface
    function c_last_error() bind(c, name='llclf_last_error') result(answer)
      import
      type(c_ptr) :: answer
    end function

    function length_of(text) bind(c, name='strlen') result(answer)
      import
      type(c_ptr), value :: text
      integer(c_size_t) :: answer
    end function
  end interface

contains

  ! Copies a text of C; returns an empty one for a null pointer. For texts in structs, such as
  ! `reason` of llcl_coll_info_t.
  function llcl_text(text) result(answer)
    type(c_ptr), intent(in) :: text
    character(len=:), allocatable :: answer
    character(kind=c_char), pointer :: bytes(:)
    if (.not. c_associated(text)) then
      answer = ''
      return
    end if
    call c_f_pointer(text, bytes, [length_of(text)])
    allocate (character(len=size(bytes)) :: answer)
    answer = transfer(bytes, answer)
  end function

  function status_string(status) result(answer)
    integer(c_int32_t), intent(in) :: status
    character(len=:), allocatable :: answer
    answer = llcl_text(c_status_string(status))
  end function

  function last_error() result(answer)
    character(len=:), allocatable :: answer
    answer = llcl_text(c_last_error())
  end function

  function version_string() result(answer)
    character(len=:), allocatable :: answer
    answer = llcl_text(c_version_string())
  end function
end module llcl
