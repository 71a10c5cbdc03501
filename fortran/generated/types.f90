! The structs of llcl.h as types, with the initial values of the LLCL_..._INIT macros; the handles
! as types with one pointer; the interfaces of callbacks.
! Generated from llcl.h by `make header`; changes belong into scripts/fortran.awk.
! SPDX-License-Identifier: MIT OR Apache-2.0
module llcl_types
  use, intrinsic :: iso_c_binding
  implicit none
  private
  public :: llcl_am_params_t, llcl_am_t, llcl_am_view_t, llcl_atomic_info_t, llcl_atomic_params_t, &
      llcl_awaited_t, llcl_bootstrap_t, llcl_capabilities_t, llcl_coll_info_t, llcl_coll_params_t, &
      llcl_coll_t, llcl_compare_swap_params_t, llcl_completion_t, llcl_config_t, llcl_context_t, &
      llcl_fetch_add_params_t, llcl_local_span_t, llcl_local_t, llcl_peer_info_t, &
      llcl_read_params_t, llcl_region_t, llcl_remote_span_t, llcl_remote_t, llcl_stats_t, &
      llcl_strided_params_t, llcl_team_t, llcl_vector_params_t, llcl_world_t, llcl_write_params_t, &
      llcl_write_signal_params_t, llcl_write_small_params_t, llcl_write_value_params_t
  public :: llcl_callback_fn, llcl_allgather_fn, llcl_abort_fn, llcl_am_handler_fn, llcl_reduce_fn

  type, bind(c) :: llcl_completion_t
    integer(c_int32_t) :: kind = 0
    integer(c_int32_t) :: reserved = 0
    type(c_funptr) :: call = c_null_funptr
    type(c_ptr) :: target = c_null_ptr
  end type

  type, bind(c) :: llcl_world_t
    type(c_ptr) :: handle = c_null_ptr
  end type

  type, bind(c) :: llcl_bootstrap_t
    integer(c_int64_t) :: struct_size = 48
    integer(c_int32_t) :: rank = 0
    integer(c_int32_t) :: size = 0
    type(c_funptr) :: allgather = c_null_funptr
    type(c_funptr) :: abort = c_null_funptr
    type(c_ptr) :: data = c_null_ptr
    integer(c_int64_t) :: foreign = 0
  end type

  type, bind(c) :: llcl_config_t
    integer(c_int64_t) :: struct_size = 72
    type(llcl_world_t) :: world
    type(c_ptr) :: bootstrap = c_null_ptr
    integer(c_int32_t) :: rank = 0
    integer(c_int32_t) :: execution = 0
    integer(c_int32_t) :: queue_entries = 0
    integer(c_int32_t) :: in_flight = 0
    integer(c_int32_t) :: regions = 0
    integer(c_int32_t) :: am_policy = 0
    integer(c_int32_t) :: am_slots = 0
    integer(c_int32_t) :: am_medium = 0
    integer(c_int32_t) :: am_shares = 0
    integer(c_int32_t) :: am_requests = 0
    integer(c_int32_t) :: am_handlers = 0
    integer(c_int32_t) :: reserved = 0
  end type

  type, bind(c) :: llcl_context_t
    type(c_ptr) :: handle = c_null_ptr
  end type

  type, bind(c) :: llcl_capabilities_t
    integer(c_int64_t) :: struct_size = 80
    integer(c_int32_t) :: execution = 0
    integer(c_int32_t) :: queue_entries = 0
    integer(c_int32_t) :: in_flight = 0
    integer(c_int32_t) :: regions = 0
    integer(c_int64_t) :: small = 0
    integer(c_int64_t) :: page = 0
    integer(c_int32_t) :: am_slots = 0
    integer(c_int32_t) :: am_policy = 0
    integer(c_int32_t) :: am_medium = 0
    integer(c_int32_t) :: am_shares = 0
    integer(c_int32_t) :: am_requests = 0
    integer(c_int32_t) :: am_handlers = 0
    integer(c_int64_t) :: memory = 0
    integer(c_int32_t) :: opener_polls = 0
    integer(c_int32_t) :: reserved = 0
  end type

  type, bind(c) :: llcl_peer_info_t
    integer(c_int64_t) :: struct_size = 56
    integer(c_int32_t) :: transport = 0
    integer(c_int32_t) :: registered_access = 0
    integer(c_int32_t) :: process = 0
    integer(c_int32_t) :: am_payload = 0
    integer(c_int32_t) :: am_medium = 0
    integer(c_int32_t) :: kernel_error = 0
    integer(c_int32_t) :: registered_writes = 0
    integer(c_int32_t) :: kernel_write_error = 0
    integer(c_int32_t) :: node = 0
    integer(c_int32_t) :: am_slots = 0
    integer(c_int32_t) :: am_policy = 0
    integer(c_int32_t) :: reserved = 0
  end type

  type, bind(c) :: llcl_region_t
    type(c_ptr) :: handle = c_null_ptr
  end type

  type, bind(c) :: llcl_local_t
    integer(c_int64_t) :: offset = 0
    integer(c_int64_t) :: key = 0
  end type

  type, bind(c) :: llcl_remote_t
    integer(c_int64_t) :: offset = 0
    integer(c_int64_t) :: key = 0
  end type

  type, bind(c) :: llcl_read_params_t
    integer(c_int32_t) :: peer = 0
    integer(c_int32_t) :: flags = 0
    type(llcl_remote_t) :: source
    type(llcl_local_t) :: destination
    integer(c_size_t) :: size = 0
    type(llcl_completion_t) :: on_complete
  end type

  type, bind(c) :: llcl_write_params_t
    integer(c_int32_t) :: peer = 0
    integer(c_int32_t) :: flags = 0
    type(llcl_local_t) :: source
    type(llcl_remote_t) :: destination
    integer(c_size_t) :: size = 0
    type(llcl_completion_t) :: on_local
    type(llcl_completion_t) :: on_complete
  end type

  type, bind(c) :: llcl_write_signal_params_t
    integer(c_int32_t) :: peer = 0
    integer(c_int32_t) :: flags = 0
    type(llcl_local_t) :: source
    type(llcl_remote_t) :: destination
    integer(c_size_t) :: size = 0
    type(llcl_remote_t) :: signal
    integer(c_int64_t) :: signal_value = 0
    integer(c_int32_t) :: signal_op = 0
    integer(c_int32_t) :: reserved = 0
    type(llcl_completion_t) :: on_local
    type(llcl_completion_t) :: on_complete
  end type

  type, bind(c) :: llcl_write_value_params_t
    integer(c_int32_t) :: peer = 0
    integer(c_int32_t) :: flags = 0
    type(llcl_remote_t) :: destination
    integer(c_int64_t) :: value = 0
    integer(c_size_t) :: size = 0
    type(llcl_completion_t) :: on_complete
  end type

  type, bind(c) :: llcl_write_small_params_t
    integer(c_int32_t) :: peer = 0
    integer(c_int32_t) :: flags = 0
    type(c_ptr) :: source = c_null_ptr
    type(llcl_remote_t) :: destination
    integer(c_size_t) :: size = 0
    type(llcl_completion_t) :: on_complete
  end type

  type, bind(c) :: llcl_atomic_info_t
    integer(c_int64_t) :: struct_size = 24
    integer(c_int32_t) :: supported = 0
    integer(c_int32_t) :: domain = 0
    integer(c_int32_t) :: cost = 0
    integer(c_int32_t) :: reserved = 0
  end type

  type, bind(c) :: llcl_atomic_params_t
    integer(c_int32_t) :: peer = 0
    integer(c_int32_t) :: flags = 0
    type(llcl_remote_t) :: target
    integer(c_int32_t) :: op = 0
    integer(c_int32_t) :: type = 0
    integer(c_int64_t) :: operand = 0
    integer(c_int64_t) :: compare = 0
    type(c_ptr) :: result = c_null_ptr
    type(llcl_completion_t) :: on_complete
  end type

  type, bind(c) :: llcl_fetch_add_params_t
    integer(c_int32_t) :: peer = 0
    integer(c_int32_t) :: flags = 0
    type(llcl_remote_t) :: target
    integer(c_int64_t) :: operand = 0
    type(c_ptr) :: result = c_null_ptr
    type(llcl_completion_t) :: on_complete
  end type

  type, bind(c) :: llcl_compare_swap_params_t
    integer(c_int32_t) :: peer = 0
    integer(c_int32_t) :: flags = 0
    type(llcl_remote_t) :: target
    integer(c_int64_t) :: compare = 0
    integer(c_int64_t) :: desired = 0
    type(c_ptr) :: result = c_null_ptr
    type(llcl_completion_t) :: on_complete
  end type

  type, bind(c) :: llcl_awaited_t
    type(c_ptr) :: word = c_null_ptr
    integer(c_int64_t) :: at_least = 0
    integer(c_int32_t) :: peer = 0
    integer(c_int32_t) :: flags = 0
  end type

  type, bind(c) :: llcl_am_t
    type(c_ptr) :: handle = c_null_ptr
  end type

  type, bind(c) :: llcl_am_params_t
    integer(c_int32_t) :: peer = 0
    integer(c_int32_t) :: flags = 0
    integer(c_int32_t) :: id = 0
    integer(c_int32_t) :: kind = 0
    integer(c_int16_t) :: tag = 0
    type(c_ptr) :: header = c_null_ptr
    integer(c_size_t) :: header_size = 0
    type(c_ptr) :: payload = c_null_ptr
    integer(c_size_t) :: payload_size = 0
    type(llcl_local_t) :: source
    type(llcl_remote_t) :: destination
    type(c_ptr) :: reply = c_null_ptr
    integer(c_size_t) :: reply_capacity = 0
    type(c_ptr) :: reply_size = c_null_ptr
    type(llcl_completion_t) :: on_local
    type(llcl_completion_t) :: on_complete
  end type

  type, bind(c) :: llcl_am_view_t
    integer(c_int32_t) :: source = 0
    integer(c_int32_t) :: id = 0
    integer(c_int32_t) :: kind = 0
    integer(c_int16_t) :: tag = 0
    integer(c_int16_t) :: flags = 0
    type(c_ptr) :: header = c_null_ptr
    integer(c_size_t) :: header_size = 0
    type(c_ptr) :: payload = c_null_ptr
    integer(c_size_t) :: payload_size = 0
    type(llcl_remote_t) :: address
  end type

  type, bind(c) :: llcl_team_t
    type(c_ptr) :: handle = c_null_ptr
  end type

  type, bind(c) :: llcl_coll_t
    type(c_ptr) :: handle = c_null_ptr
  end type

  type, bind(c) :: llcl_coll_info_t
    integer(c_int64_t) :: struct_size = 64
    type(c_ptr) :: algorithm = c_null_ptr
    type(c_ptr) :: reason = c_null_ptr
    integer(c_int32_t) :: engine = 0
    integer(c_int32_t) :: any_rank = 0
    integer(c_int32_t) :: queues = 0
    integer(c_int32_t) :: steps = 0
    integer(c_int64_t) :: memory = 0
    integer(c_int64_t) :: rounds = 0
    integer(c_int64_t) :: memory_private = 0
  end type

  type, bind(c) :: llcl_coll_params_t
    type(llcl_team_t) :: team
    type(llcl_local_t) :: send
    type(llcl_local_t) :: receive
    integer(c_int64_t) :: count = 0
    integer(c_int32_t) :: type = 0
    integer(c_int32_t) :: op = 0
    integer(c_int32_t) :: root = 0
    integer(c_int32_t) :: engine = 0
    integer(c_int32_t) :: flags = 0
    integer(c_int32_t) :: element_size = 0
    integer(c_int32_t) :: depth = 0
    type(c_ptr) :: send_counts = c_null_ptr
    type(c_ptr) :: send_offsets = c_null_ptr
    type(c_ptr) :: receive_counts = c_null_ptr
    type(c_ptr) :: receive_offsets = c_null_ptr
    type(c_funptr) :: function = c_null_funptr
    type(c_ptr) :: function_data = c_null_ptr
    type(c_ptr) :: algorithm = c_null_ptr
    type(llcl_completion_t) :: on_complete
  end type

  type, bind(c) :: llcl_stats_t
    integer(c_int64_t) :: struct_size = 312
    integer(c_int64_t) :: am_sent = 0
    integer(c_int64_t) :: am_handled = 0
    integer(c_int64_t) :: am_unknown = 0
    integer(c_int64_t) :: am_replies = 0
    integer(c_int64_t) :: retry_no_credit = 0
    integer(c_int64_t) :: retry_queue_full = 0
    integer(c_int64_t) :: retry_no_tag = 0
    integer(c_int64_t) :: retry_busy = 0
    integer(c_int64_t) :: retry_connecting = 0
    integer(c_int64_t) :: parked = 0
    integer(c_int64_t) :: parked_high_water = 0
    integer(c_int64_t) :: credit_reads = 0
    integer(c_int64_t) :: credit_updates(16) = 0
    integer(c_int64_t) :: skips = 0
    integer(c_int64_t) :: wake_ups = 0
    integer(c_int64_t) :: credit_sleeps = 0
    integer(c_int64_t) :: slots_high_water = 0
    integer(c_int64_t) :: requests_high_water = 0
    integer(c_int64_t) :: am_memory = 0
    integer(c_int64_t) :: coll_cache_hits = 0
    integer(c_int64_t) :: coll_cache_misses = 0
    integer(c_int64_t) :: am_slots_retired = 0
    integer(c_int64_t) :: owner_requests = 0
  end type

  type, bind(c) :: llcl_strided_params_t
    integer(c_int32_t) :: peer = 0
    integer(c_int32_t) :: flags = 0
    type(llcl_local_t) :: local
    type(llcl_remote_t) :: remote
    integer(c_size_t) :: size = 0
    integer(c_int32_t) :: dimensions = 0
    integer(c_int32_t) :: signal_op = 0
    integer(c_int64_t) :: extents(8) = 0
    integer(c_int64_t) :: local_strides(8) = 0
    integer(c_int64_t) :: remote_strides(8) = 0
    type(llcl_remote_t) :: signal
    integer(c_int64_t) :: signal_value = 0
    type(llcl_completion_t) :: on_complete
  end type

  type, bind(c) :: llcl_local_span_t
    type(llcl_local_t) :: place
    integer(c_size_t) :: size = 0
  end type

  type, bind(c) :: llcl_remote_span_t
    type(llcl_remote_t) :: place
    integer(c_size_t) :: size = 0
  end type

  type, bind(c) :: llcl_vector_params_t
    integer(c_int32_t) :: peer = 0
    integer(c_int32_t) :: flags = 0
    type(c_ptr) :: locals = c_null_ptr
    integer(c_size_t) :: local_count = 0
    type(c_ptr) :: remotes = c_null_ptr
    integer(c_size_t) :: remote_count = 0
    type(llcl_remote_t) :: signal
    integer(c_int64_t) :: signal_value = 0
    integer(c_int32_t) :: signal_op = 0
    integer(c_int32_t) :: reserved = 0
    type(llcl_completion_t) :: on_complete
  end type

  abstract interface
    subroutine llcl_callback_fn(data, status) bind(c)
      import
      type(c_ptr), value :: data
      integer(c_int32_t), value :: status
    end subroutine

    function llcl_allgather_fn(data, mine, size, all) bind(c) result(answer)
      import
      type(c_ptr), value :: data
      type(c_ptr), value :: mine
      integer(c_size_t), value :: size
      type(c_ptr), value :: all
      integer(c_int32_t) :: answer
    end function

    subroutine llcl_abort_fn(data, exit_code) bind(c)
      import
      type(c_ptr), value :: data
      integer(c_int32_t), value :: exit_code
    end subroutine

    subroutine llcl_am_handler_fn(message, data) bind(c)
      import
      type(llcl_am_t), value :: message
      type(c_ptr), value :: data
    end subroutine

    subroutine llcl_reduce_fn(left, right, result, count, data) bind(c)
      import
      type(c_ptr), value :: left
      type(c_ptr), value :: right
      type(c_ptr), value :: result
      integer(c_int64_t), value :: count
      type(c_ptr), value :: data
    end subroutine
  end interface
end module llcl_types
