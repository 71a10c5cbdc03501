! Subroutines for the functions of llcl.h that return a status. `status` is the last argument; the
! caller may leave it out.
! Generated from llcl.h by `make header`; changes belong into scripts/fortran.awk.
! SPDX-License-Identifier: MIT OR Apache-2.0
module llcl_calls_life
  use, intrinsic :: iso_c_binding
  use llcl_types
  use llcl_c_life, only: c_config_default => llcl_config_default, &
      c_world_create => llcl_world_create, c_world_free => llcl_world_free, c_init => llcl_init, &
      c_context_duplicate => llcl_context_duplicate, c_finalize => llcl_finalize, &
      c_finalize_within => llcl_finalize_within, c_query => llcl_query, &
      c_peer_alive => llcl_peer_alive, c_connect => llcl_connect, c_query_peer => llcl_query_peer, &
      c_region_allocate => llcl_region_allocate, &
      c_region_allocate_shared => llcl_region_allocate_shared, &
      c_region_register => llcl_region_register, c_region_free => llcl_region_free, &
      c_allgather_bytes => llcl_allgather_bytes, &
      c_allgather_bytes_within => llcl_allgather_bytes_within, &
      c_region_allocate_at => llcl_region_allocate_at, c_region_alias => llcl_region_alias, &
      c_region_unalias => llcl_region_unalias
  use llcl_finish, only: finish
  implicit none
  private
  public :: llcl_config_default
  interface llcl_config_default; procedure call_config_default; end interface
  public :: llcl_world_create
  interface llcl_world_create; procedure call_world_create; end interface
  public :: llcl_world_free
  interface llcl_world_free; procedure call_world_free; end interface
  public :: llcl_init
  interface llcl_init; procedure call_init; end interface
  public :: llcl_context_duplicate
  interface llcl_context_duplicate; procedure call_context_duplicate; end interface
  public :: llcl_finalize
  interface llcl_finalize; procedure call_finalize; end interface
  public :: llcl_finalize_within
  interface llcl_finalize_within; procedure call_finalize_within; end interface
  public :: llcl_query
  interface llcl_query; procedure call_query; end interface
  public :: llcl_peer_alive
  interface llcl_peer_alive; procedure call_peer_alive; end interface
  public :: llcl_connect
  interface llcl_connect; procedure call_connect; end interface
  public :: llcl_query_peer
  interface llcl_query_peer; procedure call_query_peer; end interface
  public :: llcl_region_allocate
  interface llcl_region_allocate; procedure call_region_allocate; end interface
  public :: llcl_region_allocate_shared
  interface llcl_region_allocate_shared; procedure call_region_allocate_shared; end interface
  public :: llcl_region_register
  interface llcl_region_register; procedure call_region_register; end interface
  public :: llcl_region_free
  interface llcl_region_free; procedure call_region_free; end interface
  public :: llcl_allgather_bytes
  interface llcl_allgather_bytes; procedure call_allgather_bytes; end interface
  public :: llcl_allgather_bytes_within
  interface llcl_allgather_bytes_within; procedure call_allgather_bytes_within; end interface
  public :: llcl_region_allocate_at
  interface llcl_region_allocate_at; procedure call_region_allocate_at; end interface
  public :: llcl_region_alias
  interface llcl_region_alias; procedure call_region_alias; end interface
  public :: llcl_region_unalias
  interface llcl_region_unalias; procedure call_region_unalias; end interface

contains

  subroutine call_config_default(config, status)
    type(llcl_config_t), intent(inout) :: config
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_config_default'//c_null_char, c_config_default(config), status)
  end subroutine

  subroutine call_world_create(size, world, status)
    integer(c_int32_t), intent(in) :: size
    type(llcl_world_t), intent(out) :: world
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_world_create'//c_null_char, c_world_create(size, world), status)
  end subroutine

  subroutine call_world_free(world, status)
    type(llcl_world_t), intent(in) :: world
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_world_free'//c_null_char, c_world_free(world), status)
  end subroutine

  subroutine call_init(config, context, status)
    type(llcl_config_t), intent(in), optional :: config
    type(llcl_context_t), intent(out) :: context
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_init'//c_null_char, c_init(config, context), status)
  end subroutine

  subroutine call_context_duplicate(context, config, duplicate, status)
    type(llcl_context_t), intent(in) :: context
    type(llcl_config_t), intent(in), optional :: config
    type(llcl_context_t), intent(out) :: duplicate
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_context_duplicate'//c_null_char, c_context_duplicate(context, config, &
        duplicate), status)
  end subroutine

  subroutine call_finalize(context, status)
    type(llcl_context_t), intent(in) :: context
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_finalize'//c_null_char, c_finalize(context), status)
  end subroutine

  subroutine call_finalize_within(context, timeout_ns, status)
    type(llcl_context_t), intent(in) :: context
    integer(c_int64_t), intent(in) :: timeout_ns
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_finalize_within'//c_null_char, c_finalize_within(context, timeout_ns), status)
  end subroutine

  subroutine call_query(context, capabilities, status)
    type(llcl_context_t), intent(in) :: context
    type(llcl_capabilities_t), intent(inout) :: capabilities
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_query'//c_null_char, c_query(context, capabilities), status)
  end subroutine

  subroutine call_peer_alive(context, peer, status)
    type(llcl_context_t), intent(in) :: context
    integer(c_int32_t), intent(in) :: peer
    integer(c_int32_t), intent(out) :: status
    call finish('llcl_peer_alive'//c_null_char, c_peer_alive(context, peer), status)
  end subroutine

  subroutine call_connect(context, peers, count, status)
    type(llcl_context_t), intent(in) :: context
    integer(c_int32_t), intent(in), optional :: peers(*)
    integer(c_int32_t), intent(in) :: count
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_connect'//c_null_char, c_connect(context, peers, count), status)
  end subroutine

  subroutine call_query_peer(context, peer, info, status)
    type(llcl_context_t), intent(in) :: context
    integer(c_int32_t), intent(in) :: peer
    type(llcl_peer_info_t), intent(inout) :: info
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_query_peer'//c_null_char, c_query_peer(context, peer, info), status)
  end subroutine

  subroutine call_region_allocate(context, size, flags, region, status)
    type(llcl_context_t), intent(in) :: context
    integer(c_size_t), intent(in) :: size
    integer(c_int32_t), intent(in) :: flags
    type(llcl_region_t), intent(out) :: region
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_region_allocate'//c_null_char, c_region_allocate(context, size, flags, &
        region), status)
  end subroutine

  subroutine call_region_allocate_shared(context, size, region, remotes, status)
    type(llcl_context_t), intent(in) :: context
    integer(c_size_t), intent(in) :: size
    type(llcl_region_t), intent(out) :: region
    type(llcl_remote_t), intent(inout) :: remotes(*)
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_region_allocate_shared'//c_null_char, c_region_allocate_shared(context, &
        size, region, remotes), status)
  end subroutine

  subroutine call_region_register(context, address, size, flags, region, status)
    type(llcl_context_t), intent(in) :: context
    type(c_ptr), value :: address
    integer(c_size_t), intent(in) :: size
    integer(c_int32_t), intent(in) :: flags
    type(llcl_region_t), intent(out) :: region
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_region_register'//c_null_char, c_region_register(context, address, size, &
        flags, region), status)
  end subroutine

  subroutine call_region_free(region, status)
    type(llcl_region_t), intent(in) :: region
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_region_free'//c_null_char, c_region_free(region), status)
  end subroutine

  subroutine call_allgather_bytes(context, mine, size, all, status)
    type(llcl_context_t), intent(in) :: context
    type(c_ptr), value :: mine
    integer(c_size_t), intent(in) :: size
    type(c_ptr), value :: all
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_allgather_bytes'//c_null_char, c_allgather_bytes(context, mine, size, all), &
        status)
  end subroutine

  subroutine call_allgather_bytes_within(context, mine, size, all, timeout_ns, status)
    type(llcl_context_t), intent(in) :: context
    type(c_ptr), value :: mine
    integer(c_size_t), intent(in) :: size
    type(c_ptr), value :: all
    integer(c_int64_t), intent(in) :: timeout_ns
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_allgather_bytes_within'//c_null_char, c_allgather_bytes_within(context, &
        mine, size, all, timeout_ns), status)
  end subroutine

  subroutine call_region_allocate_at(context, address, size, flags, region, status)
    type(llcl_context_t), intent(in) :: context
    type(c_ptr), value :: address
    integer(c_size_t), intent(in) :: size
    integer(c_int32_t), intent(in) :: flags
    type(llcl_region_t), intent(out) :: region
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_region_allocate_at'//c_null_char, c_region_allocate_at(context, address, &
        size, flags, region), status)
  end subroutine

  subroutine call_region_alias(region, offset, size, address, access, alias, status)
    type(llcl_region_t), intent(in) :: region
    integer(c_int64_t), intent(in) :: offset
    integer(c_size_t), intent(in) :: size
    type(c_ptr), value :: address
    integer(c_int32_t), intent(in) :: access
    type(c_ptr), intent(out) :: alias
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_region_alias'//c_null_char, c_region_alias(region, offset, size, address, &
        access, alias), status)
  end subroutine

  subroutine call_region_unalias(region, alias, status)
    type(llcl_region_t), intent(in) :: region
    type(c_ptr), value :: alias
    integer(c_int32_t), intent(out), optional :: status
    call finish('llcl_region_unalias'//c_null_char, c_region_unalias(region, alias), status)
  end subroutine
end module llcl_calls_life
