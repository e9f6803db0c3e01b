# Each target sets up all it needs on a fresh machine that has Python 3.11 and make.
# Another interpreter: make test PYTHON=/path/to/python3.11

PYTHON ?= python3.11
BIN := .venv/bin
READY := .venv/ready
BACKENDS := $(patsubst %/,%,$(sort $(dir $(wildcard schemas/*/caffe.proto schemas/*/opset.json schemas/*/mapping.yaml))))

.PHONY: demo test bench generate check
.DELETE_ON_ERROR:

demo: $(READY)
	$(BIN)/python -m caffeforge.runtime.demo

test: $(READY)
	$(BIN)/python -m pytest -n auto --maxprocesses 4 --dist worksteal

bench: $(READY)
	$(BIN)/python tests/benchmarks/run.py

# Writes generated/ anew from schemas/.
generate: $(READY)
	$(BIN)/gen-backend $(BACKENDS)

# Formatting, lint, types, and that generated/ is what the generator writes today.
check: $(READY)
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/gen-backend --check $(BACKENDS)

# torch comes first and alone: its release is chosen by the constraints, never by what needs it.
$(READY): pyproject.toml tests/constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet -c tests/constraints.txt torch torchvision
	$(BIN)/python -m pip install --quiet -c tests/constraints.txt -e '.[test,dev]'
	touch $@
