# One command a job; each builds .venv first and needs nothing that was installed by hand.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.stamp

FRONTEND := comfyui-frontend-package==1.49.6
FRONTENDS := 1.49.6 1.58.1
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q

.PHONY: venv demo test test-pure test-comfy test-browser test-frontends frontend browser web lint clean

venv: $(STAMP)

$(STAMP): pyproject.toml requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Lowpeak needs Python 3.11 or newer; set PYTHON=/path/to/python3.11"; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { echo "python3-venv is missing: apt-get install python3-venv"; exit 1; }
	$(BIN)/python -m pip install -q --disable-pip-version-check -U pip
	$(BIN)/python -m pip install -q --no-compile --disable-pip-version-check -r requirements.lock
	$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps -e .
	$(BIN)/python -m compileall -q engine kernels nodes *.py  # so that the first command is quick too
	@touch $@

demo: venv
	$(BIN)/lowpeak demo

# Two workers with one thread each: tiny tensors lose more to threads than they gain. The panel in a
# browser comes after them, alone: a browser beside a second worker would only wait longer.
test: venv frontend
	@failed=0; \
	  $(PYTEST) -n 2 --dist loadfile --ignore=tests/browser || failed=1; \
	  $(PYTEST) tests/browser || failed=1; \
	  exit $$failed

test-pure: venv
	$(BIN)/python -m pytest -q tests/pure

test-comfy: venv
	$(BIN)/python -m pytest -q tests/comfy tests/browser/test_real_comfyui.py -rs

test-browser: browser
	$(PYTEST) tests/browser

# The panel in the oldest and the newest frontend that it is made for.
test-frontends: browser
	@for version in $(FRONTENDS); do ls build/frontends/$$version/*.whl >/dev/null 2>&1 || \
	  $(BIN)/python -m pip download -q --disable-pip-version-check --no-deps \
	    -d build/frontends/$$version comfyui-frontend-package==$$version; done
	COMFYUI_FRONTEND=$$(echo $(FRONTENDS:%=$(CURDIR)/build/frontends/%) | tr ' ' ':') \
	  $(PYTEST) tests/browser/test_frontend.py

# ComfyUI's real frontend, for tests alone. Without it they are skipped and say so.
frontend: venv
	@$(BIN)/python -c 'import comfyui_frontend_package' 2>/dev/null || \
	  $(BIN)/python -m pip install -q --no-compile --disable-pip-version-check --no-deps $(FRONTEND) || \
	  echo "BROWSER TESTS WILL BE SKIPPED IN PART: $(FRONTEND) cannot be installed"

# Chromium too, where the system's packages may be changed.
browser: frontend
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || \
	  { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && { apt-get update -qq; \
	    DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends \
	      chromium fonts-dejavu-core; } >/dev/null 2>&1; } || \
	  echo "BROWSER TESTS WILL BE SKIPPED: chromium is missing (apt-get install chromium)"

# Builds the panel into web/dist, which is committed.
web: web/node_modules/.stamp
	cd web && npm run -s check && npm test -s && npm run -s build -- --logLevel warn

web/node_modules/.stamp: web/package.json web/package-lock.json
	cd web && npm ci --no-audit --no-fund --loglevel=error
	@touch $@

lint: venv
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --explicit-package-bases engine/planner engine/errors.py engine/units.py \
	  engine/geometry.py engine/request.py engine/events.py engine/report.py
	@if command -v npm >/dev/null; then $(MAKE) -s web && git diff --exit-code --stat web/dist; \
	  else echo "NOT CHECKED: the panel (npm is missing)"; fi

clean:
	rm -rf $(VENV) out build *.egg-info .pytest_cache .mypy_cache .ruff_cache
