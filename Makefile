# The menu: `make help`. Every target works on a fresh machine and is quick the second time.
#
# Machine needed: Rust >= 1.88 (rust-version in Cargo.toml), CPython >= 3.11 with venv, gcc, make. The rest is
# installed into .venv (and nasm by apt-get, when that is allowed).

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := check
MAKEFLAGS += --no-print-directory

PYTHON ?= $(shell sh tools/find_python.sh)
VENV := .venv
BIN := $(VENV)/bin
# cmake and maturin come from .venv; rustup's directory is not on every PATH.
export PATH := $(CURDIR)/$(BIN):$(PATH):$(HOME)/.cargo/bin
export PIP_DISABLE_PIP_VERSION_CHECK := 1
unexport PYTHONPATH PYTHONHOME CONDA_PREFIX
export VIRTUAL_ENV := $(CURDIR)/$(VENV)

# SIMD in libjpeg-turbo is required as soon as it is possible, so that it is never lost unseen.
# Evaluated when used: setup may have installed nasm by then.
SIMD = $(shell sh tools/simd_feature.sh)
CORE = --locked --no-default-features --features "$(SIMD)"
EXTENSION = --locked --features "abi3 $(SIMD)"
TEST = $(BIN)/python tools/test.py --features "$(SIMD)"
NEEDS = "torch>=2.6" numpy psutil
# uv takes a third of pip's time. It does not read pip's settings: where it finds no index, pip does.
install = $(BIN)/uv pip install -q $(1) || $(BIN)/python -m pip install -q $(1)
# Without a group maturin would install `dev`, which is more than the demo needs.
DEVELOP = $(BIN)/maturin develop --group build
LOUD = @[ -n "$(SIMD)" ] || sh tools/warn_without_simd.sh

SOURCES := $(shell find src -type f) build.rs Cargo.toml Cargo.lock rust-toolchain.toml
STAMPS := $(VENV)/.stamps

.PHONY: check setup build release demo test test-posix lint fix bench docs docs-serve size audit \
        faults fuzz sanitize soak soak-proof monitor-proof test-wheels clean help always

check: lint ## Lint, then the fast tests: the default
	@$(TEST) core python-fast

setup: $(STAMPS)/setup ## Make .venv and install every tool

$(STAMPS)/venv: pyproject.toml tools/native_tools.sh
	@sh tools/native_tools.sh
	@[ -n "$(PYTHON)" ]
	@[ -x $(BIN)/python ] || $(PYTHON) -m venv $(VENV)
	@rm -rf $(STAMPS)
	$(BIN)/python -m pip install -q --upgrade 'pip>=25.1' uv
	@mkdir -p $(STAMPS) && touch $@

$(STAMPS)/setup: $(STAMPS)/venv
	$(call install,--group dev $(NEEDS))
	@touch $@

build: $(STAMPS)/debug ## Build the extension into .venv, with debug assertions
	$(LOUD)

release: $(STAMPS)/release ## Build the extension into .venv, optimised
	$(LOUD)

# Rewritten only when the answer changes: a nasm installed later triggers a build.
$(STAMPS)/simd: $(STAMPS)/venv always
	@echo "$(SIMD)" | cmp -s - $@ || echo "$(SIMD)" > $@

# One extension module lies in python/fastload; each build replaces the other.
$(STAMPS)/debug: $(SOURCES) $(STAMPS)/setup $(STAMPS)/simd
	$(DEVELOP) $(EXTENSION)
	@rm -f $(STAMPS)/release $(STAMPS)/demo && touch $@

$(STAMPS)/release: $(SOURCES) $(STAMPS)/setup $(STAMPS)/simd
	$(DEVELOP) --release $(EXTENSION)
	@rm -f $(STAMPS)/debug $(STAMPS)/demo && touch $@

# Installs and builds no more than it needs: minutes less on a fresh machine. A release that is there serves, too.
demo: $(if $(wildcard $(STAMPS)/release),release,$(STAMPS)/demo) ## Train on photographs with torch's loader and with fastload; table and picture
	$(LOUD)
	@$(BIN)/python -m demo

$(STAMPS)/demo: $(SOURCES) $(STAMPS)/venv $(STAMPS)/simd
	$(call install,--group build --group demo $(NEEDS))
	$(DEVELOP) --profile demo $(EXTENSION)
	@rm -f $(STAMPS)/debug $(STAMPS)/release && touch $@

# Reports are read by a browser in tests; those are skipped where none can be installed.
$(STAMPS)/browser: $(STAMPS)/setup tools/browser.sh
	@sh tools/browser.sh
	@touch $@

# The debug build is tested: overflow checks and debug assertions find what an optimised build
# hides, and it takes a third of the time. `make test-wheels` tests the optimised one.
test: build $(STAMPS)/browser ## All tests: Rust, loom, Python (repeated at degenerate sizes)
	@$(TEST) core loom python alone

# The extension of this build is no other target's.
test-posix: $(STAMPS)/setup $(STAMPS)/simd ## The tests of worker processes, with macOS's memory and sockets
	@rm -f $(STAMPS)/debug $(STAMPS)/release $(STAMPS)/demo
	$(DEVELOP) --locked --features "abi3 posix_shm $(SIMD)"
	@$(BIN)/python tools/test.py --features "$(SIMD) posix_shm" core processes

lint: build ## Formatting, clippy, ruff, mypy, the stub against the binary
	@sh tools/rust_component.sh fmt rustfmt
	@sh tools/rust_component.sh clippy clippy
	cargo fmt --check
	cargo check -q $(CORE)
	cargo clippy -q --all-targets $(CORE) -- -D warnings
	cargo clippy -q --all-targets $(CORE) --features posix_shm -- -D warnings
	cargo clippy -q --all-targets $(EXTENSION) -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc -q --no-deps $(CORE)
	$(BIN)/ruff check -q
	$(BIN)/ruff format -q --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m mypy.stubtest --allowlist tools/stubtest.txt fastload._lib
	@$(BIN)/python tools/size.py --quiet

fix: $(STAMPS)/setup ## Format, and apply what linters can repair
	cargo fmt
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

bench: release ## Every bench, rivals beside us, interleaved
	cargo bench $(CORE)
	@for file in benches/[!_]*.py; do echo "== $$file"; $(BIN)/python $$file; done

docs: $(STAMPS)/docs ## Build the documentation into site/, warnings are errors
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

docs-serve: $(STAMPS)/docs ## Serve the documentation while it is written
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs serve

$(STAMPS)/docs: $(STAMPS)/setup
	$(call install,--group docs)
	@touch $@

size: ## Lines per file; asks about files above 400
	@$(or $(wildcard $(BIN)/python),$(PYTHON)) tools/size.py

audit: ## Licences, advisories, sources of the crates (installs cargo-deny when missing)
	command -v cargo-deny >/dev/null || cargo install --locked cargo-deny
	cargo deny check

# TARGET is one or more of the files in fuzz/fuzz_targets, or `all`. Needs rustup, and clang for coverage of C. What is
# found lies in fuzz/artifacts, what was learnt in fuzz/corpus.
TARGET ?= jpeg
SECONDS ?= 600
fuzz: build ## Feed a parser damaged files: make fuzz TARGET=npy SECONDS=600
	command -v cargo-fuzz >/dev/null || cargo install --locked cargo-fuzz
	cargo +nightly miri --version >/dev/null || rustup toolchain install nightly --profile minimal \
	    --component miri,rust-src
	@nice $(BIN)/python fuzz/run.py $(TARGET) --seconds $(SECONDS)

# ONLY is one or more of loom, miri, tsan, asan, python. The last four need a nightly toolchain; the last three also
# clang: what is missing is said.
ONLY ?=
sanitize: $(STAMPS)/setup ## Tests under sanitizers, Miri and loom: make sanitize ONLY=tsan
	@$(BIN)/python tools/sanitize.py --features "$(SIMD)" $(ONLY)

# A failure prints its seed and its round: make soak SEED=1 ARGUMENTS="--round 7"
MINUTES ?= 10
soak: release ## Every lane with shuffled settings beside torch's loader, for leaks too: make soak MINUTES=120
	@$(BIN)/python -m tools.soak --minutes $(MINUTES) $(if $(SEED),--seed $(SEED)) $(ARGUMENTS)

soak-proof: $(STAMPS)/setup ## Plant bugs, and see the soak find each
	@$(BIN)/python -m tools.soak --proof --minutes 10 --hang 45 --seed 1

monitor-proof: build ## Plant troubles in recorded and in real runs, and print what the monitor says of each
	@$(BIN)/python -m tools.monitor_proof
	@$(BIN)/python -m tools.monitor_proof --real

# Linux: the calls of a process are let fail by another one. make faults ARGUMENTS="--lane npz --fault read"
faults: build ## Each system call fails in turn, files change, limits bite: in every lane
	@$(BIN)/python -m tools.faults $(ARGUMENTS)

test-wheels: $(STAMPS)/setup ## The wheel and the sdist in fresh environments, CPython 3.11 to 3.13
	@$(BIN)/python tools/test_wheels.py --features "abi3 $(SIMD)"

clean: ## Remove what was built; .venv stays
	cargo clean
	rm -rf dist site .pytest_cache .mypy_cache .ruff_cache .hypothesis $(STAMPS)/debug $(STAMPS)/release $(STAMPS)/demo
	rm -f python/fastload/_lib*.so

help: ## This list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
