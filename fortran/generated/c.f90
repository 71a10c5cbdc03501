! All functions of llcl.h as C has them, with constants and types.
! Generated from llcl.h by `make header`; changes belong into scripts/fortran.awk.
! SPDX-License-Identifier: MIT OR Apache-2.0
module llcl_c
  use llcl_constants
  use llcl_types
  use llcl_c_life
  use llcl_c_rma
  use llcl_c_words
  use llcl_c_am
  use llcl_c_plans
  use llcl_c_inits
  use llcl_c_colls
end module llcl_c
