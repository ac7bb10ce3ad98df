# Two commands for a new user: `make demo` and `make test`. One for a contributor: `make check`.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check

.PHONY: help demo test test-heavy check lint types docs clean

help:
	@echo "make demo   see a language model falter (fetches what it needs, then about a minute)"
	@echo "make test   run the tests"
	@echo "make test-heavy  the tests of clients and tasks that need large libraries (hf, lm-eval, inspect, ray)"
	@echo "make docs   build the documentation as pages with search, in build/docs"
	@echo "make check  lint, types, tests (the documents are tested too); .ci/run adds a build without sources and test-heavy"

demo: $(VENV)/.ready
	$(BIN)/falter models pull smollm2
	$(BIN)/falter demo

test: $(VENV)/.ready-dev
	$(BIN)/falter models pull smollm2
	$(BIN)/falter models pull minilm
	@if ! command -v chromium chromium-browser google-chrome >/dev/null; then \
	  echo "no Chromium on this machine: the tests of pages in a browser are left out (CI runs them)"; \
	  export FALTER_NO_BROWSER=1; \
	fi; \
	if ! command -v pdflatex >/dev/null; then \
	  echo "no pdflatex on this machine: the tests that compile LaTeX are left out (CI runs them)"; \
	  export FALTER_NO_TEX=1; \
	fi; \
	$(BIN)/python -m pytest -n 2 --dist worksteal

test-heavy: $(VENV)-heavy/.ready
	$(VENV)-heavy/bin/falter models pull smollm2
	HF_HUB_OFFLINE=1 $(VENV)-heavy/bin/python -m pytest tests/heavy

check: lint types test

lint: $(VENV)/.ready-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.ready-dev
	$(BIN)/mypy

docs: $(VENV)/.ready-docs
	$(BIN)/python -m sphinx -W --keep-going -q docs build/docs
	@! grep -rlE '<(script|img|iframe)[^>]* src="https?:|<link[^>]* href="https?:' build/docs --include='*.html' \
	  || { echo "these pages load something from another host"; exit 1; }
	@echo "build/docs/index.html"

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "falter needs Python 3.11 or newer; name one with: make PYTHON=python3.12 …"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.ready: $(VENV)/bin/python pyproject.toml constraints.txt
	$(PIP) install --quiet --constraint constraints.txt --editable '.[local,parquet]'
	@touch $@

$(VENV)/.ready-dev: $(VENV)/.ready
	$(PIP) install --quiet --constraint constraints.txt --editable '.[local,parquet,embed,stats,dev]'
	@touch $@

$(VENV)/.ready-docs: $(VENV)/bin/python pyproject.toml constraints.txt
	$(PIP) install --quiet --constraint constraints.txt --editable '.[docs]'
	@touch $@

$(VENV)-heavy/.ready: pyproject.toml constraints-heavy.txt
	$(PYTHON) -m venv $(VENV)-heavy
	$(VENV)-heavy/bin/python -m pip --disable-pip-version-check install --quiet --no-compile \
	  --constraint constraints-heavy.txt --editable '.[hf,lm-eval,inspect,parquet,ray]' pytest hypothesis
	@touch $@

clean:
	rm -rf build $(VENV) $(VENV)-heavy .pytest_cache .mypy_cache .ruff_cache .hypothesis
