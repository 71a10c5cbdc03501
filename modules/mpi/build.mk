# make mpi MPICC=...: builds the wire module for that MPI. Needs libclang, because mpi-sys does.
MPICC ?= mpicc
# Open MPI's compiler wrapper knows --showme, MPICH's -show only.
MPI_KIND = $(if $(shell $(MPICC) --showme:version 2>/dev/null),openmpi,mpich)
MPI_MODULE = $(BUILD)/lib/llcl/libllcl-mpi-$(MPI_KIND).so

mpi:
	@command -v $(MPICC) >/dev/null || { echo "make mpi: there is no $(MPICC); say make mpi MPICC=..."; exit 1; }
	cd modules/mpi && MPICC=$(MPICC) LLCL_MPI=$(MPI_KIND) CARGO_TARGET_DIR=$(abspath $(BUILD))/cargo/mpi-$(MPI_KIND) $(CARGO) build --release --locked $(QUIET)
	mkdir -p $(BUILD)/lib/llcl
	$(INSTALL) -m 755 $(BUILD)/cargo/mpi-$(MPI_KIND)/release/libllcl_mpi.so $(MPI_MODULE)

.PHONY: mpi
