# The front door. CMake does the work: build folders are build/<preset>.
PRESET ?= release
PREFIX ?= /usr/local
JOBS ?= $(shell nproc)
BUILD := build/$(PRESET)

.DEFAULT_GOAL := all
.PHONY: all test test-gpu demo install dist bench fuzz sanitize lint format clean help setup configure

all: configure ## build everything (PRESET=release|dev|asan-ubsan|tsan|clang|fuzz, JOBS=N)
	@cmake --build $(BUILD) -j $(JOBS)

test: all ## build, then run every test that needs no GPU
	@ctest --test-dir $(BUILD) -LE '^gpu$$' --no-tests=error --output-on-failure -j $(JOBS)

test-gpu: all ## build, then run the tests that need a GPU
	@ctest --test-dir $(BUILD) -L '^gpu$$' --no-tests=error --output-on-failure

demo: configure ## profile the examples (live with a GPU, else kept captures) into demo/
	@test -x tools/demo || { echo 'make demo: tools/demo is missing from this checkout' >&2; exit 1; }
	@cmake --build $(BUILD) -j $(JOBS) --target $(shell tools/demo --targets)
	@tools/demo $(BUILD)

install: all ## install iket, its library and its header under PREFIX (default /usr/local)
	@cmake --install $(BUILD) --prefix "$(PREFIX:~/%=$(HOME)/%)" --component Unspecified
	@cmake --install $(BUILD) --prefix "$(PREFIX:~/%=$(HOME)/%)" --component device

dist: all ## pack build/dist/iket-<version>-linux-x86_64.tar.gz, which needs glibc alone
	@tools/dist $(BUILD)

bench: all ## run the benchmarks
	@cmake --build $(BUILD) --target bench

fuzz: ## build the fuzzers and run each for SECONDS_EACH seconds (default 30), or all for SECONDS_ALL
	@tools/setup fuzz
	@tools/fuzz

sanitize: setup ## the collector under address, undefined-behaviour and thread sanitizers
	@tools/sanitize

lint: ## check formatting, house rules and clang-tidy
	@tools/setup lint
	@$(MAKE) --no-print-directory configure
	@cmake --build $(BUILD) -j $(JOBS) --target iket_generated
	@tools/lint --tidy $(BUILD)

format: ## format every source in place
	@tools/setup lint
	@tools/lint --fix-format

clean: ## remove the build folders, but not what tools/setup installed
	@rm -rf $(filter-out build/toolchain build/cccl,$(wildcard build/*)) demo

help: ## say what each target does
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup:
	@tools/setup

configure: setup
	@mkdir -p $(BUILD)
	@cmake --preset $(PRESET) >$(BUILD)/configure.log 2>&1 || { cat $(BUILD)/configure.log >&2; exit 1; }
