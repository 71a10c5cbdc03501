! Broken if this fails: a query of a context, world, region or peer returns a wrong value in some
! type, or an error does not become a status with the library's message.
! ranks: 1 2
program life
  use testing
  use llcl_c, only: c_rank => llcl_rank, c_exchange => llcl_allgather_bytes, c_register => llcl_region_register, &
      c_must_succeed => llcl_must_succeed
  implicit none
  type(llcl_world_t) :: world
  type(llcl_context_t) :: other, nothing
  type(llcl_config_t) :: config
  type(llcl_capabilities_t) :: can
  type(llcl_peer_info_t) :: info
  type(llcl_stats_t) :: stats
  type(llcl_region_t) :: plain
  type(llcl_remote_t) :: place
  type(llcl_local_t) :: here
  integer(c_int32_t), target :: mine(3), all_(3, 2), again(3, 2)
  integer(c_int32_t), pointer :: there(:)
  integer(c_int32_t) :: status
  integer :: i

  call begin(4096)
  call check(llcl_version() == ior(ishft(LLCL_VERSION_MAJOR, 16), ior(ishft(LLCL_VERSION_MINOR, 8), LLCL_VERSION_PATCH)), 'version')
  call check(llcl_version_string() == text_of_version(), 'version as text')
  call check(len(llcl_status_string(LLCL_ERR_RANGE)) > 5, 'llcl_status_string')
  call check(c_rank(context) == rank, 'the function of C')
  call c_must_succeed(LLCL_OK, c_null_ptr, c_null_ptr, 0)

  call llcl_query(context, can)
  call check(can%struct_size == c_sizeof(can) .and. can%page >= 4096 .and. can%am_slots > 0, 'llcl_query')
  call llcl_query_peer(context, right, info)
  call check(info%transport == merge(LLCL_TRANSPORT_LOOPBACK, LLCL_TRANSPORT_SHM, right == rank), 'the transport')
  call check(info%process > 0, 'llcl_query_peer')
  call llcl_peer_alive(context, right, status)
  call expect(status, LLCL_OK, 'llcl_peer_alive')
  call llcl_connect(context, count=0)
  call llcl_stats_get(context, stats)
  call check(stats%am_sent == 0, 'llcl_stats_get')

  ! Arrays of all ranks.
  mine = [(rank * 10 + i, i = 1, 3)]
  all_ = 0
  call llcl_allgather_bytes(context, mine, all_)
  call check(all(all_(:, 1) == [1, 2, 3]) .and. all(all_(:, ranks) == mine + 10 * (ranks - 1 - rank)), 'llcl_allgather_bytes')
  call expect(c_exchange(context, c_loc(mine), c_sizeof(mine), c_loc(again)), LLCL_OK, 'the same by C')
  call check(all(again(:, :ranks) == all_(:, :ranks)), 'the same by C')
  call llcl_allgather_bytes(context, all_, mine, status)
  call expect(status, LLCL_ERR_INVALID, 'too little room')
  ! The others do not wait for a rank that is refused.
  if (rank == 1) then
    call llcl_allgather_bytes(context, all_, mine, status)
  else
    call llcl_allgather_bytes(context, mine, all_, status)
  end if
  call expect(status, merge(LLCL_ERR_INVALID, LLCL_OK, ranks > 1), 'a refusal of one rank')
  if (ranks > 1) call check(index(llcl_last_error(), merge('less room', 'same size', rank == 1)) > 0, 'its sentence')

  call regions()
  call llcl_context_duplicate(context, duplicate=other)
  call check(llcl_rank(other) == rank .and. llcl_size(other) == ranks, 'llcl_context_duplicate')
  call llcl_finalize(other)
  call worlds()
  call llcl_finalize(nothing, status)
  call expect(status, LLCL_ERR_INVALID, 'finalize of nothing')
  call check(len(llcl_last_error()) > 0, 'the sentence')
  call end_well()

contains

  function text_of_version() result(text)
    character(len=:), allocatable :: text
    character(len=32) :: buffer
    write (buffer, '(i0, a, i0, a, i0)') LLCL_VERSION_MAJOR, '.', LLCL_VERSION_MINOR, '.', LLCL_VERSION_PATCH
    text = trim(buffer)
  end function

  subroutine regions()
    integer(c_int32_t), target :: array(8)
    type(llcl_remote_t), allocatable :: places(:)
    array = [(i, i = 1, 8)]
    allocate (places(0:ranks - 1))
    call llcl_region_register(context, array, plain)
    call check(llcl_region_size(plain) == 32, 'llcl_region_size')
    place = llcl_region_remote(plain, 4_c_int64_t)
    call llcl_allgather_bytes(context, place, places)
    call llcl_read(context, right, places(right), mine)
    call check(all(mine == [2, 3, 4]), 'a registered array')
    here = llcl_region_local(plain, 0_c_int64_t)
    here = llcl_local_at(here, 4_c_int64_t)
    call check(here%offset == 4, 'llcl_local_at')
    call llcl_barrier(context)
    call llcl_region_free(plain)
    call expect(c_register(context, c_loc(array), c_sizeof(array), 0, plain), LLCL_OK, 'registered by C')
    call llcl_region_free(plain)
    call llcl_region_allocate(context, 64_c_size_t, 0, plain)
    call check(c_associated(llcl_region_address(plain)), 'llcl_region_address')
    call llcl_region_free(plain)
    call c_f_pointer(llcl_remote_pointer(context, right, everybody(right), 12_c_size_t), there, [3])
    call llcl_write(context, right, [7, 8, 9], everybody(right))
    call check(all(there == [7, 8, 9]), 'llcl_remote_pointer')
    call llcl_region_allocate(context, 0_c_size_t, 0, plain, status)
    call expect(status, LLCL_ERR_INVALID, 'a region of nothing')
  end subroutine

  ! A world of this process with one rank.
  subroutine worlds()
    call llcl_world_create(1, world)
    call llcl_config_default(config)
    call check(config%struct_size == c_sizeof(config), 'llcl_config_default')
    config%world = world
    config%regions = 16
    call llcl_init(config, other)
    call check(llcl_size(other) == 1 .and. llcl_rank(other) == 0, 'a world of one')
    call llcl_query(other, can)
    call check(can%regions == 16, 'a configuration')
    call llcl_world_free(world, status)
    call expect(status, LLCL_RETRY_BUSY, 'a world in use')
    call llcl_finalize(other)
    call llcl_world_free(world)
  end subroutine
end program
