! Functions of llcl.h as C has them.
! Generated from llcl.h by `make header`; changes belong into scripts/fortran.awk.
! SPDX-License-Identifier: MIT OR Apache-2.0
module llcl_c_rma
  use, intrinsic :: iso_c_binding
  use llcl_types
  implicit none

  interface
    function llcl_try_read_async(context, params) bind(c) result(answer)
      import
      type(llcl_context_t), value :: context
      type(llcl_read_params_t), intent(in) :: params
      integer(c_int32_t) :: answer
    end function

    function llcl_read_async(context, params) bind(c) result(answer)
      import
      type(llcl_context_t), value :: context
      type(llcl_read_params_t), intent(in) :: params
      integer(c_int32_t) :: answer
    end function

    function llcl_read(context, params) bind(c) result(answer)
      import
      type(llcl_context_t), value :: context
      type(llcl_read_params_t), intent(in) :: params
      integer(c_int32_t) :: answer
    end function

    function llcl_try_write_async(context, params) bind(c) result(answer)
      import
      type(llcl_context_t), value :: context
      type(llcl_write_params_t), intent(in) :: params
      integer(c_int32_t) :: answer
    end function

    function llcl_write_async(context, params) bind(c) result(answer)
      import
      type(llcl_context_t), value :: context
      type(llcl_write_params_t), intent(in) :: params
      integer(c_int32_t) :: answer
    end function

    function llcl_write(context, params) bind(c) result(answer)
      import
      type(llcl_context_t), value :: context
      type(llcl_write_params_t), intent(in) :: params
      integer(c_int32_t) :: answer
    end function

    function llcl_try_write_signal_async(context, params) bind(c) result(answer)
      import
      type(llcl_context_t), value :: context
      type(llcl_write_signal_params_t), intent(in) :: params
      integer(c_int32_t) :: answer
    end function

    function llcl_write_signal_async(context, params) bind(c) result(answer)
      import
      type(llcl_context_t), value :: context
      type(llcl_write_signal_params_t), intent(in) :: params
      integer(c_int32_t) :: answer
    end function

    function llcl_write_signal(context, params) bind(c) result(answer)
      import
      type(llcl_context_t), value :: context
      type(llcl_write_signal_params_t), intent(in) :: params
      integer(c_int32_t) :: answer
    end function

    function llcl_try_write_value_async(context, params) bind(c) result(answer)
      import
      type(llcl_context_t), value :: context
      type(llcl_write_value_params_t), intent(in) :: params
      integer(c_int32_t) :: answer
    end function

    function llcl_write_value_async(context, params) bind(c) result(answer)
      import
      type(llcl_context_t), value :: context
      type(llcl_write_value_params_t), intent(in) :: params
      integer(c_int32_t) :: answer
    end function

    function llcl_write_value(context, params) bind(c) result(answer)
      import
      type(llcl_context_t), value :: context
      type(llcl_write_value_params_t), intent(in) :: params
      integer(c_int32_t) :: answer
    end function

    function llcl_try_write_small_async(context, params) bind(c) result(answer)
      import
      type(llcl_context_t), value :: context
      type(llcl_write_small_params_t), intent(in) :: params
      integer(c_int32_t) :: answer
    end function

    function llcl_write_small_async(context, params) bind(c) result(answer)
      import
      type(llcl_context_t), value :: context
      type(llcl_write_small_params_t), intent(in) :: params
      integer(c_int32_t) :: answer
    end function

    function llcl_write_small(context, params) bind(c) result(answer)
      import
      type(llcl_context_t), value :: context
      type(llcl_write_small_params_t), intent(in) :: params
      integer(c_int32_t) :: answer
    end function

    function llcl_try_write_strided_async(context, params) bind(c) result(answer)
      import
      type(llcl_context_t), value :: context
      type(llcl_strided_params_t), intent(in) :: params
      integer(c_int32_t) :: answer
    end function

    function llcl_write_strided_async(context, params) bind(c) result(answer)
      import
      type(llcl_context_t), value :: context
      type(llcl_strided_params_t), intent(in) :: params
      integer(c_int32_t) :: answer
    end function

    function llcl_write_strided(context, params) bind(c) result(answer)
      import
      type(llcl_context_t), value :: context
      type(llcl_strided_params_t), intent(in) :: params
      integer(c_int32_t) :: answer
    end function

    function llcl_try_read_strided_async(context, params) bind(c) result(answer)
      import
      type(llcl_context_t), value :: context
      type(llcl_strided_params_t), intent(in) :: params
      integer(c_int32_t) :: answer
    end function

    function llcl_read_strided_async(context, params) bind(c) result(answer)
      import
      type(llcl_context_t), value :: context
      type(llcl_strided_params_t), intent(in) :: params
      integer(c_int32_t) :: answer
    end function

    function llcl_read_strided(context, params) bind(c) result(answer)
      import
      type(llcl_context_t), value :: context
      type(llcl_strided_params_t), intent(in) :: params
      integer(c_int32_t) :: answer
    end function

    function llcl_try_writev_async(context, params) bind(c) result(answer)
      import
      type(llcl_context_t), value :: context
      type(llcl_vector_params_t), intent(in) :: params
      integer(c_int32_t) :: answer
    end function

    function llcl_writev_async(context, params) bind(c) result(answer)
      import
      type(llcl_context_t), value :: context
      type(llcl_vector_params_t), intent(in) :: params
      integer(c_int32_t) :: answer
    end function

    function llcl_writev(context, params) bind(c) result(answer)
      import
      type(llcl_context_t), value :: context
      type(llcl_vector_params_t), intent(in) :: params
      integer(c_int32_t) :: answer
    end function

    function llcl_try_readv_async(context, params) bind(c) result(answer)
      import
      type(llcl_context_t), value :: context
      type(llcl_vector_params_t), intent(in) :: params
      integer(c_int32_t) :: answer
    end function

    function llcl_readv_async(context, params) bind(c) result(answer)
      import
      type(llcl_context_t), value :: context
      type(llcl_vector_params_t), intent(in) :: params
      integer(c_int32_t) :: answer
    end function

    function llcl_readv(context, params) bind(c) result(answer)
      import
      type(llcl_context_t), value :: context
      type(llcl_vector_params_t), intent(in) :: params
      integer(c_int32_t) :: answer
    end function
  end interface
end module llcl_c_rma
