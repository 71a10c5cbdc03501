! Subroutines for the functions of llcl.h that return a status. `status` is the last argument; the
! caller may leave it out.
! Generated from llcl.h by `make header`; changes belong into scripts/fortran.awk.
! SPDX-License-Identifier: MIT OR Apache-2.0
module llcl_calls_plans
  use, intrinsic :: iso_c_binding
  use llcl_types
  use llcl_c_plans, only: c_team_world => llcl_team_world, c_team_split => llcl_team_split, &
      c_team_create => llcl_team_create, c_team_free => llcl_team_free, &
      c_coll_start => llcl_coll_start, c_coll_start_with => llcl_coll_start_with, &
      c_coll_test => llcl_coll_test, c_coll_wait => llcl_coll_wait, c_coll_free => llcl_coll_free, &
      c_coll_query => llcl_coll_query
  use llcl_finish, only: finish
  implicit none
  private
  public :: llcl_team_world
  interface llcl_team_world; procedure call_team_world; end interface
  public :: llcl_team_split
  interface llcl_team_split; procedure call_team_split; end interface
  public :: llcl_team_create
  interface llcl_team_create; procedure call_team_create; end interface
  public :: llcl_team_free
  interface llcl_team_free; procedure call_team_free; end interface
  public :: llcl_coll_start
  interface llcl_coll_start; procedure call_coll_start; end interface
  public :: llcl_coll_start_with
  interface llcl_coll_start_with; procedure call_coll_start_with; end interface
  public :: llcl_coll_test
  interface llcl_coll_test; procedure call_coll_test; end interface
  public :: llcl_coll_wait
  interface llcl_coll_wait; procedure call_coll_wait; end interface
  public :: llcl_coll_free
  interface llcl_coll_free; procedure call_coll_free; end interface
  public :: llcl_coll_query
  interface llcl_coll_query; procedure call_coll_query; end interface

contains

  subroutine call_team_world(context, team, status)
    type(llcl_context_t), intent(in) :: context
    type(llcl_team_t), intent(out) :: team
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_team_world'//c_null_char, c_team_world(context, team), status)
  end subroutine

  subroutine call_team_split(team, colour, key, new_team, status)
    type(llcl_team_t), intent(in) :: team
    integer(c_int32_t), intent(in) :: colour
    integer(c_int32_t), intent(in) :: key
    type(llcl_team_t), intent(out) :: new_team
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_team_split'//c_null_char, c_team_split(team, colour, key, new_team), status)
  end subroutine

  subroutine call_team_create(context, ranks, n, team, status)
    type(llcl_context_t), intent(in) :: context
    integer(c_int32_t), intent(in) :: ranks(*)
    integer(c_int32_t), intent(in) :: n
    type(llcl_team_t), intent(out) :: team
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_team_create'//c_null_char, c_team_create(context, ranks, n, team), status)
  end subroutine

  subroutine call_team_free(team, status)
    type(llcl_team_t), intent(in) :: team
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_team_free'//c_null_char, c_team_free(team), status)
  end subroutine

  subroutine call_coll_start(plan, status)
    type(llcl_coll_t), intent(in) :: plan
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_coll_start'//c_null_char, c_coll_start(plan), status)
  end subroutine

  subroutine call_coll_start_with(plan, send, receive, status)
    type(llcl_coll_t), intent(in) :: plan
    type(llcl_local_t), intent(in) :: send
    type(llcl_local_t), intent(in) :: receive
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_coll_start_with'//c_null_char, c_coll_start_with(plan, send, receive), status)
  end subroutine

  subroutine call_coll_test(plan, status)
    type(llcl_coll_t), intent(in) :: plan
    integer(c_int32_t), intent(out) :: status
    call finish('llcl_coll_test'//c_null_char, c_coll_test(plan), status)
  end subroutine

  subroutine call_coll_wait(plan, timeout_ns, status)
    type(llcl_coll_t), intent(in) :: plan
    integer(c_int64_t), intent(in) :: timeout_ns
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_coll_wait'//c_null_char, c_coll_wait(plan, timeout_ns), status)
  end subroutine

  subroutine call_coll_free(plan, status)
    type(llcl_coll_t), intent(in) :: plan
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_coll_free'//c_null_char, c_coll_free(plan), status)
  end subroutine

  subroutine call_coll_query(plan, info, status)
    type(llcl_coll_t), intent(in) :: plan
    type(llcl_coll_info_t), intent(inout) :: info
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_coll_query'//c_null_char, c_coll_query(plan, info), status)
  end subroutine
end module llcl_calls_plans
