# make mpi MPICC=...: builds the wire module for that MPI. Needs libclang, because mpi-sys does.
MPICC ?= mpicc
# Open MPI's compiler wrapper knows --showme, MPICH's -show only.
MPI_KIND = $(if $(shell $(MPICC) --showme:version 2>/dev/null),openmpi,mpich)
MPI_MODULE = $(BUILD)/lib/llcl/libllcl-mpi-$(MPI_KIND).so
MPI_TREE = $(abspath $(BUILD))/cargo/mpi-$(MPI_KIND)
MPI_OTHER = $(abspath $(BUILD))/cargo/mpi-$(if $(filter mpich,$(MPI_KIND)),openmpi,mpich)

# What does not know the MPI, above all bindgen, is taken from the tree of the other MPI, if that is built.
mpi:
	@command -v $(MPICC) >/dev/null || { echo "make mpi: there is no $(MPICC); say make mpi MPICC=..."; exit 1; }
	@[ -e $(MPI_TREE) ] || [ ! -e $(MPI_OTHER)/release/libllcl_mpi.so ] || { rm -rf $(MPI_TREE).new && cp -a $(MPI_OTHER) $(MPI_TREE).new && \
		find $(MPI_TREE).new \( -name '*mpi-sys*' -o -name '*mpi_sys*' -o -name '*llcl*' \) -prune -exec rm -r {} + && \
		mv $(MPI_TREE).new $(MPI_TREE); }
	cd modules/mpi && MPICC=$(MPICC) LLCL_MPI=$(MPI_KIND) CARGO_TARGET_DIR=$(MPI_TREE) $(CARGO) build --release --locked $(QUIET)
	mkdir -p $(BUILD)/lib/llcl
	$(INSTALL) -m 755 $(MPI_TREE)/release/libllcl_mpi.so $(MPI_MODULE)

.PHONY: mpi
