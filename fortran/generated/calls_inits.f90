! Subroutines for the functions of llcl.h that return a status. `status` is the last argument; the
! caller may leave it out.
! Generated from llcl.h by `make header`; changes belong into scripts/fortran.awk.
! SPDX-License-Identifier: MIT OR Apache-2.0
module llcl_calls_inits
  use, intrinsic :: iso_c_binding
  use llcl_types
  use llcl_c_inits, only: c_barrier_init => llcl_barrier_init, &
      c_broadcast_init => llcl_broadcast_init, c_reduce_init => llcl_reduce_init, &
      c_allreduce_init => llcl_allreduce_init, c_gather_init => llcl_gather_init, &
      c_gatherv_init => llcl_gatherv_init, c_scatter_init => llcl_scatter_init, &
      c_scatterv_init => llcl_scatterv_init, c_allgather_init => llcl_allgather_init, &
      c_allgatherv_init => llcl_allgatherv_init, c_alltoall_init => llcl_alltoall_init, &
      c_alltoallv_init => llcl_alltoallv_init, c_reduce_scatter_init => llcl_reduce_scatter_init, &
      c_reduce_scatterv_init => llcl_reduce_scatterv_init, c_scan_init => llcl_scan_init, &
      c_exscan_init => llcl_exscan_init
  use llcl_finish, only: finish
  implicit none
  private
  public :: llcl_barrier_init
  interface llcl_barrier_init; procedure call_barrier_init; end interface
  public :: llcl_broadcast_init
  interface llcl_broadcast_init; procedure call_broadcast_init; end interface
  public :: llcl_reduce_init
  interface llcl_reduce_init; procedure call_reduce_init; end interface
  public :: llcl_allreduce_init
  interface llcl_allreduce_init; procedure call_allreduce_init; end interface
  public :: llcl_gather_init
  interface llcl_gather_init; procedure call_gather_init; end interface
  public :: llcl_gatherv_init
  interface llcl_gatherv_init; procedure call_gatherv_init; end interface
  public :: llcl_scatter_init
  interface llcl_scatter_init; procedure call_scatter_init; end interface
  public :: llcl_scatterv_init
  interface llcl_scatterv_init; procedure call_scatterv_init; end interface
  public :: llcl_allgather_init
  interface llcl_allgather_init; procedure call_allgather_init; end interface
  public :: llcl_allgatherv_init
  interface llcl_allgatherv_init; procedure call_allgatherv_init; end interface
  public :: llcl_alltoall_init
  interface llcl_alltoall_init; procedure call_alltoall_init; end interface
  public :: llcl_alltoallv_init
  interface llcl_alltoallv_init; procedure call_alltoallv_init; end interface
  public :: llcl_reduce_scatter_init
  interface llcl_reduce_scatter_init; procedure call_reduce_scatter_init; end interface
  public :: llcl_reduce_scatterv_init
  interface llcl_reduce_scatterv_init; procedure call_reduce_scatterv_init; end interface
  public :: llcl_scan_init
  interface llcl_scan_init; procedure call_scan_init; end interface
  public :: llcl_exscan_init
  interface llcl_exscan_init; procedure call_exscan_init; end interface

contains

  subroutine call_barrier_init(params, plan, status)
    type(llcl_coll_params_t), intent(in) :: params
    type(llcl_coll_t), intent(out) :: plan
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_barrier_init'//c_null_char, c_barrier_init(params, plan), status)
  end subroutine

  subroutine call_broadcast_init(params, plan, status)
    type(llcl_coll_params_t), intent(in) :: params
    type(llcl_coll_t), intent(out) :: plan
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_broadcast_init'//c_null_char, c_broadcast_init(params, plan), status)
  end subroutine

  subroutine call_reduce_init(params, plan, status)
    type(llcl_coll_params_t), intent(in) :: params
    type(llcl_coll_t), intent(out) :: plan
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_reduce_init'//c_null_char, c_reduce_init(params, plan), status)
  end subroutine

  subroutine call_allreduce_init(params, plan, status)
    type(llcl_coll_params_t), intent(in) :: params
    type(llcl_coll_t), intent(out) :: plan
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_allreduce_init'//c_null_char, c_allreduce_init(params, plan), status)
  end subroutine

  subroutine call_gather_init(params, plan, status)
    type(llcl_coll_params_t), intent(in) :: params
    type(llcl_coll_t), intent(out) :: plan
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_gather_init'//c_null_char, c_gather_init(params, plan), status)
  end subroutine

  subroutine call_gatherv_init(params, plan, status)
    type(llcl_coll_params_t), intent(in) :: params
    type(llcl_coll_t), intent(out) :: plan
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_gatherv_init'//c_null_char, c_gatherv_init(params, plan), status)
  end subroutine

  subroutine call_scatter_init(params, plan, status)
    type(llcl_coll_params_t), intent(in) :: params
    type(llcl_coll_t), intent(out) :: plan
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_scatter_init'//c_null_char, c_scatter_init(params, plan), status)
  end subroutine

  subroutine call_scatterv_init(params, plan, status)
    type(llcl_coll_params_t), intent(in) :: params
    type(llcl_coll_t), intent(out) :: plan
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_scatterv_init'//c_null_char, c_scatterv_init(params, plan), status)
  end subroutine

  subroutine call_allgather_init(params, plan, status)
    type(llcl_coll_params_t), intent(in) :: params
    type(llcl_coll_t), intent(out) :: plan
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_allgather_init'//c_null_char, c_allgather_init(params, plan), status)
  end subroutine

  subroutine call_allgatherv_init(params, plan, status)
    type(llcl_coll_params_t), intent(in) :: params
    type(llcl_coll_t), intent(out) :: plan
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_allgatherv_init'//c_null_char, c_allgatherv_init(params, plan), status)
  end subroutine

  subroutine call_alltoall_init(params, plan, status)
    type(llcl_coll_params_t), intent(in) :: params
    type(llcl_coll_t), intent(out) :: plan
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_alltoall_init'//c_null_char, c_alltoall_init(params, plan), status)
  end subroutine

  subroutine call_alltoallv_init(params, plan, status)
    type(llcl_coll_params_t), intent(in) :: params
    type(llcl_coll_t), intent(out) :: plan
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_alltoallv_init'//c_null_char, c_alltoallv_init(params, plan), status)
  end subroutine

  subroutine call_reduce_scatter_init(params, plan, status)
    type(llcl_coll_params_t), intent(in) :: params
    type(llcl_coll_t), intent(out) :: plan
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_reduce_scatter_init'//c_null_char, c_reduce_scatter_init(params, plan), &
        status)
  end subroutine

  subroutine call_reduce_scatterv_init(params, plan, status)
    type(llcl_coll_params_t), intent(in) :: params
    type(llcl_coll_t), intent(out) :: plan
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_reduce_scatterv_init'//c_null_char, c_reduce_scatterv_init(params, plan), &
        status)
  end subroutine

  subroutine call_scan_init(params, plan, status)
    type(llcl_coll_params_t), intent(in) :: params
    type(llcl_coll_t), intent(out) :: plan
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_scan_init'//c_null_char, c_scan_init(params, plan), status)
  end subroutine

  subroutine call_exscan_init(params, plan, status)
    type(llcl_coll_params_t), intent(in) :: params
    type(llcl_coll_t), intent(out) :: plan
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_exscan_init'//c_null_char, c_exscan_init(params, plan), status)
  end subroutine
end module llcl_calls_inits
