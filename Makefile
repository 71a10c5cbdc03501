# `make` builds, `make demo` runs a short benchmark, `make check` tests, `make install` installs.
# `make` needs Rust, gcc and make. `make check` installs the other tools that the checks need.
PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
BINDIR ?= $(PREFIX)/bin
DOCDIR ?= $(PREFIX)/share/doc/llcl
MANDIR ?= $(PREFIX)/share/man
DATADIR ?= $(PREFIX)/share/llcl
# A .mod file can be read only by the compiler that wrote it, so it has a folder of its own.
FMODDIR ?= $(LIBDIR)/llcl/fortran
DESTDIR ?=
BUILD ?= build
CARGO ?= cargo
INSTALL ?= install

VERSION := $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
SONAME := libllcl.so.$(firstword $(subst ., ,$(VERSION)))
SHARED := $(BUILD)/lib/libllcl.so.$(VERSION)
STATIC := $(BUILD)/lib/libllcl.a
TOOLS := $(BUILD)/bin/llcl-run $(BUILD)/bin/llcl-info
HEADER := $(addprefix $(BUILD)/include/,llcl.h llcl.hpp llcl_inline.h llcl_mpi.h)
# The libraries that rustc --print native-static-libs names; the C compiler adds libgcc_s itself.
SYSTEM_LIBS := -lpthread -ldl -lm

# The library and the tools are built in trees of their own: cargo locks a tree while it builds, and
# `make -j` builds both at a time.
CARGO_LIB := CARGO_TARGET_DIR=$(BUILD)/cargo/lib $(CARGO) rustc --release --locked --lib \
	--no-default-features --crate-type staticlib $(if $(FEATURES),--features $(FEATURES))
CARGO_BIN := CARGO_TARGET_DIR=$(BUILD)/cargo/tools $(CARGO) build --profile tools --locked --bins
QUIET := $(if $(V),,--quiet)

all: library tools man

library: $(SHARED) $(STATIC) $(HEADER)
tools: $(TOOLS)

# cargo decides whether the file must be built again, and does not touch it otherwise.
$(BUILD)/cargo/lib/release/libllcl.a: FORCE
	@$(CARGO_LIB) $(QUIET)
$(BUILD)/cargo/tools/tools/%: FORCE
	@$(CARGO_BIN) $(QUIET)
# One cargo at a time: the second tool waits for the first and then has nothing to do.
$(BUILD)/cargo/tools/tools/llcl-info: $(BUILD)/cargo/tools/tools/llcl-run

# One object in which only llcl_* is global, so that a program may link two Rust libraries.
$(STATIC): $(BUILD)/cargo/lib/release/libllcl.a | $(BUILD)/lib
	scripts/link-static $< $@

# The version script is given to cc because rustc and its linkers drop or refuse one.
$(SHARED): $(STATIC) llcl.map
	$(CC) -shared -o $@ -Wl,--whole-archive $(STATIC) -Wl,--no-whole-archive \
		-Wl,--version-script=llcl.map -Wl,-soname,$(SONAME) -Wl,--gc-sections \
		-Wl,-z,nodelete -Wl,-z,defs -Wl,-z,relro -Wl,-z,now -Wl,--as-needed \
		-Wl,--strip-debug $(SYSTEM_LIBS)
	ln -sf libllcl.so.$(VERSION) $(BUILD)/lib/$(SONAME)
	ln -sf $(SONAME) $(BUILD)/lib/libllcl.so

$(BUILD)/bin/%: $(BUILD)/cargo/tools/tools/% | $(BUILD)/bin
	strip --strip-debug -o $@ $<

$(HEADER): $(BUILD)/include/%: include/% | $(BUILD)/include
	$(INSTALL) -m 644 $< $@

$(BUILD)/lib $(BUILD)/bin $(BUILD)/include:
	mkdir -p $@

demo: all
	$(MAKE) --no-print-directory -C bench_c BUILD=$(abspath $(BUILD))
	$(BUILD)/bin/llcl-run -n 2 $(BUILD)/bench_c/demo

bench: all
	$(MAKE) --no-print-directory -C bench_c BUILD=$(abspath $(BUILD))
	bench_c/run --build $(BUILD) $(BENCH_OPTIONS)

# The experiments of the papers on which the library is based: their figures as ratios, beside ours.
papers: all
	$(MAKE) --no-print-directory -C bench_c BUILD=$(abspath $(BUILD))
	bench_c/run --build $(BUILD) --no-plots --only "latency overhead msgrate incast coll" $(BENCH_OPTIONS) > /dev/null
	bench_c/papers bench_c/results

# The library over MPI's wire beside the same MPI, in one run for each MPI and each way that it has between two processes.
bench-peers: library
	for mpi in openmpi mpich; do ! command -v mpicc.$$mpi > /dev/null || \
		$(MAKE) --no-print-directory mpi MPICC=mpicc.$$mpi || exit 1; done
	$(MAKE) --no-print-directory -C bench_c BUILD=$(abspath $(BUILD)) wires
	bench_c/peers/wire $(BUILD)

# Manual pages: one for each function, from the header; docs/testing.md has how they are checked.
man: $(BUILD)/man/man7/llcl.7
$(BUILD)/man/man7/llcl.7: include/llcl.h Cargo.toml scripts/make-man scripts/man.awk $(wildcard packaging/man/*)
	scripts/make-man $(BUILD)/man

# The web site of docs/ with the reference of llcl.h, by Sphinx.
site:
	scripts/make-site $(BUILD)/site

# GASNet's interface over the library: docs/gasnet.md.
conduit: library
	$(MAKE) --no-print-directory -C conduit/gasnet BUILD=$(abspath $(BUILD))

header:
	scripts/make-header include/llcl.h
	scripts/make-fortran include/llcl.h fortran/generated

include fortran/build.mk
include modules/mpi/build.mk
include packaging/install.mk
include conduit/gasnet/packaging/install.mk
include scripts/check.mk

clean:
	rm -rf $(BUILD)

.PHONY: all library tools demo bench bench-peers papers man site header clean FORCE
FORCE:
.DELETE_ON_ERROR:
