! Functions of llcl.h as C has them.
! Generated from llcl.h by `make header`; changes belong into scripts/fortran.awk.
! SPDX-License-Identifier: MIT OR Apache-2.0
module llcl_c_words
  use, intrinsic :: iso_c_binding
  use llcl_types
  implicit none

  interface
    function llcl_atomic_query(context, peer, target, op, type, info) bind(c) result(answer)
      import
      type(llcl_context_t), value :: context
      integer(c_int32_t), value :: peer
      type(llcl_remote_t), value :: target
      integer(c_int32_t), value :: op
      integer(c_int32_t), value :: type
      type(llcl_atomic_info_t), intent(inout) :: info
      integer(c_int32_t) :: answer
    end function

    function llcl_try_atomic_async(context, params) bind(c) result(answer)
      import
      type(llcl_context_t), value :: context
      type(llcl_atomic_params_t), intent(in) :: params
      integer(c_int32_t) :: answer
    end function

    function llcl_atomic_async(context, params) bind(c) result(answer)
      import
      type(llcl_context_t), value :: context
      type(llcl_atomic_params_t), intent(in) :: params
      integer(c_int32_t) :: answer
    end function

    function llcl_atomic(context, params) bind(c) result(answer)
      import
      type(llcl_context_t), value :: context
      type(llcl_atomic_params_t), intent(in) :: params
      integer(c_int32_t) :: answer
    end function

    function llcl_try_fetch_add_async(context, params) bind(c) result(answer)
      import
      type(llcl_context_t), value :: context
      type(llcl_fetch_add_params_t), intent(in) :: params
      integer(c_int32_t) :: answer
    end function

    function llcl_fetch_add_async(context, params) bind(c) result(answer)
      import
      type(llcl_context_t), value :: context
      type(llcl_fetch_add_params_t), intent(in) :: params
      integer(c_int32_t) :: answer
    end function

    function llcl_fetch_add(context, params) bind(c) result(answer)
      import
      type(llcl_context_t), value :: context
      type(llcl_fetch_add_params_t), intent(in) :: params
      integer(c_int32_t) :: answer
    end function

    function llcl_try_compare_swap_async(context, params) bind(c) result(answer)
      import
      type(llcl_context_t), value :: context
      type(llcl_compare_swap_params_t), intent(in) :: params
      integer(c_int32_t) :: answer
    end function

    function llcl_compare_swap_async(context, params) bind(c) result(answer)
      import
      type(llcl_context_t), value :: context
      type(llcl_compare_swap_params_t), intent(in) :: params
      integer(c_int32_t) :: answer
    end function

    function llcl_compare_swap(context, params) bind(c) result(answer)
      import
      type(llcl_context_t), value :: context
      type(llcl_compare_swap_params_t), intent(in) :: params
      integer(c_int32_t) :: answer
    end function

    function llcl_flush(context, peer) bind(c) result(answer)
      import
      type(llcl_context_t), value :: context
      integer(c_int32_t), value :: peer
      integer(c_int32_t) :: answer
    end function

    function llcl_flush_all(context) bind(c) result(answer)
      import
      type(llcl_context_t), value :: context
      integer(c_int32_t) :: answer
    end function

    function llcl_wait_word(context, word, at_least, timeout_ns) bind(c) result(answer)
      import
      type(llcl_context_t), value :: context
      integer(c_int64_t), intent(inout), asynchronous :: word
      integer(c_int64_t), value :: at_least
      integer(c_int64_t), value :: timeout_ns
      integer(c_int32_t) :: answer
    end function

    function llcl_wait_word_from(context, word, at_least, timeout_ns, peer) bind(c) result(answer)
      import
      type(llcl_context_t), value :: context
      integer(c_int64_t), intent(inout), asynchronous :: word
      integer(c_int64_t), value :: at_least
      integer(c_int64_t), value :: timeout_ns
      integer(c_int32_t), value :: peer
      integer(c_int32_t) :: answer
    end function

    function llcl_flush_within(context, peer, timeout_ns) bind(c) result(answer)
      import
      type(llcl_context_t), value :: context
      integer(c_int32_t), value :: peer
      integer(c_int64_t), value :: timeout_ns
      integer(c_int32_t) :: answer
    end function

    function llcl_wait_any(context, words, count, flags, timeout_ns, which) bind(c) result(answer)
      import
      type(llcl_context_t), value :: context
      type(llcl_awaited_t), intent(in), optional :: words(*)
      integer(c_int32_t), value :: count
      integer(c_int32_t), value :: flags
      integer(c_int64_t), value :: timeout_ns
      integer(c_int32_t), intent(inout), optional :: which
      integer(c_int32_t) :: answer
    end function

    function llcl_wait_fd(context, words, count, flags, descriptor) bind(c) result(answer)
      import
      type(llcl_context_t), value :: context
      type(llcl_awaited_t), intent(in), optional :: words(*)
      integer(c_int32_t), value :: count
      integer(c_int32_t), value :: flags
      integer(c_int32_t), intent(inout) :: descriptor
      integer(c_int32_t) :: answer
    end function

    function llcl_wake(context, peer) bind(c) result(answer)
      import
      type(llcl_context_t), value :: context
      integer(c_int32_t), value :: peer
      integer(c_int32_t) :: answer
    end function

    function llcl_progress(context) bind(c) result(answer)
      import
      type(llcl_context_t), value :: context
      integer(c_int32_t) :: answer
    end function
  end interface
end module llcl_c_words
