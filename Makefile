# Every command a developer, or the CI, needs. `make help` lists them; CONTRIBUTING.md says when to use which.

PYTHON ?= python3
BIN := .venv/bin
CODE := $(wildcard src tests scripts bench)
COMPILE := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-emit-find-links --no-annotate --no-header $(if $(UPGRADE),--upgrade)

# Not written out in the recipes: make runs a line that names MAKE even under `make -n`.
PARTS := $(MAKE) --no-print-directory --keep-going

# Tools of other languages keep their caches here too, so that an empty or missing HOME is no trouble.
export npm_config_cache ?= $(CURDIR)/.cache/npm
# Test folders mirror the rooms, so file names repeat; their paths make them different modules.
export MYPYPATH := src:tests

.DEFAULT_GOAL := help
.PHONY: help run test check fix bench lock clean ready lint docs

help:  ## list the commands
	@sed -n 's/^\([a-z]*\):[^#]*## /\1\t/p' $(MAKEFILE_LIST) | while IFS='	' read -r name what; do \
		printf '  make %-7s %s\n' "$$name" "$$what"; done

run:  ## start a federation of three clusters on this machine; with CLUSTERS=k8s one is a real Kubernetes
ifeq ($(CLUSTERS),k8s)
	@HANSA_SETUP_KUBERNETES=yes $(PYTHON) scripts/setup.py test
	@PYTHONPATH=tests exec $(BIN)/python -m real.kubernetes.playground
else
	@$(PYTHON) scripts/setup.py run
	@exec $(BIN)/python -m hansa.entrypoints.playground
endif

# Both halves always run, so that one call tells everything there is to repair; pytest's line comes last.
test:  ## install what the tests use, then check and test everything
	@$(PYTHON) scripts/setup.py test
	@status=0; \
	$(PARTS) lint || status=$$?; \
	$(BIN)/python -m pytest -n auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder --durations=15 --durations-min=1 $(ARGS) || status=$$?; \
	exit $$status

check: ready  ## format, lint, types, import rules, docs; changes nothing
	@$(PARTS) lint docs

fix: ready  ## repair format and lint where a machine can
	$(BIN)/ruff format $(CODE)
	$(BIN)/ruff check --fix $(CODE)

bench: ready  ## measure speed, as ratios within one run
	@test -f bench/__main__.py || { echo "bench: there is no bench/__main__.py yet"; exit 1; }
	$(BIN)/python -m bench $(ARGS)

lock: ready  ## pin requirements/*.in with hashes; UPGRADE=1 takes newer versions
	$(COMPILE) requirements/build.in --output-file requirements/build.txt
	$(COMPILE) requirements/run.in --output-file requirements/run.txt
	$(COMPILE) requirements/dev.in --constraint requirements/run.txt --output-file requirements/dev.txt

clean:  ## remove .venv, caches and build output; a playground's data stays
	rm -rf .venv .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist
	rm -rf src/*.egg-info
	find $(CODE) -name __pycache__ -type d -prune -exec rm -rf {} +

# --- parts of the above ---

ready:
	@$(PYTHON) scripts/setup.py check

.PHONY: lint-format lint-code lint-types lint-imports
lint: lint-format lint-code lint-types lint-imports

lint-format:
	$(BIN)/ruff format --quiet --check $(CODE)
lint-code:
	$(BIN)/ruff check --quiet $(CODE)
lint-types:
	$(BIN)/mypy --explicit-package-bases $(CODE)
lint-imports:
	$(BIN)/lint-imports --no-logo

docs:
	@if [ -d tests/docs ]; then $(BIN)/python -m pytest --quiet tests/docs; fi
