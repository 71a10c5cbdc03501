# The Fortran module, built where there is a Fortran compiler: FC, or gfortran 12 or newer.
FORTRAN := $(shell scripts/fortran-compiler $(if $(filter-out default undefined,$(origin FC)),$(FC)))
FORTRAN_LIB := $(BUILD)/fortran/libllcl_fortran.a
FORTRAN_MODS := $(BUILD)/fortran/llcl.mod $(BUILD)/fortran/llcl_c.mod

all: $(if $(FORTRAN),fortran)
fortran: $(FORTRAN_LIB)
$(FORTRAN_LIB): $(wildcard fortran/*.f90 fortran/*.c fortran/*.h fortran/generated/*.f90) include/llcl.h scripts/build-fortran
	scripts/build-fortran $(FORTRAN) $(BUILD)/fortran
$(FORTRAN_MODS): $(FORTRAN_LIB)

# Prints the figures in docs/fortran.md.
bench-fortran: all fortran
	$(CC) -std=c11 -O2 -Wall -Iinclude -c -o $(BUILD)/fortran/in_c.o fortran/bench/in_c.c
	$(FORTRAN) -std=f2018 -O2 -Wall -I$(BUILD)/fortran -o $(BUILD)/fortran/calls fortran/bench/calls.f90 \
		$(BUILD)/fortran/in_c.o $(FORTRAN_LIB) -L$(BUILD)/lib -lllcl -Wl,-rpath,$(abspath $(BUILD)/lib)
	$(BUILD)/bin/llcl-run -n 1 $(BUILD)/fortran/calls

.PHONY: fortran bench-fortran
