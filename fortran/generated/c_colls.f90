! Functions of llcl.h as C has them.
! Generated from llcl.h by `make header`; changes belong into scripts/fortran.awk.
! SPDX-License-Identifier: MIT OR Apache-2.0
module llcl_c_colls
  use, intrinsic :: iso_c_binding
  use llcl_types
  implicit none

  interface
    function llcl_barrier(context) bind(c) result(answer)
      import
      type(llcl_context_t), value :: context
      integer(c_int32_t) :: answer
    end function

    function llcl_team_barrier(team) bind(c) result(answer)
      import
      type(llcl_team_t), value :: team
      integer(c_int32_t) :: answer
    end function

    function llcl_broadcast(params) bind(c) result(answer)
      import
      type(llcl_coll_params_t), intent(in) :: params
      integer(c_int32_t) :: answer
    end function

    function llcl_reduce(params) bind(c) result(answer)
      import
      type(llcl_coll_params_t), intent(in) :: params
      integer(c_int32_t) :: answer
    end function

    function llcl_allreduce(params) bind(c) result(answer)
      import
      type(llcl_coll_params_t), intent(in) :: params
      integer(c_int32_t) :: answer
    end function

    function llcl_gather(params) bind(c) result(answer)
      import
      type(llcl_coll_params_t), intent(in) :: params
      integer(c_int32_t) :: answer
    end function

    function llcl_gatherv(params) bind(c) result(answer)
      import
      type(llcl_coll_params_t), intent(in) :: params
      integer(c_int32_t) :: answer
    end function

    function llcl_scatter(params) bind(c) result(answer)
      import
      type(llcl_coll_params_t), intent(in) :: params
      integer(c_int32_t) :: answer
    end function

    function llcl_scatterv(params) bind(c) result(answer)
      import
      type(llcl_coll_params_t), intent(in) :: params
      integer(c_int32_t) :: answer
    end function

    function llcl_allgather(params) bind(c) result(answer)
      import
      type(llcl_coll_params_t), intent(in) :: params
      integer(c_int32_t) :: answer
    end function

    function llcl_allgatherv(params) bind(c) result(answer)
      import
      type(llcl_coll_params_t), intent(in) :: params
      integer(c_int32_t) :: answer
    end function

    function llcl_alltoall(params) bind(c) result(answer)
      import
      type(llcl_coll_params_t), intent(in) :: params
      integer(c_int32_t) :: answer
    end function

    function llcl_alltoallv(params) bind(c) result(answer)
      import
      type(llcl_coll_params_t), intent(in) :: params
      integer(c_int32_t) :: answer
    end function

    function llcl_reduce_scatter(params) bind(c) result(answer)
      import
      type(llcl_coll_params_t), intent(in) :: params
      integer(c_int32_t) :: answer
    end function

    function llcl_reduce_scatterv(params) bind(c) result(answer)
      import
      type(llcl_coll_params_t), intent(in) :: params
      integer(c_int32_t) :: answer
    end function

    function llcl_scan(params) bind(c) result(answer)
      import
      type(llcl_coll_params_t), intent(in) :: params
      integer(c_int32_t) :: answer
    end function

    function llcl_exscan(params) bind(c) result(answer)
      import
      type(llcl_coll_params_t), intent(in) :: params
      integer(c_int32_t) :: answer
    end function

    function llcl_stats_get(context, stats) bind(c) result(answer)
      import
      type(llcl_context_t), value :: context
      type(llcl_stats_t), intent(inout) :: stats
      integer(c_int32_t) :: answer
    end function

    function llcl_barrier_async(params) bind(c) result(answer)
      import
      type(llcl_coll_params_t), intent(in) :: params
      integer(c_int32_t) :: answer
    end function

    function llcl_broadcast_async(params) bind(c) result(answer)
      import
      type(llcl_coll_params_t), intent(in) :: params
      integer(c_int32_t) :: answer
    end function

    function llcl_reduce_async(params) bind(c) result(answer)
      import
      type(llcl_coll_params_t), intent(in) :: params
      integer(c_int32_t) :: answer
    end function

    function llcl_allreduce_async(params) bind(c) result(answer)
      import
      type(llcl_coll_params_t), intent(in) :: params
      integer(c_int32_t) :: answer
    end function

    function llcl_gather_async(params) bind(c) result(answer)
      import
      type(llcl_coll_params_t), intent(in) :: params
      integer(c_int32_t) :: answer
    end function

    function llcl_gatherv_async(params) bind(c) result(answer)
      import
      type(llcl_coll_params_t), intent(in) :: params
      integer(c_int32_t) :: answer
    end function

    function llcl_scatter_async(params) bind(c) result(answer)
      import
      type(llcl_coll_params_t), intent(in) :: params
      integer(c_int32_t) :: answer
    end function

    function llcl_scatterv_async(params) bind(c) result(answer)
      import
      type(llcl_coll_params_t), intent(in) :: params
      integer(c_int32_t) :: answer
    end function

    function llcl_allgather_async(params) bind(c) result(answer)
      import
      type(llcl_coll_params_t), intent(in) :: params
      integer(c_int32_t) :: answer
    end function

    function llcl_allgatherv_async(params) bind(c) result(answer)
      import
      type(llcl_coll_params_t), intent(in) :: params
      integer(c_int32_t) :: answer
    end function

    function llcl_alltoall_async(params) bind(c) result(answer)
      import
      type(llcl_coll_params_t), intent(in) :: params
      integer(c_int32_t) :: answer
    end function

    function llcl_alltoallv_async(params) bind(c) result(answer)
      import
      type(llcl_coll_params_t), intent(in) :: params
      integer(c_int32_t) :: answer
    end function

    function llcl_reduce_scatter_async(params) bind(c) result(answer)
      import
      type(llcl_coll_params_t), intent(in) :: params
      integer(c_int32_t) :: answer
    end function

    function llcl_reduce_scatterv_async(params) bind(c) result(answer)
      import
      type(llcl_coll_params_t), intent(in) :: params
      integer(c_int32_t) :: answer
    end function

    function llcl_scan_async(params) bind(c) result(answer)
      import
      type(llcl_coll_params_t), intent(in) :: params
      integer(c_int32_t) :: answer
    end function

    function llcl_exscan_async(params) bind(c) result(answer)
      import
      type(llcl_coll_params_t), intent(in) :: params
      integer(c_int32_t) :: answer
    end function
  end interface
end module llcl_c_colls
