! Subroutines for the functions of llcl.h that return a status. `status` is the last argument; the
! caller may leave it out.
! Generated from llcl.h by `make header`; changes belong into scripts/fortran.awk.
! SPDX-License-Identifier: MIT OR Apache-2.0
module llcl_calls_rma
  use, intrinsic :: iso_c_binding
  use llcl_types
  use llcl_c_rma, only: c_try_read_async => llcl_try_read_async, c_read_async => llcl_read_async, &
      c_read => llcl_read, c_try_write_async => llcl_try_write_async, &
      c_write_async => llcl_write_async, c_write => llcl_write, &
      c_try_write_signal_async => llcl_try_write_signal_async, &
      c_write_signal_async => llcl_write_signal_async, c_write_signal => llcl_write_signal, &
      c_try_write_value_async => llcl_try_write_value_async, &
      c_write_value_async => llcl_write_value_async, c_write_value => llcl_write_value, &
      c_try_write_small_async => llcl_try_write_small_async, &
      c_write_small_async => llcl_write_small_async, c_write_small => llcl_write_small, &
      c_try_write_strided_async => llcl_try_write_strided_async, &
      c_write_strided_async => llcl_write_strided_async, c_write_strided => llcl_write_strided, &
      c_try_read_strided_async => llcl_try_read_strided_async, &
      c_read_strided_async => llcl_read_strided_async, c_read_strided => llcl_read_strided, &
      c_try_writev_async => llcl_try_writev_async, c_writev_async => llcl_writev_async, &
      c_writev => llcl_writev, c_try_readv_async => llcl_try_readv_async, &
      c_readv_async => llcl_readv_async, c_readv => llcl_readv
  use llcl_finish, only: finish
  implicit none
  private
  public :: llcl_try_read_async
  interface llcl_try_read_async; procedure call_try_read_async; end interface
  public :: llcl_read_async
  interface llcl_read_async; procedure call_read_async; end interface
  public :: llcl_read
  interface llcl_read; procedure call_read; end interface
  public :: llcl_try_write_async
  interface llcl_try_write_async; procedure call_try_write_async; end interface
  public :: llcl_write_async
  interface llcl_write_async; procedure call_write_async; end interface
  public :: llcl_write
  interface llcl_write; procedure call_write; end interface
  public :: llcl_try_write_signal_async
  interface llcl_try_write_signal_async; procedure call_try_write_signal_async; end interface
  public :: llcl_write_signal_async
  interface llcl_write_signal_async; procedure call_write_signal_async; end interface
  public :: llcl_write_signal
  interface llcl_write_signal; procedure call_write_signal; end interface
  public :: llcl_try_write_value_async
  interface llcl_try_write_value_async; procedure call_try_write_value_async; end interface
  public :: llcl_write_value_async
  interface llcl_write_value_async; procedure call_write_value_async; end interface
  public :: llcl_write_value
  interface llcl_write_value; procedure call_write_value; end interface
  public :: llcl_try_write_small_async
  interface llcl_try_write_small_async; procedure call_try_write_small_async; end interface
  public :: llcl_write_small_async
  interface llcl_write_small_async; procedure call_write_small_async; end interface
  public :: llcl_write_small
  interface llcl_write_small; procedure call_write_small; end interface
  public :: llcl_try_write_strided_async
  interface llcl_try_write_strided_async; procedure call_try_write_strided_async; end interface
  public :: llcl_write_strided_async
  interface llcl_write_strided_async; procedure call_write_strided_async; end interface
  public :: llcl_write_strided
  interface llcl_write_strided; procedure call_write_strided; end interface
  public :: llcl_try_read_strided_async
  interface llcl_try_read_strided_async; procedure call_try_read_strided_async; end interface
  public :: llcl_read_strided_async
  interface llcl_read_strided_async; procedure call_read_strided_async; end interface
  public :: llcl_read_strided
  interface llcl_read_strided; procedure call_read_strided; end interface
  public :: llcl_try_writev_async
  interface llcl_try_writev_async; procedure call_try_writev_async; end interface
  public :: llcl_writev_async
  interface llcl_writev_async; procedure call_writev_async; end interface
  public :: llcl_writev
  interface llcl_writev; procedure call_writev; end interface
  public :: llcl_try_readv_async
  interface llcl_try_readv_async; procedure call_try_readv_async; end interface
  public :: llcl_readv_async
  interface llcl_readv_async; procedure call_readv_async; end interface
  public :: llcl_readv
  interface llcl_readv; procedure call_readv; end interface

contains

  subroutine call_try_read_async(context, params, status)
    type(llcl_context_t), intent(in) :: context
    type(llcl_read_params_t), intent(in) :: params
    integer(c_int32_t), intent(out) :: status
    call finish('llcl_try_read_async'//c_null_char, c_try_read_async(context, params), status)
  end subroutine

  subroutine call_read_async(context, params, status)
    type(llcl_context_t), intent(in) :: context
    type(llcl_read_params_t), intent(in) :: params
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_read_async'//c_null_char, c_read_async(context, params), status)
  end subroutine

  subroutine call_read(context, params, status)
    type(llcl_context_t), intent(in) :: context
    type(llcl_read_params_t), intent(in) :: params
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_read'//c_null_char, c_read(context, params), status)
  end subroutine

  subroutine call_try_write_async(context, params, status)
    type(llcl_context_t), intent(in) :: context
    type(llcl_write_params_t), intent(in) :: params
    integer(c_int32_t), intent(out) :: status
    call finish('llcl_try_write_async'//c_null_char, c_try_write_async(context, params), status)
  end subroutine

  subroutine call_write_async(context, params, status)
    type(llcl_context_t), intent(in) :: context
    type(llcl_write_params_t), intent(in) :: params
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_write_async'//c_null_char, c_write_async(context, params), status)
  end subroutine

  subroutine call_write(context, params, status)
    type(llcl_context_t), intent(in) :: context
    type(llcl_write_params_t), intent(in) :: params
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_write'//c_null_char, c_write(context, params), status)
  end subroutine

  subroutine call_try_write_signal_async(context, params, status)
    type(llcl_context_t), intent(in) :: context
    type(llcl_write_signal_params_t), intent(in) :: params
    integer(c_int32_t), intent(out) :: status
    call finish('llcl_try_write_signal_async'//c_null_char, c_try_write_signal_async(context, &
        params), status)
  end subroutine

  subroutine call_write_signal_async(context, params, status)
    type(llcl_context_t), intent(in) :: context
    type(llcl_write_signal_params_t), intent(in) :: params
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_write_signal_async'//c_null_char, c_write_signal_async(context, params), &
        status)
  end subroutine

  subroutine call_write_signal(context, params, status)
    type(llcl_context_t), intent(in) :: context
    type(llcl_write_signal_params_t), intent(in) :: params
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_write_signal'//c_null_char, c_write_signal(context, params), status)
  end subroutine

  subroutine call_try_write_value_async(context, params, status)
    type(llcl_context_t), intent(in) :: context
    type(llcl_write_value_params_t), intent(in) :: params
    integer(c_int32_t), intent(out) :: status
    call finish('llcl_try_write_value_async'//c_null_char, c_try_write_value_async(context, &
        params), status)
  end subroutine

  subroutine call_write_value_async(context, params, status)
    type(llcl_context_t), intent(in) :: context
    type(llcl_write_value_params_t), intent(in) :: params
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_write_value_async'//c_null_char, c_write_value_async(context, params), status)
  end subroutine

  subroutine call_write_value(context, params, status)
    type(llcl_context_t), intent(in) :: context
    type(llcl_write_value_params_t), intent(in) :: params
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_write_value'//c_null_char, c_write_value(context, params), status)
  end subroutine

  subroutine call_try_write_small_async(context, params, status)
    type(llcl_context_t), intent(in) :: context
    type(llcl_write_small_params_t), intent(in) :: params
    integer(c_int32_t), intent(out) :: status
    call finish('llcl_try_write_small_async'//c_null_char, c_try_write_small_async(context, &
        params), status)
  end subroutine

  subroutine call_write_small_async(context, params, status)
    type(llcl_context_t), intent(in) :: context
    type(llcl_write_small_params_t), intent(in) :: params
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_write_small_async'//c_null_char, c_write_small_async(context, params), status)
  end subroutine

  subroutine call_write_small(context, params, status)
    type(llcl_context_t), intent(in) :: context
    type(llcl_write_small_params_t), intent(in) :: params
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_write_small'//c_null_char, c_write_small(context, params), status)
  end subroutine

  subroutine call_try_write_strided_async(context, params, status)
    type(llcl_context_t), intent(in) :: context
    type(llcl_strided_params_t), intent(in) :: params
    integer(c_int32_t), intent(out) :: status
    call finish('llcl_try_write_strided_async'//c_null_char, c_try_write_strided_async(context, &
        params), status)
  end subroutine

  subroutine call_write_strided_async(context, params, status)
    type(llcl_context_t), intent(in) :: context
    type(llcl_strided_params_t), intent(in) :: params
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_write_strided_async'//c_null_char, c_write_strided_async(context, params), &
        status)
  end subroutine

  subroutine call_write_strided(context, params, status)
    type(llcl_context_t), intent(in) :: context
    type(llcl_strided_params_t), intent(in) :: params
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_write_strided'//c_null_char, c_write_strided(context, params), status)
  end subroutine

  subroutine call_try_read_strided_async(context, params, status)
    type(llcl_context_t), intent(in) :: context
    type(llcl_strided_params_t), intent(in) :: params
    integer(c_int32_t), intent(out) :: status
    call finish('llcl_try_read_strided_async'//c_null_char, c_try_read_strided_async(context, &
        params), status)
  end subroutine

  subroutine call_read_strided_async(context, params, status)
    type(llcl_context_t), intent(in) :: context
    type(llcl_strided_params_t), intent(in) :: params
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_read_strided_async'//c_null_char, c_read_strided_async(context, params), &
        status)
  end subroutine

  subroutine call_read_strided(context, params, status)
    type(llcl_context_t), intent(in) :: context
    type(llcl_strided_params_t), intent(in) :: params
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_read_strided'//c_null_char, c_read_strided(context, params), status)
  end subroutine

  subroutine call_try_writev_async(context, params, status)
    type(llcl_context_t), intent(in) :: context
    type(llcl_vector_params_t), intent(in) :: params
    integer(c_int32_t), intent(out) :: status
    call finish('llcl_try_writev_async'//c_null_char, c_try_writev_async(context, params), status)
  end subroutine

  subroutine call_writev_async(context, params, status)
    type(llcl_context_t), intent(in) :: context
    type(llcl_vector_params_t), intent(in) :: params
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_writev_async'//c_null_char, c_writev_async(context, params), status)
  end subroutine

  subroutine call_writev(context, params, status)
    type(llcl_context_t), intent(in) :: context
    type(llcl_vector_params_t), intent(in) :: params
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_writev'//c_null_char, c_writev(context, params), status)
  end subroutine

  subroutine call_try_readv_async(context, params, status)
    type(llcl_context_t), intent(in) :: context
    type(llcl_vector_params_t), intent(in) :: params
    integer(c_int32_t), intent(out) :: status
    call finish('llcl_try_readv_async'//c_null_char, c_try_readv_async(context, params), status)
  end subroutine

  subroutine call_readv_async(context, params, status)
    type(llcl_context_t), intent(in) :: context
    type(llcl_vector_params_t), intent(in) :: params
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_readv_async'//c_null_char, c_readv_async(context, params), status)
  end subroutine

  subroutine call_readv(context, params, status)
    type(llcl_context_t), intent(in) :: context
    type(llcl_vector_params_t), intent(in) :: params
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_readv'//c_null_char, c_readv(context, params), status)
  end subroutine
end module llcl_calls_rma
