! What the types of arguments are good for: atomics on scalars of any type, parameters of collectives, messages, and memory
! of any type. The bodies are in values.c. See llcl.h for what each does.
! SPDX-License-Identifier: MIT OR Apache-2.0
module llcl_values
  use, intrinsic :: iso_c_binding, only: c_int16_t, c_int32_t, c_int64_t, c_size_t
  use llcl_types
  implicit none
  private

  public :: llcl_try_atomic_async
  interface llcl_try_atomic_async
    subroutine try_atomic_async_array(context, peer, target, op, operand, result, compare, &
        on_complete, flags, status) bind(c, name='llclf_try_atomic_async')
      import
      type(llcl_context_t), value :: context
      integer(c_int32_t), value :: peer
      type(llcl_remote_t), value :: target
      integer(c_int32_t), value :: op
      type(*), dimension(..), intent(in), optional, asynchronous :: operand, compare
      type(*), dimension(..), intent(inout), optional, asynchronous :: result
      type(llcl_completion_t), intent(in), optional :: on_complete
      integer(c_int32_t), intent(in), optional :: flags
      integer(c_int32_t), intent(out) :: status
    end subroutine
  end interface

  public :: llcl_atomic_async
  interface llcl_atomic_async
    subroutine atomic_async_array(context, peer, target, op, operand, result, compare, &
        on_complete, flags, status) bind(c, name='llclf_atomic_async')
      import
      type(llcl_context_t), value :: context
      integer(c_int32_t), value :: peer
      type(llcl_remote_t), value :: target
      integer(c_int32_t), value :: op
      type(*), dimension(..), intent(in), optional, asynchronous :: operand, compare
      type(*), dimension(..), intent(inout), optional, asynchronous :: result
      type(llcl_completion_t), intent(in), optional :: on_complete
      integer(c_int32_t), intent(in), optional :: flags
      integer(c_int32_t), intent(out), optional :: status
    end subroutine
  end interface

  public :: llcl_atomic
  interface llcl_atomic
    subroutine atomic_array(context, peer, target, op, operand, result, compare, &
        status) bind(c, name='llclf_atomic')
      import
      type(llcl_context_t), value :: context
      integer(c_int32_t), value :: peer
      type(llcl_remote_t), value :: target
      integer(c_int32_t), value :: op
      type(*), dimension(..), intent(in), optional, asynchronous :: operand, compare
      type(*), dimension(..), intent(inout), optional, asynchronous :: result
      integer(c_int32_t), intent(out), optional :: status
    end subroutine
  end interface

  public :: llcl_try_am_async
  interface llcl_try_am_async
    subroutine try_am_async_array(context, peer, id, payload, reply, reply_size, header, tag, &
        on_local, on_complete, flags, status) bind(c, name='llclf_try_am_async')
      import
      type(llcl_context_t), value :: context
      integer(c_int32_t), value :: peer
      integer(c_int32_t), value :: id
      type(*), dimension(..), intent(in), optional, asynchronous :: payload, header
      type(*), dimension(..), intent(inout), optional, asynchronous :: reply
      integer(c_size_t), intent(inout), optional, asynchronous :: reply_size
      integer(c_int16_t), intent(in), optional :: tag
      type(llcl_completion_t), intent(in), optional :: on_local, on_complete
      integer(c_int32_t), intent(in), optional :: flags
      integer(c_int32_t), intent(out) :: status
    end subroutine
  end interface

  public :: llcl_am_async
  interface llcl_am_async
    subroutine am_async_array(context, peer, id, payload, reply, reply_size, header, tag, &
        on_local, on_complete, flags, status) bind(c, name='llclf_am_async')
      import
      type(llcl_context_t), value :: context
      integer(c_int32_t), value :: peer
      integer(c_int32_t), value :: id
      type(*), dimension(..), intent(in), optional, asynchronous :: payload, header
      type(*), dimension(..), intent(inout), optional, asynchronous :: reply
      integer(c_size_t), intent(inout), optional, asynchronous :: reply_size
      integer(c_int16_t), intent(in), optional :: tag
      type(llcl_completion_t), intent(in), optional :: on_local, on_complete
      integer(c_int32_t), intent(in), optional :: flags
      integer(c_int32_t), intent(out), optional :: status
    end subroutine
  end interface

  public :: llcl_am
  interface llcl_am
    subroutine am_array(context, peer, id, payload, reply, reply_size, header, tag, &
        status) bind(c, name='llclf_am')
      import
      type(llcl_context_t), value :: context
      integer(c_int32_t), value :: peer
      integer(c_int32_t), value :: id
      type(*), dimension(..), intent(in), optional, asynchronous :: payload, header
      type(*), dimension(..), intent(inout), optional, asynchronous :: reply
      integer(c_size_t), intent(inout), optional, asynchronous :: reply_size
      integer(c_int16_t), intent(in), optional :: tag
      integer(c_int32_t), intent(out), optional :: status
    end subroutine
  end interface

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
