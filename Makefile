# One command a job; each builds .venv first and needs nothing that was installed by hand.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.stamp

.PHONY: venv demo test test-pure test-comfy lint clean

venv: $(STAMP)

$(STAMP): pyproject.toml requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Lowpeak needs Python 3.11 or newer; set PYTHON=/path/to/python3.11"; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { echo "python3-venv is missing: apt-get install python3-venv"; exit 1; }
	$(BIN)/python -m pip install -q --disable-pip-version-check -U pip
	$(BIN)/python -m pip install -q --disable-pip-version-check -r requirements.lock
	$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps -e .
	$(BIN)/python -m compileall -q engine kernels nodes *.py  # so that the first command is quick too
	@touch $@

demo: venv
	$(BIN)/lowpeak demo

# Two workers with one thread each: tiny tensors lose more to threads than they gain.
test: venv
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n 2 --dist loadfile

test-pure: venv
	$(BIN)/python -m pytest -q tests/pure

test-comfy: venv
	$(BIN)/python -m pytest -q tests/comfy -rs

lint: venv
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --explicit-package-bases engine/planner engine/errors.py engine/units.py \
	  engine/geometry.py engine/request.py engine/events.py engine/report.py

clean:
	rm -rf $(VENV) out build *.egg-info .pytest_cache .mypy_cache .ruff_cache
