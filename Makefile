# robot-net. `make` lists the targets; each command here can also be run by hand.

SHELL := /bin/bash
.DEFAULT_GOAL := help
.NOTPARALLEL:
MAKEFLAGS += --no-print-directory

STEP := scripts/step.sh
PY := $(CURDIR)/.venv/bin/python
# Each test has its own domain, and most wait for something.
PYTEST := $(PY) -m pytest --numprocesses $(shell expr 2 \* $$(nproc)) --dist worksteal
export DEMO_SECONDS ?= 20
export SOAK_SECONDS ?= 600

# In the order of the run. `check`, `test` and `test-slow` continue after a failure and show all failures at
# the end. CI_SLOW is the part of SLOW that CI runs: between hosts, in a browser, the corpora of the fuzz targets,
# and the C++ tests with sanitizers.
CHECKS := check-fmt check-clippy check-doc check-api check-c-header check-cpp-messages check-deps check-audit check-cycles check-tidy check-abi
TESTS := test-rust test-doc test-loom test-python test-demo test-examples test-c
CI_SLOW := test-net check-dashboard test-dashboard test-corpora
SLOW := $(CI_SLOW) test-c-sanitize test-instructions test-full test-hostile test-random test-metrics test-foxglove site test-fuzz test-dist test-bench test-bench-python

# The comparison: default output folder of `make bench`.
BENCH_OUT ?= bench/target/report
COMPARE := bench/target/release/compare
BENCH_PY := bench/.venv/bin/python
RECORD_EXAMPLES := record_robot record_speed open_speed

.PHONY: help demo build-demo test test-all test-slow test-ci quick check build build-dev bench bench-quick bench-own soak fuzz clean setup build-release build-c \
	bench-setup bench-typed bench-record build-bench build-record build-link build-link-dev dashboard dist install $(CHECKS) $(TESTS) $(SLOW)

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' Makefile

demo: build-demo $(if $(filter 2,$(HOSTS)),build-link-dev) ## run a robot of ten processes for DEMO_SECONDS (default 20); HOSTS=2: on two simulated hosts, with a cable cut (root)
	@DEMO_HOSTS=$(HOSTS) $(PY) demo/run.py

test: ## run the tests: Rust, doc tests, loom, Python, demo, examples, C and C++
	@$(STEP) --start
	@$(MAKE) --keep-going build-dev $(TESTS); code=$$?; \
	$(STEP) --summary; exit $$code

test-slow: ## run the slow tests: network between hosts, browser, AddressSanitizer, random kills, fuzzing, packages, comparison with other systems (installs them)
	@$(STEP) --start
	@$(MAKE) --keep-going $(SLOW); code=$$?; \
	$(STEP) --summary; exit $$code

test-all: ## run `make check`, `make test` and `make test-slow`
	@$(STEP) --start
	@$(MAKE) --keep-going $(CHECKS) build-dev $(TESTS) $(SLOW); code=$$?; \
	$(STEP) --summary; exit $$code

test-ci: ## run the CI tests: `make test`, `make check`, and the most important slow tests
	@$(STEP) --start
	@$(MAKE) --keep-going build-dev $(TESTS) $(CHECKS) $(CI_SLOW); code=$$?; \
	$(STEP) --summary; exit $$code

quick: ## check formatting, lints and unit tests of the changes since the branch left main; needs no set-up
	@scripts/quick.sh

check: ## check formatting, clippy and rustdoc warnings, public API, crate dependencies, import cycles, tidiness, the C library's ABI
	@$(STEP) --start
	@$(MAKE) --keep-going $(CHECKS); code=$$?; \
	$(STEP) --summary; exit $$code

build: setup build-release ## build the release: `rnet`, the demo nodes, the Python package in .venv, the C library

bench: build-bench ## compare all systems on the same workloads, and measure recordings; about 55 minutes; BENCH_OUT=folder
	@mkdir -p $(BENCH_OUT)
	@$(COMPARE) run --json $(BENCH_OUT)/raw.json.gz
	@$(COMPARE) report $(BENCH_OUT)/raw.json.gz && echo "see $(BENCH_OUT)/REPORT.md"
	@$(MAKE) bench-record

bench-quick: build-bench ## run the comparison with one short repetition: under 5 minutes; do not quote the results
	@mkdir -p $(BENCH_OUT)-quick
	@$(COMPARE) run --quick --json $(BENCH_OUT)-quick/raw.json.gz
	@$(COMPARE) report $(BENCH_OUT)-quick/raw.json.gz && echo "see $(BENCH_OUT)-quick/REPORT.md"

# Checks the performance targets of recordings. The robot writes about 5 GB to the disk of TMPDIR, and removes
# them afterwards.
bench-record: build-record ## measure recording cost and reading speed against the targets: 3 minutes; writes BENCH_OUT/recording.json
	@mkdir -p $(BENCH_OUT)
	@$(PY) python/benches/recording.py target/release $(BENCH_OUT)/recording.json $(if $(QUICK),--quick)

build-record: build
	@$(STEP) build-record cargo build --release --package rnet-record $(RECORD_EXAMPLES:%=--example %)

bench-own: ## run the benchmarks of robot-net alone, with cargo bench
	@cargo bench --package rnet --benches

bench-typed: build ## measure how fast Python receives typed messages, compared with the protobuf runtime alone
	@$(PY) python/benches/typed.py

soak: ## run the soak tests: 1,000 restarts of a node, 10^7 state changes, 1,000 partition schedules in one process and 1,000 over network namespaces, a link killed each second for a minute, 1,000 command drivers killed, stopped and cut off, drivers on three hosts with 1,000 cable cuts, 1,000 servers killed during a call, two minutes of histories, 10^6 rounds of the barrier pair, then random kills for SOAK_SECONDS (default 600); prints kills=N violations=N
	@$(STEP) --tests soak-lives cargo test --release --package rnet-node --test it -- --ignored restart::soak
	@STATE_MODEL_OPERATIONS=10000000 $(STEP) --tests soak-model cargo test --release --package rnet-shm --test it state_model::
	@LITMUS_ROUNDS=1000000 $(STEP) --tests soak-litmus cargo test --release --package rnet-shm --test it litmus:: -- --include-ignored --nocapture --test-threads=1
	@$(STEP) --tests soak-partitions cargo test --release --package rnet-net --test it partitions:: -- --ignored --nocapture
	@$(STEP) --tests soak-net cargo test --release --package rnet-net --features zenoh --test it -- --ignored --nocapture soak --skip partition --skip conformance
	@$(STEP) --tests soak-net-conformance cargo test --release --package rnet-net --features zenoh --test it conformance::soak -- --ignored --test-threads=2
	@$(STEP) soak-commands cargo run --release --package rnet-net --example command_trials -- 1000
	@COMMANDS=1000 COMMANDS_SEED=$$(date +%s) $(STEP) --tests soak-drivers cargo test --release --package rnet-net --test it commands_random:: -- --nocapture
	@$(STEP) soak-server-lost cargo run --release --package rnet --example server_lost -- 1000
	@PARTITIONS_AT_ONCE=$(or $(PARTITIONS_AT_ONCE),4) $(STEP) --tests soak-net-partitions cargo test --release --package rnet-net --features zenoh --test it soak_partition -- --ignored --nocapture
	@cargo build --package rnet-state-tests --bin rnet-state-tests
	@target/debug/rnet-state-tests soak
	@cargo build --package rnet-survival --bin survival
	@target/debug/survival soak

fuzz: ## fuzz each target for FUZZ_SECONDS (default 600), coverage-guided, with AddressSanitizer
	@$(STEP) setup-fuzz scripts/setup.sh --fuzz
	@FUZZ_SECONDS=$${FUZZ_SECONDS:-600} $(STEP) fuzz scripts/fuzz.sh

site: ## build the documentation as web pages in target/site, and check its links
	@$(STEP) site scripts/site.py

dist: ## build the release packages in target/dist/out: wheel, sdist, tarballs, Debian packages, crates
	@$(STEP) dist scripts/dist.sh

install: export PREFIX ?= /usr/local
install: ## install the command with manual pages, completions and systemd files, and the C library, below PREFIX (default /usr/local)
	@test -x target/release/rnet && test -e target/release/c/librnet.so.1 || { echo "run 'make build' first" >&2; exit 1; }
	@test -x target/release/rnet-link || echo "without rnet-link, which joins hosts: 'make build-link' builds it"
	@scripts/stage.sh target/release/rnet "$(DESTDIR)" "$(PREFIX)"
	@scripts/stage-c.sh target/release/c "$(DESTDIR)" "$(PREFIX)" $(LIBDIR)

clean: ## remove build outputs and installed tools: target/ and .venv/, also those of bench/
	cargo clean
	rm -rf .venv fuzz/target bench/target bench/.venv bench/.venv-ecal bench/.tools

setup: ## install tools and Python packages in .venv; part of test, build and demo
	@$(STEP) setup scripts/setup.sh

# For `make demo` and `make test`, in the development profile.
build-dev: setup
	@$(STEP) build-dev scripts/python-dev.sh

build-demo: setup
	@$(STEP) build-demo scripts/python-dev.sh --demo

build-release: setup
	@$(STEP) build-release scripts/python-dev.sh --release

# The C library in the development profile, and installed in target/c/prefix, as the tests use it.
build-c:
	@$(STEP) setup-c scripts/setup.sh --c
	@$(STEP) build-c bash -c 'scripts/librnet.sh target/c/lib && rm -rf target/c/prefix && scripts/stage-c.sh target/c/lib "" "$$PWD/target/c/prefix"'

build-link: ## build the link between hosts, with Zenoh, which only the link needs
	@$(STEP) build-link cargo build --release --package rnet-net --features zenoh --bin rnet-link

build-link-dev:
	@$(STEP) build-link-dev cargo build --package rnet-net --features zenoh --bin rnet-link

bench-setup: setup ## install the other systems of the comparison: libraries, servers and Python packages; part of bench and test
	@$(STEP) bench-setup bench/setup.sh

build-bench: bench-setup build-link
	@$(STEP) build-bench cargo build --release --manifest-path bench/Cargo.toml --workspace --bins --bench pub_sub

dashboard: ## build the page of rnet dashboard, dashboard/dist, from its sources; commit the result
	@$(STEP) dashboard scripts/dashboard.sh build

check-fmt:
	@$(STEP) check-fmt cargo fmt --all --check -- --color never
	@$(STEP) check-fmt-fuzz cargo fmt --manifest-path fuzz/Cargo.toml --all --check -- --color never
	@$(STEP) check-fmt-bench cargo fmt --manifest-path bench/Cargo.toml --all --check -- --color never

check-clippy:
	@$(STEP) check-clippy cargo clippy --workspace --all-targets -- -D warnings

check-doc: export RUSTDOCFLAGS := -D warnings
check-doc:
	@$(STEP) check-doc cargo doc --workspace --no-deps

# The public API of crate `rnet`, from rustdoc's JSON. After check-doc, whose builds it shares.
check-api:
	@$(STEP) check-api cargo xtask api

check-c-header:
	@$(STEP) check-c-header bash -c 'cargo xtask c-header && cpp/check-header.sh'

check-cpp-messages:
	@$(STEP) check-cpp-messages cargo xtask cpp-messages

check-deps:
	@$(STEP) check-deps cargo xtask deps

# Offline: the list of packages that were compared with RustSec's advisories.
check-audit:
	@$(STEP) check-audit cargo xtask audit

check-cycles:
	@$(STEP) check-cycles cargo xtask cycles

check-tidy:
	@$(STEP) check-tidy cargo xtask tidy

# The committed description of the C library's binary interface.
check-abi: build-c
	@$(STEP) check-abi scripts/abi.sh target/c/lib

# One process per test, twice as many at a time as cores: most tests wait for something.
test-rust: setup
	@$(STEP) --tests test-rust scripts/nextest.sh --workspace --lib --bins --tests --examples

test-doc:
	@$(STEP) --tests test-doc cargo test --workspace --doc

# A domain with the maximum number of nodes.
test-full: setup
	@$(STEP) --tests test-full scripts/nextest.sh --workspace --lib --bins --tests --run-ignored only -E 'test(=node_limit::a_full_domain)'

# Kills nodes at random.
test-random: export SURVIVAL_SECONDS ?= 60
test-random: setup
	@$(STEP) --tests test-random scripts/nextest.sh --workspace --lib --bins --tests --run-ignored only -E 'test(/^(random|histories)::/)'

# The only step that builds Zenoh, except for dist. Hosts are network namespaces, which need root. test-rust
# covers the tests that need no Zenoh.
NET := test(/^(conformance|zenoh|namespaces|rnet_link|ports)::/) or binary(rnet-link) or kind(lib)
test-net: build-dev build-c
	@$(STEP) setup-net scripts/setup.sh --net
	@$(STEP) --tests test-net scripts/nextest.sh --package rnet-net --features zenoh --lib --bins --tests -E '$(NET)'
	@$(STEP) --tests test-net-page scripts/nextest.sh --workspace --lib --bins --tests --run-ignored only -E 'test(/^over_link::/)'
	@$(STEP) --tests test-net-c cpp/test.sh test_remote_state
	@$(STEP) --tests test-net-demo $(PY) -m pytest demo/test_two_hosts.py python/tests/test_state_of.py

# Only these steps need node, which scripts/node.sh installs if it is missing. Tests the page in a real
# browser with a running robot.
check-dashboard:
	@$(STEP) check-dashboard scripts/dashboard.sh check

test-dashboard: build-dev
	@$(STEP) setup-dashboard scripts/setup.sh --dashboard
	@$(STEP) test-dashboard scripts/dashboard.sh test

# Checks the metrics with Prometheus itself.
test-metrics:
	@$(STEP) setup-metrics scripts/setup.sh --metrics
	@$(STEP) --tests test-metrics scripts/nextest.sh --workspace --lib --bins --tests --run-ignored all -E 'package(rnet-cli) and test(/^metrics::/)'

# An independent client of the protocol: packages of node.
test-foxglove:
	@$(STEP) setup-foxglove scripts/setup.sh --foxglove
	@$(STEP) --tests test-foxglove scripts/node.sh scripts/nextest.sh --workspace --lib --bins --tests --run-ignored all -E 'test(/^independent::/)'

# Repeats the tests of corrupted and truncated memory with a sanitizer, which terminates the process on any
# access out of bounds.
HOSTILE := rnet rnet-call rnet-node rnet-state
test-hostile: export CARGO_TARGET_DIR := target/asan
test-hostile:
	@$(STEP) --tests test-hostile scripts/asan.sh test $(HOSTILE:%=--package %) --test it hostile

test-fuzz:
	@$(STEP) setup-fuzz scripts/setup.sh --fuzz
	@$(STEP) test-fuzz scripts/fuzz.sh

# Findings of the fuzzer are kept in fuzz/corpus, and are replayed without fuzzing.
test-corpora:
	@$(STEP) setup-fuzz scripts/setup.sh --fuzz
	@$(STEP) test-corpora scripts/fuzz.sh --replay

# A separate step, so that a build and the demo do not need valgrind.
test-instructions:
	@$(STEP) setup-valgrind scripts/setup.sh --valgrind
	@$(STEP) test-instructions cargo xtask instructions

test-loom: export RUSTFLAGS := --cfg loom
test-loom: export CARGO_TARGET_DIR := target/loom
test-loom:
	@$(STEP) --tests test-loom cargo test --package rnet-ring --release --test it

test-python: build-dev
	@$(STEP) --tests test-python $(PYTEST) python/tests

# One at a time: a robot needs the machine for itself.
test-demo: build-dev
	@$(STEP) --tests test-demo $(PY) -m pytest demo --ignore=demo/test_two_hosts.py

test-examples: build-dev build-c
	@$(STEP) --tests test-examples $(PYTEST) examples

# Then the conformance suite between actors in C++, Python and Rust.
test-c: build-dev build-c
	@$(STEP) --tests test-c cpp/test.sh
	@$(STEP) --tests test-c-conformance scripts/nextest.sh --workspace --lib --bins --tests --run-ignored only -E 'test(/^conformance::.*(cpp|python).*::/)'

test-c-sanitize: build-c
	@$(STEP) --tests test-c-address cpp/test.sh --sanitize=address,undefined
	@$(STEP) --tests test-c-thread cpp/test.sh --sanitize=thread

# Builds the release files, installs them into empty folders, and uses them: one step, because each part needs
# the others.
test-dist: build-dev build-c
	@$(STEP) test-dist sh -c 'scripts/setup.sh --dist && scripts/dist.sh && scripts/dist-test.sh'

test-bench: export CARGO_INCREMENTAL := 0
test-bench: bench-setup build-link
	@$(STEP) --tests test-bench cargo test --manifest-path bench/Cargo.toml --workspace

test-bench-python: bench-setup
	@$(STEP) --tests test-bench-python $(BENCH_PY) -m pytest bench/python bench/report
