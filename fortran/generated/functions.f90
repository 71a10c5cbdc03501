! The functions of llcl.h that return neither a status nor a text.
! Generated from llcl.h by `make header`; changes belong into scripts/fortran.awk.
! SPDX-License-Identifier: MIT OR Apache-2.0
module llcl_functions
  use llcl_c_life, only: llcl_set_last_error, llcl_must_succeed, llcl_no_completion, &
      llcl_callback, llcl_store_on, llcl_add_on, llcl_abort, llcl_exit, llcl_rank, llcl_size, &
      llcl_version, llcl_local_address, llcl_at, llcl_local_at, llcl_region_address, &
      llcl_region_size, llcl_region_local, llcl_region_remote, llcl_remote_pointer
  use llcl_c_am, only: llcl_am_retain
  use llcl_c_plans, only: llcl_team_rank, llcl_team_size, llcl_team_peer, llcl_team_find
end module llcl_functions
