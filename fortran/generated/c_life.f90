! Functions of llcl.h as C has them.
! Generated from llcl.h by `make header`; changes belong into scripts/fortran.awk.
! SPDX-License-Identifier: MIT OR Apache-2.0
module llcl_c_life
  use, intrinsic :: iso_c_binding
  use llcl_types
  implicit none

  interface
    function llcl_status_string(status) bind(c) result(answer)
      import
      integer(c_int32_t), value :: status
      type(c_ptr) :: answer
    end function

    function llcl_last_error() bind(c) result(answer)
      import
      type(c_ptr) :: answer
    end function

    subroutine llcl_set_last_error(sentence) bind(c)
      import
      type(c_ptr), value :: sentence
    end subroutine

    subroutine llcl_must_succeed(status, call, file, line) bind(c)
      import
      integer(c_int32_t), value :: status
      type(c_ptr), value :: call
      type(c_ptr), value :: file
      integer(c_int32_t), value :: line
    end subroutine

    function llcl_no_completion() bind(c) result(answer)
      import
      type(llcl_completion_t) :: answer
    end function

    function llcl_callback(call, data) bind(c) result(answer)
      import
      type(c_funptr), value :: call
      type(c_ptr), value :: data
      type(llcl_completion_t) :: answer
    end function

    function llcl_store_on(word) bind(c) result(answer)
      import
      integer(c_int64_t), intent(inout), asynchronous :: word
      type(llcl_completion_t) :: answer
    end function

    function llcl_add_on(word) bind(c) result(answer)
      import
      integer(c_int64_t), intent(inout), asynchronous :: word
      type(llcl_completion_t) :: answer
    end function

    function llcl_config_default(config) bind(c) result(answer)
      import
      type(llcl_config_t), intent(inout) :: config
      integer(c_int32_t) :: answer
    end function

    function llcl_world_create(size, world) bind(c) result(answer)
      import
      integer(c_int32_t), value :: size
      type(llcl_world_t), intent(out) :: world
      integer(c_int32_t) :: answer
    end function

    function llcl_world_free(world) bind(c) result(answer)
      import
      type(llcl_world_t), value :: world
      integer(c_int32_t) :: answer
    end function

    function llcl_init(config, context) bind(c) result(answer)
      import
      type(llcl_config_t), intent(in), optional :: config
      type(llcl_context_t), intent(out) :: context
      integer(c_int32_t) :: answer
    end function

    function llcl_context_duplicate(context, config, duplicate) bind(c) result(answer)
      import
      type(llcl_context_t), value :: context
      type(llcl_config_t), intent(in), optional :: config
      type(llcl_context_t), intent(out) :: duplicate
      integer(c_int32_t) :: answer
    end function

    function llcl_finalize(context) bind(c) result(answer)
      import
      type(llcl_context_t), value :: context
      integer(c_int32_t) :: answer
    end function

    function llcl_finalize_within(context, timeout_ns) bind(c) result(answer)
      import
      type(llcl_context_t), value :: context
      integer(c_int64_t), value :: timeout_ns
      integer(c_int32_t) :: answer
    end function

    subroutine llcl_abort(context, exit_code) bind(c)
      import
      type(llcl_context_t), value :: context
      integer(c_int32_t), value :: exit_code
    end subroutine

    subroutine llcl_exit(context, exit_code, grace_ms) bind(c)
      import
      type(llcl_context_t), value :: context
      integer(c_int32_t), value :: exit_code
      integer(c_int32_t), value :: grace_ms
    end subroutine

    function llcl_rank(context) bind(c) result(answer)
      import
      type(llcl_context_t), value :: context
      integer(c_int32_t) :: answer
    end function

    function llcl_size(context) bind(c) result(answer)
      import
      type(llcl_context_t), value :: context
      integer(c_int32_t) :: answer
    end function

    function llcl_version() bind(c) result(answer)
      import
      integer(c_int32_t) :: answer
    end function

    function llcl_version_string() bind(c) result(answer)
      import
      type(c_ptr) :: answer
    end function

    function llcl_query(context, capabilities) bind(c) result(answer)
      import
      type(llcl_context_t), value :: context
      type(llcl_capabilities_t), intent(inout) :: capabilities
      integer(c_int32_t) :: answer
    end function

    function llcl_peer_alive(context, peer) bind(c) result(answer)
      import
      type(llcl_context_t), value :: context
      integer(c_int32_t), value :: peer
      integer(c_int32_t) :: answer
    end function

    function llcl_connect(context, peers, count) bind(c) result(answer)
      import
      type(llcl_context_t), value :: context
      integer(c_int32_t), intent(in), optional :: peers(*)
      integer(c_int32_t), value :: count
      integer(c_int32_t) :: answer
    end function

    function llcl_query_peer(context, peer, info) bind(c) result(answer)
      import
      type(llcl_context_t), value :: context
      integer(c_int32_t), value :: peer
      type(llcl_peer_info_t), intent(inout) :: info
      integer(c_int32_t) :: answer
    end function

    function llcl_local_address(pointer) bind(c) result(answer)
      import
      type(c_ptr), value :: pointer
      type(llcl_local_t) :: answer
    end function

    function llcl_at(remote, offset) bind(c) result(answer)
      import
      type(llcl_remote_t), value :: remote
      integer(c_int64_t), value :: offset
      type(llcl_remote_t) :: answer
    end function

    function llcl_local_at(local, offset) bind(c) result(answer)
      import
      type(llcl_local_t), value :: local
      integer(c_int64_t), value :: offset
      type(llcl_local_t) :: answer
    end function

    function llcl_region_allocate(context, size, flags, region) bind(c) result(answer)
      import
      type(llcl_context_t), value :: context
      integer(c_size_t), value :: size
      integer(c_int32_t), value :: flags
      type(llcl_region_t), intent(out) :: region
      integer(c_int32_t) :: answer
    end function

    function llcl_region_allocate_shared(context, size, region, remotes) bind(c) result(answer)
      import
      type(llcl_context_t), value :: context
      integer(c_size_t), value :: size
      type(llcl_region_t), intent(out) :: region
      type(llcl_remote_t), intent(inout) :: remotes(*)
      integer(c_int32_t) :: answer
    end function

    function llcl_region_register(context, address, size, flags, region) bind(c) result(answer)
      import
      type(llcl_context_t), value :: context
      type(c_ptr), value :: address
      integer(c_size_t), value :: size
      integer(c_int32_t), value :: flags
      type(llcl_region_t), intent(out) :: region
      integer(c_int32_t) :: answer
    end function

    function llcl_region_free(region) bind(c) result(answer)
      import
      type(llcl_region_t), value :: region
      integer(c_int32_t) :: answer
    end function

    function llcl_region_address(region) bind(c) result(answer)
      import
      type(llcl_region_t), value :: region
      type(c_ptr) :: answer
    end function

    function llcl_region_size(region) bind(c) result(answer)
      import
      type(llcl_region_t), value :: region
      integer(c_size_t) :: answer
    end function

    function llcl_region_local(region, offset) bind(c) result(answer)
      import
      type(llcl_region_t), value :: region
      integer(c_int64_t), value :: offset
      type(llcl_local_t) :: answer
    end function

    function llcl_region_remote(region, offset) bind(c) result(answer)
      import
      type(llcl_region_t), value :: region
      integer(c_int64_t), value :: offset
      type(llcl_remote_t) :: answer
    end function

    function llcl_allgather_bytes(context, mine, size, all) bind(c) result(answer)
      import
      type(llcl_context_t), value :: context
      type(c_ptr), value :: mine
      integer(c_size_t), value :: size
      type(c_ptr), value :: all
      integer(c_int32_t) :: answer
    end function

    function llcl_allgather_bytes_within(context, mine, size, all, &
        timeout_ns) bind(c) result(answer)
      import
      type(llcl_context_t), value :: context
      type(c_ptr), value :: mine
      integer(c_size_t), value :: size
      type(c_ptr), value :: all
      integer(c_int64_t), value :: timeout_ns
      integer(c_int32_t) :: answer
    end function

    function llcl_remote_pointer(context, peer, remote, size) bind(c) result(answer)
      import
      type(llcl_context_t), value :: context
      integer(c_int32_t), value :: peer
      type(llcl_remote_t), value :: remote
      integer(c_size_t), value :: size
      type(c_ptr) :: answer
    end function

    function llcl_region_allocate_at(context, address, size, flags, region) bind(c) result(answer)
      import
      type(llcl_context_t), value :: context
      type(c_ptr), value :: address
      integer(c_size_t), value :: size
      integer(c_int32_t), value :: flags
      type(llcl_region_t), intent(out) :: region
      integer(c_int32_t) :: answer
    end function

    function llcl_region_alias(region, offset, size, address, access, alias) bind(c) result(answer)
      import
      type(llcl_region_t), value :: region
      integer(c_int64_t), value :: offset
      integer(c_size_t), value :: size
      type(c_ptr), value :: address
      integer(c_int32_t), value :: access
      type(c_ptr), intent(out) :: alias
      integer(c_int32_t) :: answer
    end function

    function llcl_region_unalias(region, alias) bind(c) result(answer)
      import
      type(llcl_region_t), value :: region
      type(c_ptr), value :: alias
      integer(c_int32_t) :: answer
    end function
  end interface
end module llcl_c_life
