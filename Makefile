# The two commands of the README. Each sets itself up; nothing has to be installed by hand beyond
# python3 (with venv), git and make.
VENV ?= .venv
PYTHON ?= python3
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

# Tests that start anew each time compile each time, where the environment forbids byte code.
export PYTHONDONTWRITEBYTECODE =

# Integration tests, two at a time; the tests of one group share what it builds.
BESIDE := -n 2

.PHONY: build check test test-long lint unit generated integration integration-long kill test-images bench \
        pictures setup engine clean

setup: $(STAMP)

$(STAMP): pyproject.toml
	PYTHON="$(PYTHON)" sh .ci/venv "$(VENV)"
	touch $@

engine: setup
	$(BIN)/imagegen doctor --fix --matrix cpu

build: engine
	$(BIN)/imagegen build --matrix cpu
	$(BIN)/imagegen validate --matrix cpu

lint: setup
	$(BIN)/ruff check imagegen validate tests benchmarks docs/drawing
	$(BIN)/ruff format --check imagegen validate tests benchmarks docs/drawing
	$(BIN)/mypy
	$(BIN)/vermin --quiet --target=3.6- --no-tips --violations validate

unit: setup
	$(BIN)/pytest -q -n 3 --dist loadfile tests/unit tests/golden

# What is made of the catalog, the matrices and the checks: validate/components.json, validate/CHECKS.md, a table in
# docs/matrices.md, docs/rules.md, the files under tests/golden and the pictures. Read the diff.
generated: setup
	$(BIN)/pytest -q tests/golden --update-golden
	$(BIN)/python docs/drawing

integration: engine
	$(BIN)/pytest -q $(BESIDE) --durations=10 -m "not long" tests/integration

integration-long: engine
	IMAGEGEN_KILLS=5 $(BIN)/pytest -q $(BESIDE) --durations=10 tests/integration

# The long form of the test that kills imagegen and an engine of its own: 25 times each.
kill: engine
	IMAGEGEN_KILLS=25 $(BIN)/pytest -q tests/integration/builder/test_kill.py

# Before a commit: no engine, less than a minute or two.
check: lint unit

# On every submission: a case of everything. All cases: test-long.
test: lint unit integration

test-long: lint unit integration-long

# CUDA images built and measured for real, without a GPU: long, and no part of `test`.
test-images: engine
	$(BIN)/pytest -q tests/images

# Beside hpccm, docker-py, testinfra, container-structure-test (STRUCTURE_TEST may name another one) and
# buildx (BUILDX=/path/to/docker-buildx may name it), where there is one.
# Builds are measured on engines of their own: that takes root, dockerd, 25 GB below /var/tmp (or
# IMAGEGEN_BENCH_FOLDER) and about an hour. `benchmarks/run.py NAME …` measures some and keeps the rest.
bench: engine
	$(BIN)/python -m pip install --quiet --editable '.[bench]'
	$(BIN)/python benchmarks/run.py

# Those of the documentation, from data in this repository; `docs/drawing/record.py` records anew
# what a build and a check show.
pictures: setup
	$(BIN)/python docs/drawing

clean:
	rm -rf $(VENV) out dist
