# Every target does its own set-up in .venv; only Python 3.11+, git and make are needed.
# The first that runs: a version manager may offer names behind which there is nothing.
PYTHON ?= $(shell for p in python3.13 python3.12 python3.11 python3; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { command -v $$p; break; }; done)
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
# Tests start thousands of processes: what they import is compiled once, whatever the environment says.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo plugins test check coverage conformance test-clients test-sandbox test-ui test-postgres test-ci test-docs test-machines docs pictures reference release soak simulate bench clean

$(READY): pyproject.toml
	@test -n "$(PYTHON)" || { echo "Detent needs Python 3.11 or newer"; exit 1; }
	@echo "setting up $(VENV) with $(PYTHON)"
	@"$(PYTHON)" -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -e '.[dev]'
	@touch $@

demo: $(READY)
	@$(BIN)/python -m tests.support.attended $(BIN)/python examples/demo.py

# The plugins of the clients, from integrations/plugin.toml. They are committed; a test says if they are not current.
plugins: $(READY)
	@$(BIN)/python -m integrations.generate

test: check
	$(BIN)/python -m pytest -q -n 3 --dist worksteal

check: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

# Branch coverage of the rules and the engine, by the tests that run in one process and do not limit time.
coverage: $(READY)
	@$(BIN)/python -m pytest -q -n 2 --cov --cov-report= tests/core tests/engine
	@$(BIN)/python tests/support/coverage_table.py

conformance: $(READY)
	@$(BIN)/python -m pytest -q tests/conformance -p tests.conformance.table

# Real agents against a scripted model server on loopback; needs npm, and is not part of `make test`.
test-clients: $(READY)
	$(BIN)/python -m tests.clients
	$(BIN)/python -m pytest -q -n 2 tests/clients

# The sandbox of runs, with the real bubblewrap; `make test` leaves these out where there is none.
test-sandbox: $(READY)
	@$(BIN)/python -m tests.support.debian bubblewrap bwrap
	$(BIN)/python -m pytest -q -n 2 tests/run/test_sandbox.py tests/run/test_sandbox_work.py tests/cli/test_preflight.py

# The page in Chromium; gets what it needs where it can, and says what it skips. Not part of `make test`.
test-ui: $(READY)
	@$(BIN)/python -m tests.ui
	$(BIN)/python -m pytest -q -n 2 --dist loadfile tests/ui || { echo "trying what failed once more, alone"; \
		$(BIN)/python -m pytest -q --last-failed tests/ui; }

# The store in Postgres: starts a real one, and says what it skips. Not part of `make test`.
test-postgres: $(READY)
	@$(BIN)/python -m tests.postgres
	DETENT_TEST_POSTGRES=1 $(BIN)/python -m pytest -q -n 2 --dist worksteal tests/postgres tests/store/test_contract.py tests/property/test_engine_machine.py tests/engine/test_memory_session.py

# CI parity, attestations and telemetry with pre-commit, in-toto, securesystemslib and the messages of OTLP; needs pip.
test-ci: $(READY)
	@$(BIN)/python -m tests.ci
	$(BIN)/python -m pytest -q -n 2 tests/ci

# The reference pages and the man page, from the code.
reference: $(READY)
	@$(BIN)/python -m book.reference
	@$(BIN)/python -m book.man

# The documentation as a site in .site; it needs no other host, neither to build nor to read.
docs: reference
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[docs]'
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

# The pictures of README and documentation, from real runs; those of the page need Chromium.
pictures: $(READY)
	@$(BIN)/python -m book.diagrams
	@$(BIN)/python -m book.recording
	@$(BIN)/python -m tests.ui
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check 'pillow>=10'
	@$(BIN)/python -m tests.support.attended $(BIN)/python -m tests.ui.screenshots

# Every command of the tutorial and the how-to pages, and the site.
test-docs: $(READY)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[docs]' 2>/dev/null || echo "skipped: MkDocs cannot be installed"
	@$(BIN)/python -m tests.machines
	@$(BIN)/python -m tests.ui
	$(BIN)/python -m pytest -q -rs -n 2 tests/book

# Build, check and try a release of a clean checkout, in dist/; TAG=1 tags it. Nothing is uploaded.
release: $(READY)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check 'hatchling>=1.25'
	@$(BIN)/python -m book.release $(if $(TAG),--tag)

# Campaigns whole: every cheat, every forging attempt, every call that can fail,
# 1,000 damages, eight times the examples of each property. DETENT_SEED chooses another sample.
soak: $(READY)
	DETENT_SOAK=1 $(BIN)/python -m pytest -q -n 2 tests/crash tests/engine/gates/test_cheats.py tests/engine/test_forging.py tests/engine/gates/test_protected.py tests/engine/bundles/test_bundle.py tests/hooks/test_drift.py tests/hooks/test_payloads.py tests/doctor/test_misplaced.py tests/property tests/objects/test_model.py tests/objects/test_git_differential.py tests/postgres
	@$(BIN)/python -m tests.machines
	DETENT_SOAK=1 $(BIN)/python -m pytest -q -n 0 tests/machines/test_kills.py tests/machines/test_faults.py -k "kills or away"

# Workers with a real Postgres and a real Temporal on loopback; gets what it needs, and says what it skips.
test-machines: $(READY)
	@$(BIN)/python -m tests.machines
	$(BIN)/python -m pytest -q -n 0 tests/machines || { echo "trying what failed once more, alone"; \
		$(BIN)/python -m pytest -q -n 0 --last-failed tests/machines; }

# Simulated machines with faults: 10,000 seeds of a small world and 20 of a large one. DETENT_SEED sets the first seed.
simulate: $(READY)
	@$(BIN)/python -m tests.simulate

bench: $(READY)
	@$(BIN)/python -m tests.support.attended $(BIN)/python -m bench

clean:
	rm -rf $(VENV) .bench .coverage build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
