! Reads and writes of arrays of any type and rank, the bodies of which are in rma.c: `array` is the near side, whether it
! lies in a region or not; `remote` is the place at the peer. See llcl.h for what each does.
! SPDX-License-Identifier: MIT OR Apache-2.0
module llcl_rma
  use, intrinsic :: iso_c_binding, only: c_int16_t, c_int32_t, c_int64_t, c_size_t
  use llcl_types
  implicit none
  private

  public :: llcl_try_read_async
  interface llcl_try_read_async
    subroutine try_read_async_array(context, peer, remote, array, on_complete, flags, &
        status) bind(c, name='llclf_try_read_async')
      import
      type(llcl_context_t), value :: context
      integer(c_int32_t), value :: peer
      type(llcl_remote_t), value :: remote
      type(*), dimension(..), intent(inout), asynchronous :: array
      type(llcl_completion_t), intent(in), optional :: on_complete
      integer(c_int32_t), intent(in), optional :: flags
      integer(c_int32_t), intent(out) :: status
    end subroutine
  end interface

  public :: llcl_read_async
  interface llcl_read_async
    subroutine read_async_array(context, peer, remote, array, on_complete, flags, &
        status) bind(c, name='llclf_read_async')
      import
      type(llcl_context_t), value :: context
      integer(c_int32_t), value :: peer
      type(llcl_remote_t), value :: remote
      type(*), dimension(..), intent(inout), asynchronous :: array
      type(llcl_completion_t), intent(in), optional :: on_complete
      integer(c_int32_t), intent(in), optional :: flags
      integer(c_int32_t), intent(out), optional :: status
    end subroutine
  end interface

  public :: llcl_read
  interface llcl_read
    subroutine read_array(context, peer, remote, array, status) bind(c, name='llclf_read')
      import
      type(llcl_context_t), value :: context
      integer(c_int32_t), value :: peer
      type(llcl_remote_t), value :: remote
      type(*), dimension(..), intent(inout), asynchronous :: array
      integer(c_int32_t), intent(out), optional :: status
    end subroutine
  end interface

  public :: llcl_try_write_async
  interface llcl_try_write_async
    subroutine try_write_async_array(context, peer, array, remote, on_local, on_complete, &
        flags, status) bind(c, name='llclf_try_write_async')
      import
      type(llcl_context_t), value :: context
      integer(c_int32_t), value :: peer
      type(*), dimension(..), intent(in), asynchronous :: array
      type(llcl_remote_t), value :: remote
      type(llcl_completion_t), intent(in), optional :: on_local, on_complete
      integer(c_int32_t), intent(in), optional :: flags
      integer(c_int32_t), intent(out) :: status
    end subroutine
  end interface

  public :: llcl_write_async
  interface llcl_write_async
    subroutine write_async_array(context, peer, array, remote, on_local, on_complete, flags, &
        status) bind(c, name='llclf_write_async')
      import
      type(llcl_context_t), value :: context
      integer(c_int32_t), value :: peer
      type(*), dimension(..), intent(in), asynchronous :: array
      type(llcl_remote_t), value :: remote
      type(llcl_completion_t), intent(in), optional :: on_local, on_complete
      integer(c_int32_t), intent(in), optional :: flags
      integer(c_int32_t), intent(out), optional :: status
    end subroutine
  end interface

  public :: llcl_write
  interface llcl_write
    subroutine write_array(context, peer, array, remote, status) bind(c, name='llclf_write')
      import
      type(llcl_context_t), value :: context
      integer(c_int32_t), value :: peer
      type(*), dimension(..), intent(in), asynchronous :: array
      type(llcl_remote_t), value :: remote
      integer(c_int32_t), intent(out), optional :: status
    end subroutine
  end interface

  public :: llcl_try_write_small_async
  interface llcl_try_write_small_async
    subroutine try_write_small_async_array(context, peer, array, remote, on_complete, flags, &
        status) bind(c, name='llclf_try_write_small_async')
      import
      type(llcl_context_t), value :: context
      integer(c_int32_t), value :: peer
      type(*), dimension(..), intent(in), asynchronous :: array
      type(llcl_remote_t), value :: remote
      type(llcl_completion_t), intent(in), optional :: on_complete
      integer(c_int32_t), intent(in), optional :: flags
      integer(c_int32_t), intent(out) :: status
    end subroutine
  end interface

  public :: llcl_write_small_async
  interface llcl_write_small_async
    subroutine write_small_async_array(context, peer, array, remote, on_complete, flags, &
        status) bind(c, name='llclf_write_small_async')
      import
      type(llcl_context_t), value :: context
      integer(c_int32_t), value :: peer
      type(*), dimension(..), intent(in), asynchronous :: array
      type(llcl_remote_t), value :: remote
      type(llcl_completion_t), intent(in), optional :: on_complete
      integer(c_int32_t), intent(in), optional :: flags
      integer(c_int32_t), intent(out), optional :: status
    end subroutine
  end interface

  public :: llcl_write_small
  interface llcl_write_small
    subroutine write_small_array(context, peer, array, remote, status) bind(c, &
        name='llclf_write_small')
      import
      type(llcl_context_t), value :: context
      integer(c_int32_t), value :: peer
      type(*), dimension(..), intent(in), asynchronous :: array
      type(llcl_remote_t), value :: remote
      integer(c_int32_t), intent(out), optional :: status
    end subroutine
  end interface

  public :: llcl_try_write_signal_async
  interface llcl_try_write_signal_async
    subroutine try_write_signal_async_array(context, peer, array, remote, signal, value, op, &
        on_local, on_complete, flags, status) bind(c, name='llclf_try_write_signal_async')
      import
      type(llcl_context_t), value :: context
      integer(c_int32_t), value :: peer
      type(*), dimension(..), intent(in), asynchronous :: array
      type(llcl_remote_t), value :: remote, signal
      integer(c_int64_t), value :: value
      integer(c_int32_t), value :: op
      type(llcl_completion_t), intent(in), optional :: on_local, on_complete
      integer(c_int32_t), intent(in), optional :: flags
      integer(c_int32_t), intent(out) :: status
    end subroutine
  end interface

  public :: llcl_write_signal_async
  interface llcl_write_signal_async
    subroutine write_signal_async_array(context, peer, array, remote, signal, value, op, &
        on_local, on_complete, flags, status) bind(c, name='llclf_write_signal_async')
      import
      type(llcl_context_t), value :: context
      integer(c_int32_t), value :: peer
      type(*), dimension(..), intent(in), asynchronous :: array
      type(llcl_remote_t), value :: remote, signal
      integer(c_int64_t), value :: value
      integer(c_int32_t), value :: op
      type(llcl_completion_t), intent(in), optional :: on_local, on_complete
      integer(c_int32_t), intent(in), optional :: flags
      integer(c_int32_t), intent(out), optional :: status
    end subroutine
  end interface

  public :: llcl_write_signal
  interface llcl_write_signal
    subroutine write_signal_array(context, peer, array, remote, signal, value, op, &
        status) bind(c, name='llclf_write_signal')
      import
      type(llcl_context_t), value :: context
      integer(c_int32_t), value :: peer
      type(*), dimension(..), intent(in), asynchronous :: array
      type(llcl_remote_t), value :: remote, signal
      integer(c_int64_t), value :: value
      integer(c_int32_t), value :: op
      integer(c_int32_t), intent(out), optional :: status
    end subroutine
  end interface
end module llcl_rma
