! Subroutines for the functions of llcl.h that return a status. `status` is the last argument; the
! caller may leave it out.
! Generated from llcl.h by `make header`; changes belong into scripts/fortran.awk.
! SPDX-License-Identifier: MIT OR Apache-2.0
module llcl_calls_colls
  use, intrinsic :: iso_c_binding
  use llcl_types
  use llcl_c_colls, only: c_barrier => llcl_barrier, c_team_barrier => llcl_team_barrier, &
      c_broadcast => llcl_broadcast, c_reduce => llcl_reduce, c_allreduce => llcl_allreduce, &
      c_gather => llcl_gather, c_gatherv => llcl_gatherv, c_scatter => llcl_scatter, &
      c_scatterv => llcl_scatterv, c_allgather => llcl_allgather, c_allgatherv => llcl_allgatherv, &
      c_alltoall => llcl_alltoall, c_alltoallv => llcl_alltoallv, &
      c_reduce_scatter => llcl_reduce_scatter, c_reduce_scatterv => llcl_reduce_scatterv, &
      c_scan => llcl_scan, c_exscan => llcl_exscan, c_stats_get => llcl_stats_get, &
      c_barrier_async => llcl_barrier_async, c_broadcast_async => llcl_broadcast_async, &
      c_reduce_async => llcl_reduce_async, c_allreduce_async => llcl_allreduce_async, &
      c_gather_async => llcl_gather_async, c_gatherv_async => llcl_gatherv_async, &
      c_scatter_async => llcl_scatter_async, c_scatterv_async => llcl_scatterv_async, &
      c_allgather_async => llcl_allgather_async, c_allgatherv_async => llcl_allgatherv_async, &
      c_alltoall_async => llcl_alltoall_async, c_alltoallv_async => llcl_alltoallv_async, &
      c_reduce_scatter_async => llcl_reduce_scatter_async, &
      c_reduce_scatterv_async => llcl_reduce_scatterv_async, c_scan_async => llcl_scan_async, &
      c_exscan_async => llcl_exscan_async
  use llcl_finish, only: finish
  implicit none
  private
  public :: llcl_barrier
  interface llcl_barrier; procedure call_barrier; end interface
  public :: llcl_team_barrier
  interface llcl_team_barrier; procedure call_team_barrier; end interface
  public :: llcl_broadcast
  interface llcl_broadcast; procedure call_broadcast; end interface
  public :: llcl_reduce
  interface llcl_reduce; procedure call_reduce; end interface
  public :: llcl_allreduce
  interface llcl_allreduce; procedure call_allreduce; end interface
  public :: llcl_gather
  interface llcl_gather; procedure call_gather; end interface
  public :: llcl_gatherv
  interface llcl_gatherv; procedure call_gatherv; end interface
  public :: llcl_scatter
  interface llcl_scatter; procedure call_scatter; end interface
  public :: llcl_scatterv
  interface llcl_scatterv; procedure call_scatterv; end interface
  public :: llcl_allgather
  interface llcl_allgather; procedure call_allgather; end interface
  public :: llcl_allgatherv
  interface llcl_allgatherv; procedure call_allgatherv; end interface
  public :: llcl_alltoall
  interface llcl_alltoall; procedure call_alltoall; end interface
  public :: llcl_alltoallv
  interface llcl_alltoallv; procedure call_alltoallv; end interface
  public :: llcl_reduce_scatter
  interface llcl_reduce_scatter; procedure call_reduce_scatter; end interface
  public :: llcl_reduce_scatterv
  interface llcl_reduce_scatterv; procedure call_reduce_scatterv; end interface
  public :: llcl_scan
  interface llcl_scan; procedure call_scan; end interface
  public :: llcl_exscan
  interface llcl_exscan; procedure call_exscan; end interface
  public :: llcl_stats_get
  interface llcl_stats_get; procedure call_stats_get; end interface
  public :: llcl_barrier_async
  interface llcl_barrier_async; procedure call_barrier_async; end interface
  public :: llcl_broadcast_async
  interface llcl_broadcast_async; procedure call_broadcast_async; end interface
  public :: llcl_reduce_async
  interface llcl_reduce_async; procedure call_reduce_async; end interface
  public :: llcl_allreduce_async
  interface llcl_allreduce_async; procedure call_allreduce_async; end interface
  public :: llcl_gather_async
  interface llcl_gather_async; procedure call_gather_async; end interface
  public :: llcl_gatherv_async
  interface llcl_gatherv_async; procedure call_gatherv_async; end interface
  public :: llcl_scatter_async
  interface llcl_scatter_async; procedure call_scatter_async; end interface
  public :: llcl_scatterv_async
  interface llcl_scatterv_async; procedure call_scatterv_async; end interface
  public :: llcl_allgather_async
  interface llcl_allgather_async; procedure call_allgather_async; end interface
  public :: llcl_allgatherv_async
  interface llcl_allgatherv_async; procedure call_allgatherv_async; end interface
  public :: llcl_alltoall_async
  interface llcl_alltoall_async; procedure call_alltoall_async; end interface
  public :: llcl_alltoallv_async
  interface llcl_alltoallv_async; procedure call_alltoallv_async; end interface
  public :: llcl_reduce_scatter_async
  interface llcl_reduce_scatter_async; procedure call_reduce_scatter_async; end interface
  public :: llcl_reduce_scatterv_async
  interface llcl_reduce_scatterv_async; procedure call_reduce_scatterv_async; end interface
  public :: llcl_scan_async
  interface llcl_scan_async; procedure call_scan_async; end interface
  public :: llcl_exscan_async
  interface llcl_exscan_async; procedure call_exscan_async; end interface

contains

  subroutine call_barrier(context, status)
    type(llcl_context_t), intent(in) :: context
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_barrier'//c_null_char, c_barrier(context), status)
  end subroutine

  subroutine call_team_barrier(team, status)
    type(llcl_team_t), intent(in) :: team
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_team_barrier'//c_null_char, c_team_barrier(team), status)
  end subroutine

  subroutine call_broadcast(params, status)
    type(llcl_coll_params_t), intent(in) :: params
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_broadcast'//c_null_char, c_broadcast(params), status)
  end subroutine

  subroutine call_reduce(params, status)
    type(llcl_coll_params_t), intent(in) :: params
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_reduce'//c_null_char, c_reduce(params), status)
  end subroutine

  subroutine call_allreduce(params, status)
    type(llcl_coll_params_t), intent(in) :: params
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_allreduce'//c_null_char, c_allreduce(params), status)
  end subroutine

  subroutine call_gather(params, status)
    type(llcl_coll_params_t), intent(in) :: params
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_gather'//c_null_char, c_gather(params), status)
  end subroutine

  subroutine call_gatherv(params, status)
    type(llcl_coll_params_t), intent(in) :: params
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_gatherv'//c_null_char, c_gatherv(params), status)
  end subroutine

  subroutine call_scatter(params, status)
    type(llcl_coll_params_t), intent(in) :: params
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_scatter'//c_null_char, c_scatter(params), status)
  end subroutine

  subroutine call_scatterv(params, status)
    type(llcl_coll_params_t), intent(in) :: params
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_scatterv'//c_null_char, c_scatterv(params), status)
  end subroutine

  subroutine call_allgather(params, status)
    type(llcl_coll_params_t), intent(in) :: params
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_allgather'//c_null_char, c_allgather(params), status)
  end subroutine

  subroutine call_allgatherv(params, status)
    type(llcl_coll_params_t), intent(in) :: params
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_allgatherv'//c_null_char, c_allgatherv(params), status)
  end subroutine

  subroutine call_alltoall(params, status)
    type(llcl_coll_params_t), intent(in) :: params
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_alltoall'//c_null_char, c_alltoall(params), status)
  end subroutine

  subroutine call_alltoallv(params, status)
    type(llcl_coll_params_t), intent(in) :: params
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_alltoallv'//c_null_char, c_alltoallv(params), status)
  end subroutine

  subroutine call_reduce_scatter(params, status)
    type(llcl_coll_params_t), intent(in) :: params
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_reduce_scatter'//c_null_char, c_reduce_scatter(params), status)
  end subroutine

  subroutine call_reduce_scatterv(params, status)
    type(llcl_coll_params_t), intent(in) :: params
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_reduce_scatterv'//c_null_char, c_reduce_scatterv(params), status)
  end subroutine

  subroutine call_scan(params, status)
    type(llcl_coll_params_t), intent(in) :: params
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_scan'//c_null_char, c_scan(params), status)
  end subroutine

  subroutine call_exscan(params, status)
    type(llcl_coll_params_t), intent(in) :: params
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_exscan'//c_null_char, c_exscan(params), status)
  end subroutine

  subroutine call_stats_get(context, stats, status)
    type(llcl_context_t), intent(in) :: context
    type(llcl_stats_t), intent(inout) :: stats
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_stats_get'//c_null_char, c_stats_get(context, stats), status)
  end subroutine

  subroutine call_barrier_async(params, status)
    type(llcl_coll_params_t), intent(in) :: params
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_barrier_async'//c_null_char, c_barrier_async(params), status)
  end subroutine

  subroutine call_broadcast_async(params, status)
    type(llcl_coll_params_t), intent(in) :: params
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_broadcast_async'//c_null_char, c_broadcast_async(params), status)
  end subroutine

  subroutine call_reduce_async(params, status)
    type(llcl_coll_params_t), intent(in) :: params
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_reduce_async'//c_null_char, c_reduce_async(params), status)
  end subroutine

  subroutine call_allreduce_async(params, status)
    type(llcl_coll_params_t), intent(in) :: params
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_allreduce_async'//c_null_char, c_allreduce_async(params), status)
  end subroutine

  subroutine call_gather_async(params, status)
    type(llcl_coll_params_t), intent(in) :: params
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_gather_async'//c_null_char, c_gather_async(params), status)
  end subroutine

  subroutine call_gatherv_async(params, status)
    type(llcl_coll_params_t), intent(in) :: params
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_gatherv_async'//c_null_char, c_gatherv_async(params), status)
  end subroutine

  subroutine call_scatter_async(params, status)
    type(llcl_coll_params_t), intent(in) :: params
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_scatter_async'//c_null_char, c_scatter_async(params), status)
  end subroutine

  subroutine call_scatterv_async(params, status)
    type(llcl_coll_params_t), intent(in) :: params
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_scatterv_async'//c_null_char, c_scatterv_async(params), status)
  end subroutine

  subroutine call_allgather_async(params, status)
    type(llcl_coll_params_t), intent(in) :: params
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_allgather_async'//c_null_char, c_allgather_async(params), status)
  end subroutine

  subroutine call_allgatherv_async(params, status)
    type(llcl_coll_params_t), intent(in) :: params
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_allgatherv_async'//c_null_char, c_allgatherv_async(params), status)
  end subroutine

  subroutine call_alltoall_async(params, status)
    type(llcl_coll_params_t), intent(in) :: params
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_alltoall_async'//c_null_char, c_alltoall_async(params), status)
  end subroutine

  subroutine call_alltoallv_async(params, status)
    type(llcl_coll_params_t), intent(in) :: params
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_alltoallv_async'//c_null_char, c_alltoallv_async(params), status)
  end subroutine

  subroutine call_reduce_scatter_async(params, status)
    type(llcl_coll_params_t), intent(in) :: params
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_reduce_scatter_async'//c_null_char, c_reduce_scatter_async(params), status)
  end subroutine

  subroutine call_reduce_scatterv_async(params, status)
    type(llcl_coll_params_t), intent(in) :: params
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_reduce_scatterv_async'//c_null_char, c_reduce_scatterv_async(params), status)
  end subroutine

  subroutine call_scan_async(params, status)
    type(llcl_coll_params_t), intent(in) :: params
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_scan_async'//c_null_char, c_scan_async(params), status)
  end subroutine

  subroutine call_exscan_async(params, status)
    type(llcl_coll_params_t), intent(in) :: params
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_exscan_async'//c_null_char, c_exscan_async(params), status)
  end subroutine
end module llcl_calls_colls
