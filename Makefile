# The front door. `make help` lists the targets; each does its own set-up, and no work twice.

SHELL := /bin/bash
.DEFAULT_GOAL := help

PRESET ?= release
PREFIX ?= $(HOME)/.local
ONLY ?=
JOBS ?= $(shell nproc)

# A compiler that is named gets a folder of its own, so that switching back rebuilds nothing.
ifneq ($(origin CXX),default)
  export CXX
  SUFFIX := $(notdir $(CXX))-
  COMPILER := -DCMAKE_CXX_COMPILER=$(CXX)
endif
BUILD := build$(if $(SUFFIX)$(filter-out release,$(PRESET)),/$(SUFFIX)$(PRESET))

# build/bin, which every page names, is that of the default build (build), or else a link to that of the last build.
OWN_BIN = if [ $(BUILD) = build ] && [ -L build/bin ]; then rm build/bin; fi
LINK_BIN = $(if $(filter-out build %asan %tsan,$(BUILD)),\
  if [ ! -e build/bin ] || [ -L build/bin ]; then ln -sfn $(BUILD:build/%=%)/bin build/bin; \
  else $(if $(SUFFIX),echo "the programs are in $(BUILD)/bin: build/bin is that of the default compiler",:); fi,:)

# What set-up found. Read in a subshell: as variables of the recipe they would be inputs of the next set-up.
SETUP := build/setup.env
READ_SETUP = python=$$(. ./$(SETUP); echo "$$PYTHON"); torch=$$(. ./$(SETUP); echo "$$TORCH_DIR")

# The tsan preset builds what needs no torch.
TORCH_OPTION = $(if $(filter tsan,$(PRESET)),,-DTANDEM_TORCH="$$torch")

.PHONY: help setup configure build demo test soak bench check format asan tsan defects install clean

help:  ## list the targets
	@echo "usage: make TARGET"; echo
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## (.*)/\1\t\2/' | expand -t 12 | sed 's/^/  /'
	@echo; echo "variables: PRESET=release|dev|debug  CXX=g++-11  TORCH_DIR=folder  PYTHON=python3  PREFIX=folder  ONLY=name  JOBS=n"

setup:  ## install what is missing: Debian packages, and torch in .venv unless there is one
	@tools/setup.sh

configure: setup
	@$(OWN_BIN)
	@if [ ! -e $(BUILD)/build.ninja ] || [ $(SETUP) -nt $(BUILD)/build.ninja ]; then \
	  mkdir -p $(BUILD); $(READ_SETUP); \
	  cmake --preset $(PRESET) -B $(BUILD) $(COMPILER) $(TORCH_OPTION) -DPython3_EXECUTABLE="$$python" --log-level=NOTICE \
	    > $(BUILD)/configure.log 2>&1 || { cat $(BUILD)/configure.log; exit 1; }; \
	  touch $(BUILD)/build.ninja; \
	fi

build: configure  ## build everything (PRESET=dev: warnings are errors; PRESET=debug: for a debugger; CXX=g++-11: another compiler)
	@cmake --build $(BUILD) --parallel $(JOBS)
	@$(LINK_BIN)

demo: configure  ## two ranks learn to summarize dialogues, are scored and write summaries: in runs/
	@cmake --build $(BUILD) --parallel $(JOBS) --target tandem tandem-summarize
	@$(LINK_BIN)
	@$(BUILD)/bin/tandem summarize train --preset demo --nproc 2 --device cpu
	@$(BUILD)/bin/tandem summarize evaluate --from runs/latest --nproc 2 --device cpu
	@$(BUILD)/bin/tandem summarize predict --from runs/latest --nproc 2 --device cpu --output runs/latest/submission.csv
	@echo "next      $(BUILD)/bin/tandem summarize train --preset small --train train.csv    (your own, with columns dialogue and summary; docs/summarize.md)"

test: build  ## run all tests (ONLY=regex: some); what could not run is counted apart
	@$(READ_SETUP); "$$python" tools/run_tests.py $(BUILD) --jobs $(JOBS) $(if $(ONLY),--only '$(ONLY)')

soak: build  ## run the long versions of the randomised tests
	@$(READ_SETUP); TANDEM_SOAK=1 "$$python" tools/run_tests.py $(BUILD) --jobs $(JOBS) --label soak

bench: build  ## measure against peers (ONLY=name: one); rows go to bench/results/
	@cmake --build $(BUILD) --parallel $(JOBS) --target benches
	@$(READ_SETUP); "$$python" bench/run.py $(BUILD) $(ONLY)

check:  ## layers, style, format and lint
	@tools/setup.sh check
	@$(MAKE) --no-print-directory build PRESET=dev
	@cmake --build build/dev --parallel $(JOBS) --target benches
	@$(READ_SETUP); "$$python" tools/check.py build/dev

format:  ## lay out the C++ files by .clang-format
	@tools/setup.sh check
	@git ls-files -co --exclude-standard '*.cpp' '*.h' | xargs clang-format -i

asan:  ## all tests under AddressSanitizer and UndefinedBehaviorSanitizer
	@$(MAKE) --no-print-directory test PRESET=asan

tsan:  ## the tests of the modules without torch under ThreadSanitizer
	@$(MAKE) --no-print-directory test PRESET=tsan

defects: build  ## apply each patch of tests/defects, see the test it names turn red, undo it
	@$(READ_SETUP); "$$python" tests/defects/run.py $(BUILD)

install: build  ## install the program and the library (PREFIX=folder)
	@cmake --install $(BUILD) --prefix "$(PREFIX)" > /dev/null && echo "installed into $(PREFIX)"

clean:  ## remove build/ (.venv stays)
	@rm -rf build
