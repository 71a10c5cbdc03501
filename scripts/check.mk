# make check, make check-all and their parts. The last line of each part says that it passed; otherwise it fails.
#   check      the checks that a contributor runs
#   check-more the other checks: models, sanitizers, the simulated network, and the set-ups that check leaves out
#   check-all  both, and what only a release needs
CHECKS = check-rust check-header check-docs check-man check-symbols check-fortran check-c check-examples check-python check-mpi check-install
MORE = check-loom check-wire check-conduit check-tsan check-asan check-aarch64 check-c-rest check-wire-seeds check-mpi-c check-conduit-mpi
RELEASE = check-wire-table check-asan-rest check-ranks
# For the makes that compile many small programs. Empty if this make was given -j: they share its jobs then.
PARALLEL = $(if $(findstring -j,$(MAKEFLAGS)),,-j$(shell nproc))
LOOM = CARGO_TARGET_DIR=$(BUILD)/cargo/loom RUSTFLAGS="--cfg loom" $(CARGO) test --profile loom --locked --quiet --no-default-features --lib \
	--config 'target."cfg(all())".runner=["env", "LD_PRELOAD=$(abspath $(BUILD))/cargo/loom/stacks.so"]' loom_

check: check-tools
	@scripts/check $(CHECKS)

check-more: check-tools
	@BESIDE=check-more-built scripts/check $(MORE)

check-all: check-tools
	@scripts/check $(CHECKS) $(MORE) $(RELEASE)

# Installs the missing tools that the checks need besides Rust, gcc and make.
check-tools:
	@scripts/install-check-tools

# The library, the tools, the C tests and the modules for MPIs.
check-built: all
	$(MAKE) --no-print-directory $(PARALLEL) -C c_tests BUILD=$(abspath $(BUILD))
	@scripts/check-mpi $(BUILD) build

check-more-built: check-built check-wire-library built-tsan built-asan

check-rust:
	$(CARGO) fmt --check
	$(CARGO) clippy --locked --all-targets --quiet --features simulated -- -D warnings
	$(CARGO) clippy --locked --lib --quiet -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --quiet --no-deps --document-private-items --lib --features simulated
	$(CARGO) test --locked --quiet --features simulated --lib --bins --test '*'
	@echo "check-rust: passed (format, clippy, rustdoc, Rust tests)"

# The number of models is checked first, since a model that is not compiled cannot fail.
check-loom:
	@mkdir -p $(BUILD)/cargo/loom
	$(CC) -std=gnu99 -Wall -Wextra -Werror -O2 -shared -fPIC scripts/loom_stacks.c -o $(BUILD)/cargo/loom/stacks.so
	@$(LOOM) -- --list | grep 'loom_.*: test' > /dev/null
	$(LOOM)
	@echo "check-loom: passed (every interleaving of the models of the shared structures)"

check-header:
	@scripts/check-header include/llcl.h

check-docs:
	@scripts/check-docs include/llcl.h

check-man: tools
	@scripts/check-man $(BUILD)

check-symbols: library
	@scripts/check-symbols include/llcl.h $(SHARED) $(STATIC) $(SONAME)

# Without a Fortran compiler this prints that and passes.
check-fortran: $(if $(FORTRAN),all)
	@FC=$(FORTRAN) scripts/check-fortran include/llcl.h
ifneq ($(FORTRAN),)
	$(MAKE) --no-print-directory -C f_tests BUILD=$(abspath $(BUILD)) FORTRAN=$(FORTRAN)
	c_tests/run --tests f_tests --build $(BUILD)
	@echo "$@: passed (Fortran tests; each pair of values of their set-ups)"
endif

check-c: all
	$(MAKE) --no-print-directory $(PARALLEL) -C c_tests BUILD=$(abspath $(BUILD))
	c_tests/run --build $(BUILD)
	@echo "check-c: passed (C tests; each pair of values of their set-ups)"

check-examples: all
	@scripts/check-examples $(BUILD) $(FORTRAN)

check-python: all
	@scripts/check-python $(BUILD)

check-conduit: all conduit
	$(MAKE) --no-print-directory $(PARALLEL) -C conduit/gasnet BUILD=$(abspath $(BUILD)) tests
	@conduit/gasnet/tests/run $(abspath $(BUILD))
	@conduit/gasnet/tests/run $(abspath $(BUILD)) wire

check-c-rest: all
	$(MAKE) --no-print-directory $(PARALLEL) -C c_tests BUILD=$(abspath $(BUILD))
	c_tests/run --rest --build $(BUILD)
	@echo "check-c-rest: passed (C tests; the other set-ups)"

# The C tests over the simulated network: all once with a network that reads and writes peers' memory, and those of messages, reads,
# writes, atomics and collectives once with one that carries frames only. They need a library that has this network.
WIRE = c_tests/run --build $(BUILD)
# Over the modules of tests/modules: trivial, between threads, which also reads and writes memory; datagram, between processes.
MODULE_TESTS = am_sizes am_long rma_write_sizes rma_read_sizes rma_signal_order rma_pieces rma_completions region_stale_key wait_word_wakes \
	peer_node peer_unmapped flush park
# The other tests that docs/memory-model.md names, tests of all kinds of memory and contexts, and tests of llcl_query_peer.
MODEL_TESTS = memory_model|local_address|threads_flush|threads_mixed|exchange_is_a_fence|context_*|duplicate_hub_leaves|within_others|callback_tree|$(PEER_TESTS)
PEER_TESTS = connect_try|life_query|remote_pointer|window
PROCESS_TESTS = am_sizes am_flood_both am_waits_asleep am_within_full rma_waits_asleep peer_node flush
# A rank of theirs is killed; the ranks are on three nodes that the module datagram joins.
KILL_TESTS = coll_kill duplicate_kill kill_nine team_survivors am_soak_kill wait_word_death
BY_MODULE = LLCL_MODULES=$(abspath $(BUILD))/wire/modules LD_LIBRARY_PATH=$(abspath $(BUILD))/lib
check-wire: check-wire-library
	$(WIRE) --wire 1 --mode auto
	$(WIRE) --wire 1:remote=0 --nodes --mode auto --filter '@(am_|rma_|atomic_|peer_|team_|coll_[abdeflmqst])*'
	$(WIRE) --wire 1:remote=0 --nodes --mode auto --filter '@($(MODEL_TESTS))'
	$(WIRE) --wire 3:remote=1:atomics=2 --nodes --mode auto --filter 'atomic_*'
	$(WIRE) --wire 6:remote=1:notices=3:answers=1 --nodes --mode auto --filter 'atomic_*'
	for answers in 0 1; do $(WIRE) --wire 1:notices=2:answers=$$answers --mode auto --filter '@(rma_signal*|rma_pieces*|flush)' || exit 1; done
	$(WIRE) --wire 1:shared=1 --mode auto --filter '@(am_unpolled|am_defer_bound|am_other_peer|am_respond_flood)'
	mkdir -p $(BUILD)/wire/modules
	for module in trivial datagram; do $(CC) -std=c99 -Wall -Wextra -Wpedantic -Werror -shared -fPIC -pthread -DREMOTE -Iinclude \
		-o $(BUILD)/wire/modules/libllcl-$$module.so tests/modules/$$module.c || exit 1; done
	for test in $(MODULE_TESTS); do LLCL_TRANSPORT=trivial $(BY_MODULE) TEST_THREADS=2 timeout 60 $(BUILD)/c_tests/$$test || \
		{ echo "$@: $$test over the module trivial"; exit 1; }; done
	for test in $(PROCESS_TESTS); do LLCL_TRANSPORT=datagram $(BY_MODULE) $(BUILD)/bin/llcl-run --timeout 60 -n 2 $(BUILD)/c_tests/$$test || \
		{ echo "$@: $$test over the module datagram"; exit 1; }; done
	LLCL_TRANSPORT=datagram $(BY_MODULE) LLCL_NODE_ID=0,0,1,1 $(BUILD)/bin/llcl-run --timeout 60 -n 4 \
		$(BUILD)/c_tests/duplicate_hub_leaves || { echo "$@: duplicate_hub_leaves over the module datagram"; exit 1; }
	for test in $(KILL_TESTS); do LLCL_TRANSPORT=datagram $(BY_MODULE) LLCL_NODE_ID=0,0,1,1,2 LLCL_RUN=$(abspath $(BUILD))/bin/llcl-run \
		timeout 150 $(BUILD)/c_tests/$$test 12 || { echo "$@: $$test over the module datagram"; exit 1; }; done
	mkdir -p $(BUILD)/wire/refusing
	$(CC) -std=c99 -Wall -Wextra -Wpedantic -Werror -shared -fPIC -pthread -DREFUSES -Iinclude \
		-o $(BUILD)/wire/refusing/libllcl-datagram.so tests/modules/datagram.c
	LLCL_TRANSPORT=datagram $(BY_MODULE) LLCL_MODULES=$(abspath $(BUILD))/wire/refusing LLCL_NODE_ID=0,0,1,1,2 \
		LLCL_RUN=$(abspath $(BUILD))/bin/llcl-run timeout 100 $(BUILD)/c_tests/duplicate_lost
	@echo "$@: passed (C tests behind a simulated network, on two nodes that one joins, and over modules)"

check-wire-seeds: check-wire-library
	for mode in direct offload; do $(WIRE) --wire 1:remote=0 --mode $$mode --filter '@(am|rma|atomic|peer)_*' || exit 1; done
	for mode in direct offload; do $(WIRE) --wire 1:remote=1:atomics=1 --nodes --mode $$mode --filter 'atomic_*' || exit 1; done
	$(WIRE) --wire 2 --nodes --mode direct --filter '@(am|rma|atomic|peer|team)_*'
	$(WIRE) --wire 2 --nodes --mode offload --filter '@(am|rma|atomic|peer)_*'
	$(WIRE) --wire 1:remote=0 --nodes --mode auto --filter 'coll_[cgkruv]*'
	LLCL_KILLS=1000 $(CARGO) test --locked --quiet --features simulated --lib what_is_pending_on_the_dead
	for seed in 4 5 6; do $(WIRE) --wire $$seed --all --mode auto --filter '@(am_*|coll_types|coll_v_forms)' || exit 1; done
	@echo "$@: passed (C tests behind a simulated network, the other modes, three more seeds; 1,000 deaths)"

# The whole table over nine more seeds, which takes a quarter of an hour.
check-wire-table: check-wire-library
	for seed in 2 3 4 5 6 7 8 9 10; do $(WIRE) --wire $$seed --mode auto || exit 1; done
	@echo "$@: passed (all C tests behind a simulated network, nine more seeds)"

# check-rust takes eleven numbers of ranks up to 17: of both parities, and powers of two with their neighbours. Optimised, the
# simulator takes a fraction of the time.
RANKS = CARGO_PROFILE_DEV_OPT_LEVEL=1 LLCL_RANKS=all $(CARGO) test --locked --quiet --features simulated --lib coll::simulator
check-ranks:
	@$(RANKS) -- --list | grep '::every_reduce: test' > /dev/null
	$(RANKS)
	@echo "$@: passed (algorithms of collectives with every number of ranks up to 33)"

# The module for each MPI that is installed. Without libclang, or if cargo cannot fetch the module's crates, this says so and
# passes.
check-mpi: all
	@scripts/check-mpi $(BUILD)

# The tests of check-wire with processes on two nodes that MPI joins.
check-mpi-c: all
	$(MAKE) --no-print-directory $(PARALLEL) -C c_tests BUILD=$(abspath $(BUILD))
	@scripts/check-mpi $(BUILD) c_tests
	@echo "$@: passed (C tests on two nodes that MPI joins)"

check-conduit-mpi: all conduit
	$(MAKE) --no-print-directory $(PARALLEL) -C conduit/gasnet BUILD=$(abspath $(BUILD)) tests
	@scripts/check-mpi $(BUILD) conduit
	@echo "$@: passed (the GASNet conduit's tests on two nodes that MPI joins)"

# The shared library is stripped.
check-wire-library: all
	CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 CARGO_PROFILE_RELEASE_DEBUG=false \
		$(MAKE) --no-print-directory BUILD=$(BUILD)/wire FEATURES=simulated library
	$(MAKE) --no-print-directory $(PARALLEL) -C c_tests BUILD=$(abspath $(BUILD))

check-install: all
	@scripts/check-install

# Some C tests with ranks as threads, built for another processor and run under an emulator.
check-aarch64:
	scripts/check-aarch64 $(BUILD)/aarch64
	@echo "$@: passed (C tests, ranks as threads, under qemu)"

# The C tests with ranks as threads and an instrumented library; docs/testing.md says how it is linked.
# ThreadSanitizer also sees collectives behind the simulated network.
check-tsan: BEHIND = coll_@(query|blocking|registered|completion|state|async)
check-tsan built-tsan: SANITIZER = thread
check-asan check-asan-rest built-asan: SANITIZER = address
# A test of these is as fast without optimisation, and built in half of the time.
built-tsan built-asan:
	scripts/build-sanitized $(SANITIZER) $(BUILD)/$(SANITIZER)
	$(MAKE) --no-print-directory $(PARALLEL) -C c_tests BUILD=$(abspath $(BUILD)/$(SANITIZER)) programs \
		CFLAGS='-O0 -g' CFLAGS_EXTRA=-fsanitize=$(SANITIZER) LLCL_LIBS="$$(cat $(BUILD)/$(SANITIZER)/lib/link)"

check-tsan: built-tsan
check-asan check-asan-rest: built-asan
# In mode auto callers execute operations as in mode direct, so AddressSanitizer sees the same accesses.
check-asan: SET_UPS = --mode 'auto|offload'
check-asan-rest: SET_UPS = --mode direct
check-tsan check-asan check-asan-rest:
	. scripts/sanitizer-options && c_tests/run --threads --build $(BUILD)/$(SANITIZER) $(SET_UPS)
	$(if $(BEHIND),. scripts/sanitizer-options && for nodes in 1 "1:remote=0 --nodes"; do \
		c_tests/run --build $(BUILD)/$(SANITIZER) --mode auto --filter '$(BEHIND)' --wire $$nodes || exit 1; done)
	@echo "$@: passed (C tests, ranks as threads$(if $(BEHIND),; collectives behind a simulated network))"

# Not part of check-all: the conduit's tests in PAR, with ranks as processes, for races between threads of one rank.
check-conduit-tsan: all
	scripts/build-sanitized thread $(BUILD)/thread
	$(MAKE) --no-print-directory $(PARALLEL) -C conduit/gasnet BUILD=$(abspath $(BUILD)) tsan \
		LLCL_LIBS="$$(cat $(BUILD)/thread/lib/link)"
	. scripts/sanitizer-options && conduit/gasnet/tests/run $(abspath $(BUILD)) tsan
	@echo "$@: passed (the conduit's tests, instrumented)"

.PHONY: check check-more check-all check-tools check-built check-more-built built-tsan built-asan check-wire-library $(CHECKS) $(MORE) $(RELEASE)
