# The verbs of this project. `make test` is all that CI runs, and needs cargo, git, a C compiler,
# Node.js with npm, and Python with venv.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# A clean clone can reuse what an earlier one built: CI keeps its build directory outside the clone.
ifeq ($(CI),true)
export CARGO_TARGET_DIR ?= $(HOME)/.cache/adjourn/target
endif

# nextest runs each test in its own process and enforces the time budgets of .config/nextest.toml.
NEXTEST := $(shell cargo nextest --version >/dev/null 2>&1 && echo yes)

.PHONY: help
help: ## Lists the verbs
	@grep -E '^[a-z-]+:.*## ' Makefile | sed -E 's/:.*## /\t/' | column -t -s "$$(printf '\t')"

.PHONY: test
test: fmt-check lint unit doc-test ## Runs everything CI runs

.PHONY: fmt-check
fmt-check:
	cargo fmt --all --check

.PHONY: lint
lint:
	cargo clippy --workspace --all-targets --locked -- -D warnings
# The agent library as it is without features; the workspace always turns them on.
	cargo clippy --package adjourn-agent --all-targets --locked -- -D warnings
# The program as it is released, without what tests turn on in the library.
	cargo check --package adjourn-cli --locked

.PHONY: sdk-clients
sdk-clients: ## Installs the clients that the tests drive adjourn with, into the build directory
	crates/adjourn-cli/tests/sdk/install.sh "$${CARGO_TARGET_DIR:-target}/sdk-clients"

.PHONY: test-editors
test-editors: sdk-clients ## Drives adjourn with clients that people use: acpx, acp-cli, the Python SDK's example
	crates/adjourn-cli/tests/sdk/install.sh "$${CARGO_TARGET_DIR:-target}/sdk-clients" --acp-cli
	cargo clippy -p adjourn-cli --all-targets --features test-acp-cli --locked -- -D warnings
ifeq ($(NEXTEST),yes)
	cargo nextest run -p adjourn-cli --features test-acp-cli --locked clients::
else
	cargo test -p adjourn-cli --features test-acp-cli --locked --test it clients::
endif

.PHONY: unit
unit: sdk-clients
ifeq ($(NEXTEST),yes)
	cargo nextest run --workspace --locked --profile ci
else
	cargo test --workspace --locked --lib --bins --tests
endif

.PHONY: doc-test
doc-test:
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked --quiet
	# As a program gets it that embeds the library: the workspace is documented with what tests see.
	RUSTDOCFLAGS="-D warnings" cargo doc -p adjourn --no-deps --locked --quiet
	cargo test --workspace --doc --locked --quiet

.PHONY: update-expected
update-expected: sdk-clients ## Rewrites expected traces, tables and missing golden files; review the diff
	UPDATE_EXPECT=1 cargo test --workspace --locked --lib --bins --tests

.PHONY: bench
bench: ## Measures, beside the raw figures of this machine; writes target/bench.json and .svg
	mkdir -p "$${CARGO_TARGET_DIR:-target}"
	cargo build --release --locked --quiet -p adjourn-cli
	cargo run --release --locked --quiet -p xtask -- bench $(BENCH)

.PHONY: gen-protocol-artifacts
gen-protocol-artifacts: ## Writes spec/protocol-artifacts/ from the types
	cargo run --locked --quiet -p xtask -- gen-protocol-artifacts

.PHONY: soak
soak: ## Kills, stops and restarts hosts for a while; SOAK="--kills N --minutes N --seed N"
	cargo run --release --locked --quiet -p soak -- $(SOAK)

.PHONY: demo
demo: ## An agent parks, the machine goes quiet, an event wakes it
	cargo run --locked --quiet -p adjourn-cli -- demo

.PHONY: install
install: ## Builds the program and installs it with cargo
	cargo install --locked --path crates/adjourn-cli
