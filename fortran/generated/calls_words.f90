! Subroutines for the functions of llcl.h that return a status. `status` is the last argument; the
! caller may leave it out.
! Generated from llcl.h by `make header`; changes belong into scripts/fortran.awk.
! SPDX-License-Identifier: MIT OR Apache-2.0
module llcl_calls_words
  use, intrinsic :: iso_c_binding
  use llcl_types
  use llcl_c_words, only: c_atomic_query => llcl_atomic_query, &
      c_try_atomic_async => llcl_try_atomic_async, c_atomic_async => llcl_atomic_async, &
      c_atomic => llcl_atomic, c_try_fetch_add_async => llcl_try_fetch_add_async, &
      c_fetch_add_async => llcl_fetch_add_async, c_fetch_add => llcl_fetch_add, &
      c_try_compare_swap_async => llcl_try_compare_swap_async, &
      c_compare_swap_async => llcl_compare_swap_async, c_compare_swap => llcl_compare_swap, &
      c_flush => llcl_flush, c_flush_all => llcl_flush_all, c_wait_word => llcl_wait_word, &
      c_wait_word_from => llcl_wait_word_from, c_flush_within => llcl_flush_within, &
      c_wait_any => llcl_wait_any, c_wait_fd => llcl_wait_fd, c_wake => llcl_wake, &
      c_progress => llcl_progress
  use llcl_finish, only: finish
  implicit none
  private
  public :: llcl_atomic_query
  interface llcl_atomic_query; procedure call_atomic_query; end interface
  public :: llcl_try_atomic_async
  interface llcl_try_atomic_async; procedure call_try_atomic_async; end interface
  public :: llcl_atomic_async
  interface llcl_atomic_async; procedure call_atomic_async; end interface
  public :: llcl_atomic
  interface llcl_atomic; procedure call_atomic; end interface
  public :: llcl_try_fetch_add_async
  interface llcl_try_fetch_add_async; procedure call_try_fetch_add_async; end interface
  public :: llcl_fetch_add_async
  interface llcl_fetch_add_async; procedure call_fetch_add_async; end interface
  public :: llcl_fetch_add
  interface llcl_fetch_add; procedure call_fetch_add; end interface
  public :: llcl_try_compare_swap_async
  interface llcl_try_compare_swap_async; procedure call_try_compare_swap_async; end interface
  public :: llcl_compare_swap_async
  interface llcl_compare_swap_async; procedure call_compare_swap_async; end interface
  public :: llcl_compare_swap
  interface llcl_compare_swap; procedure call_compare_swap; end interface
  public :: llcl_flush
  interface llcl_flush; procedure call_flush; end interface
  public :: llcl_flush_all
  interface llcl_flush_all; procedure call_flush_all; end interface
  public :: llcl_wait_word
  interface llcl_wait_word; procedure call_wait_word; end interface
  public :: llcl_wait_word_from
  interface llcl_wait_word_from; procedure call_wait_word_from; end interface
  public :: llcl_flush_within
  interface llcl_flush_within; procedure call_flush_within; end interface
  public :: llcl_wait_any
  interface llcl_wait_any; procedure call_wait_any; end interface
  public :: llcl_wait_fd
  interface llcl_wait_fd; procedure call_wait_fd; end interface
  public :: llcl_wake
  interface llcl_wake; procedure call_wake; end interface
  public :: llcl_progress
  interface llcl_progress; procedure call_progress; end interface

contains

  subroutine call_atomic_query(context, peer, target, op, type, info, status)
    type(llcl_context_t), intent(in) :: context
    integer(c_int32_t), intent(in) :: peer
    type(llcl_remote_t), intent(in) :: target
    integer(c_int32_t), intent(in) :: op
    integer(c_int32_t), intent(in) :: type
    type(llcl_atomic_info_t), intent(inout) :: info
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_atomic_query'//c_null_char, c_atomic_query(context, peer, target, op, type, &
        info), status)
  end subroutine

  subroutine call_try_atomic_async(context, params, status)
    type(llcl_context_t), intent(in) :: context
    type(llcl_atomic_params_t), intent(in) :: params
    integer(c_int32_t), intent(out) :: status
    call finish('llcl_try_atomic_async'//c_null_char, c_try_atomic_async(context, params), status)
  end subroutine

  subroutine call_atomic_async(context, params, status)
    type(llcl_context_t), intent(in) :: context
    type(llcl_atomic_params_t), intent(in) :: params
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_atomic_async'//c_null_char, c_atomic_async(context, params), status)
  end subroutine

  subroutine call_atomic(context, params, status)
    type(llcl_context_t), intent(in) :: context
    type(llcl_atomic_params_t), intent(in) :: params
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_atomic'//c_null_char, c_atomic(context, params), status)
  end subroutine

  subroutine call_try_fetch_add_async(context, params, status)
    type(llcl_context_t), intent(in) :: context
    type(llcl_fetch_add_params_t), intent(in) :: params
    integer(c_int32_t), intent(out) :: status
    call finish('llcl_try_fetch_add_async'//c_null_char, c_try_fetch_add_async(context, params), &
        status)
  end subroutine

  subroutine call_fetch_add_async(context, params, status)
    type(llcl_context_t), intent(in) :: context
    type(llcl_fetch_add_params_t), intent(in) :: params
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_fetch_add_async'//c_null_char, c_fetch_add_async(context, params), status)
  end subroutine

  subroutine call_fetch_add(context, params, status)
    type(llcl_context_t), intent(in) :: context
    type(llcl_fetch_add_params_t), intent(in) :: params
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_fetch_add'//c_null_char, c_fetch_add(context, params), status)
  end subroutine

  subroutine call_try_compare_swap_async(context, params, status)
    type(llcl_context_t), intent(in) :: context
    type(llcl_compare_swap_params_t), intent(in) :: params
    integer(c_int32_t), intent(out) :: status
    call finish('llcl_try_compare_swap_async'//c_null_char, c_try_compare_swap_async(context, &
        params), status)
  end subroutine

  subroutine call_compare_swap_async(context, params, status)
    type(llcl_context_t), intent(in) :: context
    type(llcl_compare_swap_params_t), intent(in) :: params
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_compare_swap_async'//c_null_char, c_compare_swap_async(context, params), &
        status)
  end subroutine

  subroutine call_compare_swap(context, params, status)
    type(llcl_context_t), intent(in) :: context
    type(llcl_compare_swap_params_t), intent(in) :: params
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_compare_swap'//c_null_char, c_compare_swap(context, params), status)
  end subroutine

  subroutine call_flush(context, peer, status)
    type(llcl_context_t), intent(in) :: context
    integer(c_int32_t), intent(in) :: peer
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_flush'//c_null_char, c_flush(context, peer), status)
  end subroutine

  subroutine call_flush_all(context, status)
    type(llcl_context_t), intent(in) :: context
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_flush_all'//c_null_char, c_flush_all(context), status)
  end subroutine

  subroutine call_wait_word(context, word, at_least, timeout_ns, status)
    type(llcl_context_t), intent(in) :: context
    integer(c_int64_t), intent(inout), asynchronous :: word
    integer(c_int64_t), intent(in) :: at_least
    integer(c_int64_t), intent(in) :: timeout_ns
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_wait_word'//c_null_char, c_wait_word(context, word, at_least, timeout_ns), &
        status)
  end subroutine

  subroutine call_wait_word_from(context, word, at_least, timeout_ns, peer, status)
    type(llcl_context_t), intent(in) :: context
    integer(c_int64_t), intent(inout), asynchronous :: word
    integer(c_int64_t), intent(in) :: at_least
    integer(c_int64_t), intent(in) :: timeout_ns
    integer(c_int32_t), intent(in) :: peer
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_wait_word_from'//c_null_char, c_wait_word_from(context, word, at_least, &
        timeout_ns, peer), status)
  end subroutine

  subroutine call_flush_within(context, peer, timeout_ns, status)
    type(llcl_context_t), intent(in) :: context
    integer(c_int32_t), intent(in) :: peer
    integer(c_int64_t), intent(in) :: timeout_ns
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_flush_within'//c_null_char, c_flush_within(context, peer, timeout_ns), status)
  end subroutine

  subroutine call_wait_any(context, words, count, flags, timeout_ns, which, status)
    type(llcl_context_t), intent(in) :: context
    type(llcl_awaited_t), intent(in), optional :: words(*)
    integer(c_int32_t), intent(in) :: count
    integer(c_int32_t), intent(in) :: flags
    integer(c_int64_t), intent(in) :: timeout_ns
    integer(c_int32_t), intent(inout), optional :: which
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_wait_any'//c_null_char, c_wait_any(context, words, count, flags, timeout_ns, &
        which), status)
  end subroutine

  subroutine call_wait_fd(context, words, count, flags, descriptor, status)
    type(llcl_context_t), intent(in) :: context
    type(llcl_awaited_t), intent(in), optional :: words(*)
    integer(c_int32_t), intent(in) :: count
    integer(c_int32_t), intent(in) :: flags
    integer(c_int32_t), intent(inout) :: descriptor
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_wait_fd'//c_null_char, c_wait_fd(context, words, count, flags, descriptor), &
        status)
  end subroutine

  subroutine call_wake(context, peer, status)
    type(llcl_context_t), intent(in) :: context
    integer(c_int32_t), intent(in) :: peer
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_wake'//c_null_char, c_wake(context, peer), status)
  end subroutine

  subroutine call_progress(context, status)
    type(llcl_context_t), intent(in) :: context
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_progress'//c_null_char, c_progress(context), status)
  end subroutine
end module llcl_calls_words
