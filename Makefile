# One command each; `make` alone lists them. Everything runs from .venv, made on first use.
.DEFAULT_GOAL := help
PYTHON ?= python3
BIN := .venv/bin
STUDENTS ?= 30
LEVEL ?= level2

.PHONY: help grade test lint build lab bench bench-gpu lock clean

help:  ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.venv/.ready: requirements.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed; say which: make PYTHON=python3.12")'
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -r requirements.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --editable .
	@touch $@

grade: build  ## build the course, make a sample class, grade it and print the table
	$(BIN)/autograde demo --students $(STUDENTS)
	$(BIN)/autograde grade $(LEVEL) --timeout 10 || test $$? -eq 1  # 1: somebody needs a person

test: .venv/.ready  ## every test: library, doctests, build, grading, notebooks
	$(BIN)/pytest -n auto --dist loadfile --nbval solutions --quiet --override-ini addopts=
	$(BIN)/pytest -n auto --dist worksteal --cov --cov-report=term --cov-fail-under=95

lint: .venv/.ready  ## ruff and mypy --strict
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

build: build/.ready  ## masters -> notebooks/ and solutions/, if anything they depend on has changed

build/.ready: .venv/.ready $(wildcard autograde/*.py autograde/source/*.py course_lib/*.py course_lib/*/*.*)
	$(BIN)/autograde build
	@touch $@

lab: .venv/.ready  ## open the course in JupyterLab
	$(BIN)/jupyter lab --notebook-dir=notebooks

bench: build  ## speed, as ratios inside one run, an hour; BENCH="stock scale" for some
	$(BIN)/python tests/bench $(BENCH)

bench-gpu: .venv/.ready  ## the same for course_lib on a CUDA device
	$(BIN)/python tests/bench gpu

lock: .venv/.ready  ## pin what is installed now
	$(BIN)/pip freeze --exclude-editable | sed 's/+cpu//' > requirements.lock

clean:  ## forget the virtual environment and the sample class
	rm -rf .venv classroom build
