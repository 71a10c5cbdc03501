! Functions of llcl.h as C has them.
! Generated from llcl.h by `make header`; changes belong into scripts/fortran.awk.
! SPDX-License-Identifier: MIT OR Apache-2.0
module llcl_c_am
  use, intrinsic :: iso_c_binding
  use llcl_types
  implicit none

  interface
    function llcl_am_register(context, id, handler, data) bind(c) result(answer)
      import
      type(llcl_context_t), value :: context
      integer(c_int32_t), value :: id
      type(c_funptr), value :: handler
      type(c_ptr), value :: data
      integer(c_int32_t) :: answer
    end function

    function llcl_try_am_async(context, params) bind(c) result(answer)
      import
      type(llcl_context_t), value :: context
      type(llcl_am_params_t), intent(in) :: params
      integer(c_int32_t) :: answer
    end function

    function llcl_am_async(context, params) bind(c) result(answer)
      import
      type(llcl_context_t), value :: context
      type(llcl_am_params_t), intent(in) :: params
      integer(c_int32_t) :: answer
    end function

    function llcl_am(context, params) bind(c) result(answer)
      import
      type(llcl_context_t), value :: context
      type(llcl_am_params_t), intent(in) :: params
      integer(c_int32_t) :: answer
    end function

    function llcl_am_within(context, params, timeout_ns) bind(c) result(answer)
      import
      type(llcl_context_t), value :: context
      type(llcl_am_params_t), intent(in) :: params
      integer(c_int64_t), value :: timeout_ns
      integer(c_int32_t) :: answer
    end function

    function llcl_am_poll(context, most, handled) bind(c) result(answer)
      import
      type(llcl_context_t), value :: context
      integer(c_int32_t), value :: most
      integer(c_int32_t), intent(out), optional :: handled
      integer(c_int32_t) :: answer
    end function

    function llcl_am_wait(context, timeout_ns) bind(c) result(answer)
      import
      type(llcl_context_t), value :: context
      integer(c_int64_t), value :: timeout_ns
      integer(c_int32_t) :: answer
    end function

    function llcl_am_view(message, view) bind(c) result(answer)
      import
      type(llcl_am_t), value :: message
      type(llcl_am_view_t), intent(inout) :: view
      integer(c_int32_t) :: answer
    end function

    function llcl_am_respond(message, params) bind(c) result(answer)
      import
      type(llcl_am_t), value :: message
      type(llcl_am_params_t), intent(in) :: params
      integer(c_int32_t) :: answer
    end function

    function llcl_am_reply(message, data, size) bind(c) result(answer)
      import
      type(llcl_am_t), value :: message
      type(c_ptr), value :: data
      integer(c_size_t), value :: size
      integer(c_int32_t) :: answer
    end function

    function llcl_am_retain(message) bind(c) result(answer)
      import
      type(llcl_am_t), value :: message
      type(llcl_am_t) :: answer
    end function

    function llcl_am_release(message) bind(c) result(answer)
      import
      type(llcl_am_t), value :: message
      integer(c_int32_t) :: answer
    end function
  end interface
end module llcl_c_am
