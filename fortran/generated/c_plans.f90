! Functions of llcl.h as C has them.
! Generated from llcl.h by `make header`; changes belong into scripts/fortran.awk.
! SPDX-License-Identifier: MIT OR Apache-2.0
module llcl_c_plans
  use, intrinsic :: iso_c_binding
  use llcl_types
  implicit none

  interface
    function llcl_team_world(context, team) bind(c) result(answer)
      import
      type(llcl_context_t), value :: context
      type(llcl_team_t), intent(out) :: team
      integer(c_int32_t) :: answer
    end function

    function llcl_team_split(team, colour, key, new_team) bind(c) result(answer)
      import
      type(llcl_team_t), value :: team
      integer(c_int32_t), value :: colour
      integer(c_int32_t), value :: key
      type(llcl_team_t), intent(out) :: new_team
      integer(c_int32_t) :: answer
    end function

    function llcl_team_create(context, ranks, n, team) bind(c) result(answer)
      import
      type(llcl_context_t), value :: context
      integer(c_int32_t), intent(in) :: ranks(*)
      integer(c_int32_t), value :: n
      type(llcl_team_t), intent(out) :: team
      integer(c_int32_t) :: answer
    end function

    function llcl_team_free(team) bind(c) result(answer)
      import
      type(llcl_team_t), value :: team
      integer(c_int32_t) :: answer
    end function

    function llcl_team_rank(team) bind(c) result(answer)
      import
      type(llcl_team_t), value :: team
      integer(c_int32_t) :: answer
    end function

    function llcl_team_size(team) bind(c) result(answer)
      import
      type(llcl_team_t), value :: team
      integer(c_int32_t) :: answer
    end function

    function llcl_team_peer(team, rank) bind(c) result(answer)
      import
      type(llcl_team_t), value :: team
      integer(c_int32_t), value :: rank
      integer(c_int32_t) :: answer
    end function

    function llcl_team_find(team, world_rank) bind(c) result(answer)
      import
      type(llcl_team_t), value :: team
      integer(c_int32_t), value :: world_rank
      integer(c_int32_t) :: answer
    end function

    function llcl_coll_start(plan) bind(c) result(answer)
      import
      type(llcl_coll_t), value :: plan
      integer(c_int32_t) :: answer
    end function

    function llcl_coll_start_with(plan, send, receive) bind(c) result(answer)
      import
      type(llcl_coll_t), value :: plan
      type(llcl_local_t), value :: send
      type(llcl_local_t), value :: receive
      integer(c_int32_t) :: answer
    end function

    function llcl_coll_test(plan) bind(c) result(answer)
      import
      type(llcl_coll_t), value :: plan
      integer(c_int32_t) :: answer
    end function

    function llcl_coll_wait(plan, timeout_ns) bind(c) result(answer)
      import
      type(llcl_coll_t), value :: plan
      integer(c_int64_t), value :: timeout_ns
      integer(c_int32_t) :: answer
    end function

    function llcl_coll_free(plan) bind(c) result(answer)
      import
      type(llcl_coll_t), value :: plan
      integer(c_int32_t) :: answer
    end function

    function llcl_coll_query(plan, info) bind(c) result(answer)
      import
      type(llcl_coll_t), value :: plan
      type(llcl_coll_info_t), intent(inout) :: info
      integer(c_int32_t) :: answer
    end function
  end interface
end module llcl_c_plans
