# Dissent's commands; `make help` lists them.

BUDGET ?= 5m
FINDINGS ?= findings
HUNT_ARGS ?=
TEST_TARGETS ?= *
PYTHON ?= $(shell command -v python3.11 || command -v python3)

VENV := .venv
BIN := $(VENV)/bin
# an environment keeps the set of requirements that it was made with, unless told otherwise
GPU ?= $(if $(wildcard $(VENV)/.installed-gpu),1)
ifneq ($(filter-out 0,$(GPU)),)
REQUIREMENTS := harness/execute/requirements/gpu.txt
STAMP := $(VENV)/.installed-gpu
OTHER := $(VENV)/.installed-cpu
else
REQUIREMENTS := requirements.txt
STAMP := $(VENV)/.installed-cpu
OTHER := $(VENV)/.installed-gpu
endif

PYTEST = $(BIN)/python -m pytest -n auto --findings $(FINDINGS) --targets '$(TEST_TARGETS)'

.DEFAULT_GOAL := help
.PHONY: help setup hunt test test-all lint bench

help: ## list the commands
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1\t\2/p' Makefile | expand -t 14
	@echo 'variables: BUDGET=$(BUDGET) FINDINGS=$(FINDINGS) HUNT_ARGS="..." GPU=1 (CUDA builds)'

setup: $(STAMP) ## create .venv and install the pinned requirements

# An environment that is there (or that .venv links to) is completed, never replaced.
$(STAMP): $(REQUIREMENTS) harness/execute/requirements/common.txt
	@if [ -e $(OTHER) ]; then echo "$(VENV) holds the other set of requirements ($(OTHER)); remove it first" >&2; exit 1; fi
	@if [ -L $(VENV) ] && [ ! -e $(VENV) ]; then echo "$(VENV) is a link to nothing; remove it first" >&2; exit 1; fi
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed" >&2; exit 1; }
	[ -x $(BIN)/pip ] || "$(PYTHON)" -m venv $(VENV)
	@$(BIN)/python -m pip install --disable-pip-version-check --no-input "$$(grep ^uv== harness/execute/requirements/common.txt)" \
		|| echo "uv cannot be had: pip installs, which takes longer" >&2
	$(BIN)/python harness/execute/install.py -r $(REQUIREMENTS)
	@touch $@

hunt: setup ## draw, run and judge random models for BUDGET; findings go to FINDINGS
	$(BIN)/python -m harness hunt --budget $(BUDGET) --findings $(FINDINGS) $(HUNT_ARGS)

# slow tests, and more examples of each campaign, are test-all's
test: setup ## Dissent's own tests and short campaigns on TEST_TARGETS, with a sample of what is slow: 12 minutes
	$(PYTEST) --hypothesis-profile=quick

test-all: setup ## all tests, and campaigns with more examples, as before a change lands: half an hour
	$(PYTEST) --hypothesis-profile=ci

lint: setup ## ruff (rules and format) and pyright
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright --threads 2

bench: setup ## what drawing, judging and running cost
	$(BIN)/python -m harness bench
