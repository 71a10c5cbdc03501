! Functions of llcl.h as C has them.
! Generated from llcl.h by `make header`; changes belong into scripts/fortran.awk.
! SPDX-License-Identifier: MIT OR Apache-2.0
module llcl_c_inits
  use, intrinsic :: iso_c_binding
  use llcl_types
  implicit none

  interface
    function llcl_barrier_init(params, plan) bind(c) result(answer)
      import
      type(llcl_coll_params_t), intent(in) :: params
      type(llcl_coll_t), intent(out) :: plan
      integer(c_int32_t) :: answer
    end function

    function llcl_broadcast_init(params, plan) bind(c) result(answer)
      import
      type(llcl_coll_params_t), intent(in) :: params
      type(llcl_coll_t), intent(out) :: plan
      integer(c_int32_t) :: answer
    end function

    function llcl_reduce_init(params, plan) bind(c) result(answer)
      import
      type(llcl_coll_params_t), intent(in) :: params
      type(llcl_coll_t), intent(out) :: plan
      integer(c_int32_t) :: answer
    end function

    function llcl_allreduce_init(params, plan) bind(c) result(answer)
      import
      type(llcl_coll_params_t), intent(in) :: params
      type(llcl_coll_t), intent(out) :: plan
      integer(c_int32_t) :: answer
    end function

    function llcl_gather_init(params, plan) bind(c) result(answer)
      import
      type(llcl_coll_params_t), intent(in) :: params
      type(llcl_coll_t), intent(out) :: plan
      integer(c_int32_t) :: answer
    end function

    function llcl_gatherv_init(params, plan) bind(c) result(answer)
      import
      type(llcl_coll_params_t), intent(in) :: params
      type(llcl_coll_t), intent(out) :: plan
      integer(c_int32_t) :: answer
    end function

    function llcl_scatter_init(params, plan) bind(c) result(answer)
      import
      type(llcl_coll_params_t), intent(in) :: params
      type(llcl_coll_t), intent(out) :: plan
      integer(c_int32_t) :: answer
    end function

    function llcl_scatterv_init(params, plan) bind(c) result(answer)
      import
      type(llcl_coll_params_t), intent(in) :: params
      type(llcl_coll_t), intent(out) :: plan
      integer(c_int32_t) :: answer
    end function

    function llcl_allgather_init(params, plan) bind(c) result(answer)
      import
      type(llcl_coll_params_t), intent(in) :: params
      type(llcl_coll_t), intent(out) :: plan
      integer(c_int32_t) :: answer
    end function

    function llcl_allgatherv_init(params, plan) bind(c) result(answer)
      import
      type(llcl_coll_params_t), intent(in) :: params
      type(llcl_coll_t), intent(out) :: plan
      integer(c_int32_t) :: answer
    end function

    function llcl_alltoall_init(params, plan) bind(c) result(answer)
      import
      type(llcl_coll_params_t), intent(in) :: params
      type(llcl_coll_t), intent(out) :: plan
      integer(c_int32_t) :: answer
    end function

    function llcl_alltoallv_init(params, plan) bind(c) result(answer)
      import
      type(llcl_coll_params_t), intent(in) :: params
      type(llcl_coll_t), intent(out) :: plan
      integer(c_int32_t) :: answer
    end function

    function llcl_reduce_scatter_init(params, plan) bind(c) result(answer)
      import
      type(llcl_coll_params_t), intent(in) :: params
      type(llcl_coll_t), intent(out) :: plan
      integer(c_int32_t) :: answer
    end function

    function llcl_reduce_scatterv_init(params, plan) bind(c) result(answer)
      import
      type(llcl_coll_params_t), intent(in) :: params
      type(llcl_coll_t), intent(out) :: plan
      integer(c_int32_t) :: answer
    end function

    function llcl_scan_init(params, plan) bind(c) result(answer)
      import
      type(llcl_coll_params_t), intent(in) :: params
      type(llcl_coll_t), intent(out) :: plan
      integer(c_int32_t) :: answer
    end function

    function llcl_exscan_init(params, plan) bind(c) result(answer)
      import
      type(llcl_coll_params_t), intent(in) :: params
      type(llcl_coll_t), intent(out) :: plan
      integer(c_int32_t) :: answer
    end function
  end interface
end module llcl_c_inits
