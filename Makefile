# robot-net. `make` lists the targets; each command can also be run by hand as it stands here.

SHELL := /bin/bash
.DEFAULT_GOAL := help
.NOTPARALLEL:
MAKEFLAGS += --no-print-directory

STEP := scripts/step.sh
PY := $(CURDIR)/.venv/bin/python
export DEMO_SECONDS ?= 20
export SOAK_SECONDS ?= 600

# In the order of the run. `make test` goes on after a failure and shows all of them at the end. What takes
# minutes, kills at random, fuzzes or needs a rival is in SLOW; what takes ten minutes or more is in `make soak`.
CHECKS := check-fmt check-clippy check-doc check-deps check-circles check-tidy
TESTS := test-rust test-doc test-kill test-instructions test-loom test-python test-demo test-examples
SLOW := test-net test-full test-hostile test-random test-metrics check-dashboard test-dashboard test-foxglove site test-fuzz test-dist test-bench test-bench-python

# The comparison: what `make bench` writes, unless told otherwise.
BENCH_OUT ?= bench/target/report
COMPARE := bench/target/release/compare
BENCH_PY := bench/.venv/bin/python
RECORD_EXAMPLES := record_robot record_speed open_speed

.PHONY: help demo test test-all test-slow quick check build bench bench-quick bench-own soak fuzz clean setup build-rust python-package \
	bench-setup bench-typed bench-record build-bench build-record build-link dashboard dist install $(CHECKS) $(TESTS) $(SLOW)

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' Makefile

demo: build $(if $(filter 2,$(HOSTS)),build-link) ## run a robot of ten processes for DEMO_SECONDS (default 20); HOSTS=2: on two hosts, whose cable is cut (root)
	@DEMO_HOSTS=$(HOSTS) $(PY) demo/run.py

test: ## check, then the tests of the product: Rust, docs, kills, loom, Python, demo, examples
	@$(STEP) --start
	@$(MAKE) --keep-going check setup python-package $(TESTS); code=$$?; \
	$(STEP) --summary; exit $$code

test-all: ## `make test` and `make test-slow`
	@$(STEP) --start
	@$(MAKE) --keep-going check setup python-package $(TESTS) $(SLOW); code=$$?; \
	$(STEP) --summary; exit $$code

test-slow: ## what `make test` leaves out: the network between hosts, AddressSanitizer, kills at random, fuzzing, and the comparison, which installs the rivals
	@$(STEP) --start
	@$(MAKE) --keep-going $(SLOW); code=$$?; \
	$(STEP) --summary; exit $$code

quick: ## formatting, lints and unit tests of what changed since the branch left main; no set-up needed
	@scripts/quick.sh

check: $(CHECKS) ## formatting, clippy and rustdoc without warnings, the map of crates, circles of imports, tidiness

build: setup build-rust python-package ## the release build: libraries, `rnet`, the Python package

bench: build-bench ## every system of the field on the same work, and the figures of recordings, about 55 minutes; BENCH_OUT=folder
	@mkdir -p $(BENCH_OUT)
	@$(COMPARE) run --json $(BENCH_OUT)/raw.json.gz
	@$(COMPARE) report $(BENCH_OUT)/raw.json.gz && echo "see $(BENCH_OUT)/REPORT.md"
	@$(MAKE) bench-record

bench-quick: build-bench ## the same, one short repetition: under 5 minutes, no figures to quote
	@mkdir -p $(BENCH_OUT)-quick
	@$(COMPARE) run --quick --json $(BENCH_OUT)-quick/raw.json.gz
	@$(COMPARE) report $(BENCH_OUT)-quick/raw.json.gz && echo "see $(BENCH_OUT)-quick/REPORT.md"

# The figures that recordings promise. The robot writes some 5 GB to the disk of TMPDIR, and takes them away again.
bench-record: build-record ## what recordings cost and how fast they are read, beside the targets: 3 minutes; writes BENCH_OUT/recording.json
	@mkdir -p $(BENCH_OUT)
	@$(PY) python/benches/recording.py target/release $(BENCH_OUT)/recording.json $(if $(QUICK),--quick)

build-record: python-package build-rust
	@$(STEP) build-record cargo build --release --workspace $(NOT_BUILT:%=--exclude %) $(RECORD_EXAMPLES:%=--example %)

bench-own: ## robot-net alone, by cargo bench
	@cargo bench --package rnet --benches

bench-typed: python-package ## how fast Python receives typed messages, against the protobuf runtime alone
	@$(PY) python/benches/typed.py

soak: ## 1,000 lives of a node, 10^7 changes of state, 1,000 partition schedules in one process and 1,000 over network namespaces, a link killed each second for a minute, 1,000 drivers of a command killed, stopped and cut off, drivers of three hosts whose cables are cut 1,000 times, 1,000 servers killed in mid-call, two minutes of histories, 10^6 rounds of the barrier pair, then kills at random for SOAK_SECONDS (default 600); ends with kills=N violations=N
	@$(STEP) --tests soak-lives cargo test --release --package rnet --test restart -- --ignored soak
	@STATE_MODEL_OPERATIONS=10000000 $(STEP) --tests soak-model cargo test --release --package rnet-shm --test state_model
	@LITMUS_ROUNDS=1000000 $(STEP) --tests soak-litmus cargo test --release --package rnet-shm --test litmus -- --include-ignored --nocapture --test-threads=1
	@STEP_LIMIT_S=7200 $(STEP) --tests soak-partitions cargo test --release --package rnet-net --test partitions -- --ignored --nocapture
	@$(STEP) --tests soak-net cargo test --release --package rnet-net --features zenoh --test namespaces --test ports -- --ignored --nocapture soak --skip partition
	@$(STEP) --tests soak-net-conformance cargo test --release --package rnet-net --features zenoh --test conformance -- --ignored soak --test-threads=2
	@STEP_LIMIT_S=7200 $(STEP) soak-commands cargo run --release --package rnet-net --example command_trials -- 1000
	@COMMANDS=1000 COMMANDS_SEED=$$(date +%s) $(STEP) --tests soak-drivers cargo test --release --package rnet-net --test commands_random -- --nocapture
	@$(STEP) soak-server-lost cargo run --release --package rnet --example server_lost -- 1000
	@STEP_LIMIT_S=7200 PARTITIONS_AT_ONCE=$(or $(PARTITIONS_AT_ONCE),4) $(STEP) --tests soak-net-partitions cargo test --release --package rnet-net --features zenoh --test namespaces -- --ignored --nocapture soak_partition
	@cargo build --release --package rnet-state-tests --features failpoints --bin rnet-state-tests
	@target/release/rnet-state-tests soak
	@cargo build --release --package rnet-survival --features failpoints --bin survival
	@target/release/survival soak

fuzz: ## coverage-guided, with AddressSanitizer: each target for FUZZ_SECONDS (default 600)
	@$(STEP) setup-fuzz scripts/setup.sh --fuzz
	@STEP_LIMIT_S=86400 FUZZ_SECONDS=$${FUZZ_SECONDS:-600} $(STEP) fuzz scripts/fuzz.sh

site: ## the documentation as web pages, in target/site, with its links checked
	@$(STEP) site scripts/site.py

dist: ## what is released, in target/dist/out: wheel, sdist, tarball, Debian package, crates
	@STEP_LIMIT_S=1800 $(STEP) dist scripts/dist.sh

install: export PREFIX ?= /usr/local
install: ## the command with manual pages, completions and systemd files, below PREFIX (default /usr/local)
	@test -x target/release/rnet || { echo "run 'make build' first" >&2; exit 1; }
	@test -x target/release/rnet-link || echo "without rnet-link, which joins hosts: 'make build-link' builds it"
	@scripts/stage.sh target/release/rnet "$(DESTDIR)" "$(PREFIX)"

clean: ## remove what was built and installed: target/ and .venv/, those of bench/ too
	cargo clean
	rm -rf .venv fuzz/target bench/target bench/.venv bench/.venv-ecal bench/.tools

setup: ## tools and Python packages in .venv; part of test, build and demo
	@$(STEP) setup scripts/setup.sh

# Not what only tests need, nor the extension module, which python-package builds. What rnet-build is needed for
# is built for the host; named here, it would be built once more as if robots ran it.
NOT_BUILT := rnet-build rnet-python rnet-survival rnet-state-tests rnet-message-tests xtask
build-rust:
	@$(STEP) build-rust cargo build --release --workspace $(NOT_BUILT:%=--exclude %)

build-link: ## the link between hosts, with Zenoh, which nothing else needs
	@$(STEP) build-link cargo build --release --package rnet-net --features zenoh --bin rnet-link

python-package: setup
	@$(STEP) python-package env --chdir=python --unset=CONDA_PREFIX \
	VIRTUAL_ENV=$(CURDIR)/.venv $(CURDIR)/.venv/bin/maturin develop --release

bench-setup: setup ## the rivals' libraries, servers and Python packages; part of bench and test
	@$(STEP) bench-setup bench/setup.sh

build-bench: export STEP_LIMIT_S := 2400
build-bench: bench-setup build-link
	@$(STEP) build-bench cargo build --release --manifest-path bench/Cargo.toml --workspace --bins --bench pub_sub

dashboard: ## the page of rnet dashboard, dashboard/dist, of its sources; commit what it gives
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

check-deps:
	@$(STEP) check-deps cargo xtask deps

check-circles:
	@$(STEP) check-circles cargo xtask circles

check-tidy:
	@$(STEP) check-tidy cargo xtask tidy

# The limit is for a cold build on two cores, which is most of the time. Most tests wait for something, so that
# twice as many of them as cores run at a time: as many as cores in each of two runs.
test-rust: export STEP_LIMIT_S := 2000
test-rust: export RUST_TEST_THREADS ?= $(shell nproc)
test-rust:
	@$(STEP) --tests test-rust scripts/test-rust.sh

test-doc:
	@$(STEP) --tests test-doc cargo test --workspace --doc

# A node is killed at every fail point. These and the steps below choose tests of the workspace rather than of a
# package: cargo then gives libraries the features that they have in test-rust, and builds none of them again.
FAILPOINTS := --workspace --features rnet-survival/failpoints,rnet-state-tests/failpoints,rnet-ring/failpoints
test-kill:
	@$(STEP) --tests test-kill cargo test $(FAILPOINTS) --test points --test killed_calls --test killed_launch \
	--test handover --test state_points --test marks

# A domain of as many nodes as there may be.
test-full:
	@$(STEP) --tests test-full cargo test --workspace --test room -- --ignored --exact a_full_domain

# Nodes are killed at random, and at fail points in the middle of histories.
test-random: export SURVIVAL_SECONDS ?= 60
test-random:
	@$(STEP) --tests test-random cargo test $(FAILPOINTS) --test random --test histories -- --include-ignored

# The only step that builds Zenoh, but for dist. Hosts are network namespaces, which need root. The build is that of
# build-link: ten hosts whose links are built without optimisation take more than two cores. What needs no Zenoh is
# tested by test-rust.
test-net: export STEP_NEEDS_S := 900
test-net: export STEP_LIMIT_S := 2400
test-net: python-package build-rust build-link
	@$(STEP) setup-net scripts/setup.sh --net
	@$(STEP) --tests test-net cargo test --release --package rnet-net --features zenoh --lib --bins \
	--test conformance --test zenoh --test namespaces --test rnet_link --test ports
	@$(STEP) --tests test-net-page cargo test --workspace --test over_link -- --include-ignored
	@$(STEP) --tests test-net-demo $(PY) -m pytest demo/test_two_hosts.py python/tests/test_state_of.py

# Only these need node, which scripts/node.sh installs where it is missing. What the page does in a real browser, beside a robot that runs.
check-dashboard:
	@$(STEP) check-dashboard scripts/dashboard.sh check

test-dashboard: python-package build-rust
	@$(STEP) setup-dashboard scripts/setup.sh --dashboard
	@$(STEP) test-dashboard scripts/dashboard.sh test

# What Prometheus itself says of the metrics.
test-metrics:
	@$(STEP) setup-metrics scripts/setup.sh --metrics
	@$(STEP) --tests test-metrics cargo test --workspace --test metrics -- --include-ignored

# A client of the protocol that is not ours: packages of node.
test-foxglove:
	@$(STEP) setup-foxglove scripts/setup.sh --foxglove
	@$(STEP) --tests test-foxglove scripts/node.sh cargo test --workspace --test independent -- --include-ignored

# The tests of scribbled and truncated memory once more, where any access out of bounds ends the process.
test-hostile: export CARGO_TARGET_DIR := target/asan
test-hostile:
	@$(STEP) --tests test-hostile scripts/asan.sh test --package rnet \
	--test hostile --test hostile_scribble --test hostile_truncated

test-fuzz:
	@$(STEP) setup-fuzz scripts/setup.sh --fuzz
	@$(STEP) test-fuzz scripts/fuzz.sh

# Only this needs valgrind, so that a build and the demo do without.
test-instructions:
	@$(STEP) setup-valgrind scripts/setup.sh --valgrind
	@$(STEP) test-instructions cargo xtask instructions

test-loom: export RUSTFLAGS := --cfg loom
test-loom: export CARGO_TARGET_DIR := target/loom
test-loom:
	@$(STEP) --tests test-loom cargo test --package rnet-ring --release --test 'loom*'

test-python: python-package build-rust
	@$(STEP) --tests test-python $(PY) -m pytest python/tests

test-demo: python-package build-rust
	@$(STEP) --tests test-demo $(PY) -m pytest demo --ignore=demo/test_two_hosts.py

test-examples: python-package build-rust
	@$(STEP) --tests test-examples $(PY) -m pytest examples

# What is released is built, installed into empty places, and used there: one step, as nothing of it goes without the rest.
test-dist: export STEP_NEEDS_S := 900
test-dist: export STEP_LIMIT_S := 2400
test-dist:
	@$(STEP) test-dist sh -c 'scripts/setup.sh --dist && scripts/dist.sh && scripts/dist-test.sh'

test-bench: export STEP_LIMIT_S := 2400
test-bench: export STEP_NEEDS_S := 1200
test-bench: export CARGO_INCREMENTAL := 0
test-bench: bench-setup build-link
	@$(STEP) --tests test-bench cargo test --manifest-path bench/Cargo.toml --workspace

# As long as test-bench, which sets up the same.
test-bench-python: export STEP_NEEDS_S := 1200
test-bench-python: bench-setup
	@$(STEP) --tests test-bench-python $(BENCH_PY) -m pytest bench/python bench/report
