# Two commands: `make test` and `make demo`. Each sets up .venv by itself when it is missing, and is quick when it is there.
PYTHON ?= python3
# another interpreter gets an environment of its own: make test PYTHON=python3.13
VENV   := .venv$(if $(filter python3,$(PYTHON)),,-$(notdir $(PYTHON)))
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

# Some containers set this. Without .pyc files every process, and the tests start many, would compile torch, scipy and
# scikit-learn again: 4 to 16 seconds for each.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: test test-all demo lint compile-float32 compile-float64 unit bench docs test-wheel clean

test: $(STAMP)
	$(MAKE) -j 3 lint compile-float32 compile-float64
	$(MAKE) unit

demo: $(STAMP)
	$(BIN)/python examples/demo.py

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# the loops that most tests use, while mypy needs one core only; otherwise both test processes would compile them
compile-float32 compile-float64: $(STAMP)
	$(BIN)/python -m tests.compile_loops $(@:compile-%=%)

# the tests of a file run in one process: they share fixtures, and some of them a cluster (xdist 3.8 does not see the
# groups of --dist loadfile under pytest 9.2)
unit: $(STAMP)
	$(BIN)/python -m pytest -n 2 --dist loadfile -q --durations=20

# with the slow tests: drivers and machines of a Ray cluster that die, and the long notebooks
test-all: lint
	$(BIN)/python -m pytest -n 2 --dist loadfile -q --slow

bench: $(STAMP)
	$(BIN)/python -m benchmarks

# the documentation site, in site/; strict: a broken link or an undocumented public name is an error
docs: $(STAMP)
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[docs]"
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet
	@echo "The site is in site/index.html"

# a wheel and an sdist, installed into an empty environment each and tried there
test-wheel: $(STAMP)
	$(BIN)/python -m pip install --quiet -c constraints.txt build
	$(BIN)/python tests/wheel.py

# --no-compile: Python compiles the modules that are used when they are first imported; pip would compile all of them
$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --no-compile -c constraints.txt -e ".[dev]"
	touch $@

clean:
	rm -rf .venv .venv-* build dist site *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
