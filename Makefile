# jaxzero: `make train` learns Connect Four by self-play, `make test` runs the tests. Both set themselves up.
#
#   make train ARGS="--budget.minutes 3"     flags for experiments/train.py (ARGS="--help" lists them)
#   make play  ARGS="--browser"              flags for experiments/play.py
#   make test  ARGS="-k search"              flags for pytest
#   make count ARGS="--list"                 flags for experiments/aot_kernel_counts.py
#   make train PYTHON=/opt/python3.12/bin/python3
#   make test  CONSTRAINTS=                  the newest versions, not those of constraints.txt; in a clone that has no .venv/
#   make train DEVICE=                       CPU packages even where there is an NVIDIA GPU (or DEVICE=cuda12, cuda13)

SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help train play bench bench-gpu count test test-slow slow-tests test-all test-lowest check-wheel docs notebooks notebooks-colab lint format clean

VENV    := .venv
COLAB   := .cache/colab
ABSENT  := .cache/compilers
LOWEST  := .cache/lowest
WHEEL   := .cache/wheel
BIN     := $(VENV)/bin
ARGS    ?=
CONSTRAINTS ?= -c constraints.txt
WORKERS ?= 2

# The interpreter: 3.11 first, because constraints.txt was tested there. Each is run, not only found: a pyenv shim for
# a version that is not installed exists and fails.
PYTHON  ?= $(shell for p in python3.11 python3.12 python3.13 python3.14 python3 python; do \
               $$p -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)

# The accelerator: where an NVIDIA driver answers, jax comes with the CUDA packages that the driver supports.
CUDA     = $(shell nvidia-smi 2>/dev/null | sed -n 's/.*CUDA[A-Z ]*Version: *\([0-9]*\).*/\1/p')
DEVICE  ?= $(if $(filter 12,$(CUDA)),cuda12)$(if $(filter 13 14 15,$(CUDA)),cuda13)
comma   := ,
extras   = $(1)$(if $(DEVICE),$(comma)$(DEVICE))

PYTEST  := $(BIN)/python -m pytest

# Says what is missing where there is no Python that will do.
define need_python
$(or $(PYTHON),false) -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	    echo "jaxzero needs Python 3.11 or newer with its venv module; $(if $(PYTHON),'$(PYTHON)' is not that,none was found)." >&2; \
	    echo "Install one: 'apt install python3.11 python3.11-venv', 'brew install python@3.12', or from https://www.python.org." >&2; \
	    echo "If it is there under another name: make $(or $(firstword $(MAKECMDGOALS)),train) PYTHON=/path/to/python3" >&2; exit 1; }
endef

help:  ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-17s%s\n", $$1, $$2 }' $(MAKEFILE_LIST)

train: $(VENV)/.train  ## learn Connect Four by self-play on whatever device is there
	@$(BIN)/python experiments/train.py $(ARGS)

play: $(VENV)/.train  ## play Connect Four against the shipped network
	@$(BIN)/python experiments/play.py --game connect_four $(ARGS)

bench: $(VENV)/.dev  ## measure the search, side by side with mctx
	@$(BIN)/python experiments/benchmark.py $(ARGS)

bench-gpu: $(VENV)/.dev  ## measure what needs an accelerator, in ten minutes
	@$(BIN)/python experiments/bench_gpu.py $(ARGS)

count: $(ABSENT)/.stamp  ## count kernels and copies in the compiled search for GPUs and TPUs (ahead of time), beside mctx
	@$(ABSENT)/bin/python experiments/aot_kernel_counts.py $(ARGS)

test: $(VENV)/.dev  ## the fast tests and the examples in docstrings
	$(PYTEST) -n $(WORKERS) --dist worksteal -m "not slow" $(ARGS)

test-slow: $(VENV)/.dev  ## the slow tests, but for the exhaustive ones
	$(PYTEST) -n $(WORKERS) --dist worksteal -m "slow and not exhaustive" $(ARGS)

# While it measures, the list is empty, or the tests on it would be left out. The old one comes back unless all passed.
slow-tests: $(VENV)/.dev  ## measure which tests are slow, and write their list: eleven minutes, on a quiet machine
	@set -o pipefail; mkdir -p .cache && cp tests/slow_tests.txt .cache/slow_tests.txt || exit; \
	trap 'mv .cache/slow_tests.txt tests/slow_tests.txt' EXIT; : > tests/slow_tests.txt; \
	JAX_COMPILATION_CACHE_DIR= $(PYTEST) -n $(WORKERS) -m "not slow" --durations=0 --durations-min=1.0 \
	    | tee .cache/durations || { echo "Not all tests passed: tests/slow_tests.txt stays as it was." >&2; exit 1; }; \
	sed -n 's/^[0-9.]*s call  *//p' .cache/durations | sort > .cache/slow_tests.txt

test-all: $(VENV)/.dev  ## every test, by the code generators that users have
	XLA_FLAGS= $(PYTEST) -n $(WORKERS) --dist worksteal $(ARGS)

test-lowest: $(LOWEST)/.stamp  ## the fast tests on the lowest versions that pyproject.toml allows, in an environment of their own
	$(LOWEST)/bin/python -m pytest -n $(WORKERS) --dist worksteal -m "not slow" $(ARGS)

check-wheel:  ## build sdist and wheel, check them, install the wheel into an empty environment, run the commands (PYTHON=python3.13)
	@$(need_python)
	rm -rf $(WHEEL) && $(PYTHON) -m venv $(WHEEL)/tools && $(PYTHON) -m venv $(WHEEL)/env
	$(WHEEL)/tools/bin/python -m pip install -q --disable-pip-version-check build twine $(CONSTRAINTS)
	$(WHEEL)/tools/bin/python -m build --outdir $(WHEEL)/dist .
	$(WHEEL)/tools/bin/python -m twine check --strict $(WHEEL)/dist/*
	$(WHEEL)/env/bin/python -m pip install -q --disable-pip-version-check "$$(ls $(WHEEL)/dist/*.whl)[train]" $(CONSTRAINTS)
	cd $(WHEEL) && env/bin/jaxzero doctor && env/bin/jaxzero train --game tic_tac_toe --budget.minutes 1 --evaluate.games 20
	cd $(WHEEL) && echo quit | env/bin/jaxzero play --game tic_tac_toe && printf 'genmove b\nquit\n' | env/bin/jaxzero gtp --size 5

docs: $(VENV)/.docs  ## build the documentation in .cache/site/ and check it (the notebooks run once: a quarter of an hour)
	@$(BIN)/python docs/executed.py
	@PATH="$(CURDIR)/$(BIN):$$PATH" NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict -f docs/mkdocs.yml
	@$(BIN)/python docs/check_site.py .cache/site

notebooks: $(VENV)/.train  ## open the notebooks in Jupyter
	@$(BIN)/python -m pip install -q --disable-pip-version-check --no-input jupyterlab -e ".[mctx]" $(CONSTRAINTS)
	@$(BIN)/python -m jupyterlab notebooks $(ARGS)

notebooks-colab:  ## the notebooks on the versions that Colab has, in an environment of its own (python3.13)
	@test -x $(COLAB)/bin/pip || python3.13 -m venv $(COLAB)
	@$(COLAB)/bin/python -m pip install -q --disable-pip-version-check --no-input -e ".[train,mctx]" \
	    hypothesis ipykernel nbclient nbformat pytest -c notebooks/colab.txt
	$(COLAB)/bin/python -m pytest tests/test_notebooks.py $(ARGS)

lint: $(VENV)/.dev  ## style, formatting and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright --pythonpath $(BIN)/python

format: $(VENV)/.dev  ## let ruff fix style and formatting
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:  ## remove the environment and the tools' caches (runs/ stays)
	rm -rf $(VENV) .cache .hypothesis .pytest_cache .ruff_cache

# Set-up, done once: a stamp per set of packages, renewed when the requirements change.
$(VENV)/.train: GROUP = $(call extras,train)
$(VENV)/.dev:   GROUP = $(call extras,dev)
$(VENV)/.docs:  GROUP = $(call extras,docs)
$(VENV)/.train $(VENV)/.dev $(VENV)/.docs: pyproject.toml constraints.txt | $(BIN)/pip
	@echo "Installing jaxzero[$(GROUP)] into $(VENV)/, once: about a minute, longer on a slow connection."
	@$(BIN)/python -m pip install -q --disable-pip-version-check --no-input -e ".[$(GROUP)]" $(CONSTRAINTS)
	@touch $@

# The lowest versions, beside tools of today.
$(LOWEST)/.stamp: pyproject.toml .ci/lowest.py
	@$(need_python)
	@$(PYTHON) -m venv --clear $(LOWEST)
	@$(PYTHON) .ci/lowest.py > $(LOWEST)/constraints.txt
	@$(LOWEST)/bin/python -m pip install -q --disable-pip-version-check --no-input -e ".[train,mctx,gymnax,gymnasium]" \
	    hypothesis ipykernel nbclient nbformat playwright pytest pytest-xdist safetensors -c $(LOWEST)/constraints.txt
	@touch $@

# Compilers for devices that are not here, in an environment of their own: in the other jax would look for the devices.
$(ABSENT)/.stamp: pyproject.toml constraints.txt | $(BIN)/pip
	@echo "Installing XLA's compilers for NVIDIA GPUs and TPUs into $(ABSENT)/, once: gigabytes, minutes."
	@test -x $(ABSENT)/bin/pip || $(BIN)/python -m venv $(ABSENT)
	@$(ABSENT)/bin/python -m pip install -q --disable-pip-version-check --no-input -e ".[mctx,cuda12]" libtpu tyro \
	    -c constraints.txt
	@touch $@

$(BIN)/pip:
	@$(need_python)
	@echo "Making a virtual environment in $(VENV)/ with $$($(PYTHON) --version) ($(PYTHON))"
	@$(PYTHON) -m venv $(VENV)
