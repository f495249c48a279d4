# One command a job; each builds .venv first and needs nothing that was installed by hand.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.stamp

FRONTEND := comfyui-frontend-package==1.49.6

.PHONY: venv demo test test-pure test-comfy test-browser browser web lint clean

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

# Two workers with one thread each: tiny tensors lose more to threads than they gain.
# The panel in a browser is `make test-browser`: beside a second worker its waits are not reliable yet.
test: venv
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n 2 --dist loadfile --ignore=tests/browser
	@echo "NOT RUN HERE: the panel in a browser (make test-browser)"

test-pure: venv
	$(BIN)/python -m pytest -q tests/pure

test-comfy: venv
	$(BIN)/python -m pytest -q tests/comfy -rs

# The panel in ComfyUI's real frontend. What cannot be had is named here and by the skips.
test-browser: browser
	$(BIN)/python -m pytest -q tests/browser -rs

browser: venv
	@$(BIN)/python -c 'import comfyui_frontend_package' 2>/dev/null || \
	  $(BIN)/python -m pip install -q --disable-pip-version-check --no-deps $(FRONTEND) || \
	  echo "BROWSER TESTS WILL BE SKIPPED: $(FRONTEND) cannot be installed"
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
