! Interfaces of the subroutines for replies, regions and collectives that take arrays of any type.
! Those for reads, writes, atomics and messages are in generated/arrays.f90. The bodies are in
! values.c. llcl.h documents what each does.
! SPDX-License-Identifier: MIT OR Apache-2.0
module llcl_values
  use, intrinsic :: iso_c_binding, only: c_int32_t, c_int64_t
  use llcl_types
  implicit none
  private

  public :: llcl_am_reply
  interface llcl_am_reply
    subroutine am_reply_array(message, data, status) bind(c, name='llclf_am_reply')
      import
      type(llcl_am_t), value :: message
      type(*), dimension(..), intent(in), optional, asynchronous :: data
      integer(c_int32_t), intent(out), optional :: status
    end subroutine
  end interface

  public :: llcl_region_register
  interface llcl_region_register
    subroutine region_register_array(context, array, region, status) bind(c, &
        name='llclf_region_register')
      import
      type(llcl_context_t), value :: context
      type(*), dimension(..), intent(inout), asynchronous :: array
      type(llcl_region_t), intent(inout) :: region
      integer(c_int32_t), intent(out), optional :: status
    end subroutine
  end interface

  public :: llcl_allgather_bytes
  interface llcl_allgather_bytes
    subroutine allgather_arrays(context, mine, all, status) bind(c, name='llclf_allgather_bytes')
      import
      type(llcl_context_t), value :: context
      type(*), dimension(..), intent(in) :: mine
      type(*), dimension(..), intent(inout) :: all
      integer(c_int32_t), intent(out), optional :: status
    end subroutine
  end interface

  public :: llcl_local_address
  interface llcl_local_address
    function local_address_array(array) bind(c, name='llclf_local_address') result(answer)
      import
      type(*), dimension(..), intent(in), asynchronous :: array
      type(llcl_local_t) :: answer
    end function
  end interface

  public :: llcl_coll_params
  interface llcl_coll_params
    function coll_params_arrays(team, send, receive, op, root, count, flags) bind(c, &
        name='llclf_coll_params') result(answer)
      import
      type(llcl_team_t), value :: team
      type(*), dimension(..), intent(in), optional, asynchronous :: send
      type(*), dimension(..), intent(inout), optional, asynchronous :: receive
      integer(c_int32_t), intent(in), optional :: op, root, flags
      integer(c_int64_t), intent(in), optional :: count
      type(llcl_coll_params_t) :: answer
    end function
  end interface
end module llcl_values
