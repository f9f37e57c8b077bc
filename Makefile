# robot-net. `make` lists the targets; each command can also be run by hand as it stands here.

SHELL := /bin/bash
.DEFAULT_GOAL := help
.NOTPARALLEL:
MAKEFLAGS += --no-print-directory

STEP := scripts/step.sh
PY := $(CURDIR)/.venv/bin/python
export DEMO_SECONDS ?= 20
export SOAK_SECONDS ?= 60

# In the order of the run. `make test` goes on after a failure and shows all of them at the end.
CHECKS := check-fmt check-clippy check-deps check-tidy
TESTS := test-rust test-doc test-loom test-python test-demo test-examples

.PHONY: help demo test check build bench soak clean setup build-rust python-package \
	$(CHECKS) $(TESTS)

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' Makefile

demo: build ## run a robot of ten processes for DEMO_SECONDS (default 20); no set-up needed
	@$(PY) demo/run.py

test: ## check, then every test: Rust, docs, loom, Python, demo, examples
	@$(STEP) --start
	@$(MAKE) --keep-going check setup python-package $(TESTS); code=$$?; \
	$(STEP) --summary; exit $$code

check: $(CHECKS) ## formatting, clippy without warnings, the map of crates, tidiness

build: setup build-rust python-package ## the release build: libraries, `rnet`, the Python package

bench: ## benchmarks of rnet alone; the comparison with other systems arrives with issue 02
	@ls crates/rnet/benches/*.rs >/dev/null 2>&1 || \
	{ echo "bench: crates/rnet has no benchmarks yet" >&2; exit 1; }
	@cargo bench --package rnet --benches

soak: ## the tests named *kill* and *soak*, for SOAK_SECONDS (default 60) each
	@echo "soak: SOAK_SECONDS=$(SOAK_SECONDS)"
	@STEP_LIMIT_S=$$((SOAK_SECONDS * 20 + 900)) $(STEP) --tests soak \
	cargo test --release --workspace --tests -- --include-ignored --nocapture kill soak

clean: ## remove target/ and .venv/
	cargo clean
	rm -rf .venv

setup: ## tools and Python packages in .venv; part of test, build and demo
	@$(STEP) setup scripts/setup.sh

build-rust:
	@$(STEP) build-rust cargo build --release --workspace

python-package: setup
	@$(STEP) python-package env --chdir=python --unset=CONDA_PREFIX \
	VIRTUAL_ENV=$(CURDIR)/.venv $(CURDIR)/.venv/bin/maturin develop --release

check-fmt:
	@$(STEP) check-fmt cargo fmt --all --check -- --color never

check-clippy:
	@$(STEP) check-clippy cargo clippy --workspace --all-targets -- -D warnings

check-deps:
	@$(STEP) check-deps cargo xtask deps

check-tidy:
	@$(STEP) check-tidy cargo xtask tidy

test-rust:
	@$(STEP) --tests test-rust cargo test --workspace --lib --bins --tests --examples

test-doc:
	@$(STEP) --tests test-doc cargo test --workspace --doc

test-loom: export RUSTFLAGS := --cfg loom
test-loom: export CARGO_TARGET_DIR := target/loom
test-loom:
	@$(STEP) --tests test-loom cargo test --package rnet-ring --release --test 'loom*'

test-python: python-package
	@$(STEP) --tests test-python $(PY) -m pytest python/tests

test-demo: python-package build-rust
	@$(STEP) --tests test-demo $(PY) -m pytest demo

test-examples: python-package
	@$(STEP) --tests test-examples $(PY) -m pytest examples
