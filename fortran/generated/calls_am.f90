! Subroutines for the functions of llcl.h that return a status. `status` is the last argument; the
! caller may leave it out.
! Generated from llcl.h by `make header`; changes belong into scripts/fortran.awk.
! SPDX-License-Identifier: MIT OR Apache-2.0
module llcl_calls_am
  use, intrinsic :: iso_c_binding
  use llcl_types
  use llcl_c_am, only: c_am_register => llcl_am_register, c_try_am_async => llcl_try_am_async, &
      c_am_async => llcl_am_async, c_am => llcl_am, c_am_within => llcl_am_within, &
      c_am_poll => llcl_am_poll, c_am_wait => llcl_am_wait, c_am_view => llcl_am_view, &
      c_am_respond => llcl_am_respond, c_am_reply => llcl_am_reply, c_am_release => llcl_am_release
  use llcl_finish, only: finish
  implicit none
  private
  public :: llcl_am_register
  interface llcl_am_register; procedure call_am_register; end interface
  public :: llcl_try_am_async
  interface llcl_try_am_async; procedure call_try_am_async; end interface
  public :: llcl_am_async
  interface llcl_am_async; procedure call_am_async; end interface
  public :: llcl_am
  interface llcl_am; procedure call_am; end interface
  public :: llcl_am_within
  interface llcl_am_within; procedure call_am_within; end interface
  public :: llcl_am_poll
  interface llcl_am_poll; procedure call_am_poll; end interface
  public :: llcl_am_wait
  interface llcl_am_wait; procedure call_am_wait; end interface
  public :: llcl_am_view
  interface llcl_am_view; procedure call_am_view; end interface
  public :: llcl_am_respond
  interface llcl_am_respond; procedure call_am_respond; end interface
  public :: llcl_am_reply
  interface llcl_am_reply; procedure call_am_reply; end interface
  public :: llcl_am_release
  interface llcl_am_release; procedure call_am_release; end interface

contains

  subroutine call_am_register(context, id, handler, data, status)
    type(llcl_context_t), intent(in) :: context
    integer(c_int32_t), intent(in) :: id
    type(c_funptr), value :: handler
    type(c_ptr), value :: data
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_am_register'//c_null_char, c_am_register(context, id, handler, data), status)
  end subroutine

  subroutine call_try_am_async(context, params, status)
    type(llcl_context_t), intent(in) :: context
    type(llcl_am_params_t), intent(in) :: params
    integer(c_int32_t), intent(out) :: status
    call finish('llcl_try_am_async'//c_null_char, c_try_am_async(context, params), status)
  end subroutine

  subroutine call_am_async(context, params, status)
    type(llcl_context_t), intent(in) :: context
    type(llcl_am_params_t), intent(in) :: params
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_am_async'//c_null_char, c_am_async(context, params), status)
  end subroutine

  subroutine call_am(context, params, status)
    type(llcl_context_t), intent(in) :: context
    type(llcl_am_params_t), intent(in) :: params
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_am'//c_null_char, c_am(context, params), status)
  end subroutine

  subroutine call_am_within(context, params, timeout_ns, status)
    type(llcl_context_t), intent(in) :: context
    type(llcl_am_params_t), intent(in) :: params
    integer(c_int64_t), intent(in) :: timeout_ns
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_am_within'//c_null_char, c_am_within(context, params, timeout_ns), status)
  end subroutine

  subroutine call_am_poll(context, most, handled, status)
    type(llcl_context_t), intent(in) :: context
    integer(c_int32_t), intent(in) :: most
    integer(c_int32_t), intent(out), optional :: handled
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_am_poll'//c_null_char, c_am_poll(context, most, handled), status)
  end subroutine

  subroutine call_am_wait(context, timeout_ns, status)
    type(llcl_context_t), intent(in) :: context
    integer(c_int64_t), intent(in) :: timeout_ns
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_am_wait'//c_null_char, c_am_wait(context, timeout_ns), status)
  end subroutine

  subroutine call_am_view(message, view, status)
    type(llcl_am_t), intent(in) :: message
    type(llcl_am_view_t), intent(inout) :: view
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_am_view'//c_null_char, c_am_view(message, view), status)
  end subroutine

  subroutine call_am_respond(message, params, status)
    type(llcl_am_t), intent(in) :: message
    type(llcl_am_params_t), intent(in) :: params
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_am_respond'//c_null_char, c_am_respond(message, params), status)
  end subroutine

  subroutine call_am_reply(message, data, size, status)
    type(llcl_am_t), intent(in) :: message
    type(c_ptr), value :: data
    integer(c_size_t), intent(in) :: size
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_am_reply'//c_null_char, c_am_reply(message, data, size), status)
  end subroutine

  subroutine call_am_release(message, status)
    type(llcl_am_t), intent(in) :: message
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_am_release'//c_null_char, c_am_release(message), status)
  end subroutine
end module llcl_calls_am
