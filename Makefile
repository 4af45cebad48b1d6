# Every target creates the virtual environment that it needs: python3 and make are enough.
PYTHON ?= python3
VENV   ?= .venv
PY      = $(VENV)/bin/python
READY   = $(VENV)/.ready
DEMO    = .venv-demo
REPORT  = .cache/coverage.json
# The tests that run under coverage: those of the packages that coverage_gate.py lists.
MEASURED = tests/core tests/schema tests/text tests/records tests/inputs tests/pipeline tests/stages tests/policy tests/providers tests/serving tests/mcp tests/execution tests/storage tests/config tests/describe/test_schema_formats.py tests/describe/test_mcp_tools.py tests/parity/test_result_options.py tests/parity/test_inputs.py tests/test_errors.py tests/test_python_api.py tests/parity/test_suggestions.py tests/parity/test_author_errors.py tests/parity/test_open_files.py tests/security/test_grants.py tests/security/test_shown_calls.py tests/security/test_callback_guard.py tests/security/test_dry_run_questions.py

# Suites that other projects wrote, or that need a browser or a framework: `make test-full`.
FULL = tests/lanes/test_typer_suite.py tests/integration/conformance tests/integration/frameworks tests/integration/clients tests/integration/generated_clients tests/integration/deploy tests/integration/oauth tests/integration/http/test_schemathesis.py tests/integration/page tests/integration/real_apps tests/integration/agents tests/integration/providers

# Tests of generated examples: `make test` runs a quarter of them, `make test-full` all.
GENERATED = tests/lanes/test_fast_path.py tests/lanes/test_fast_convert.py tests/parity/test_wrong_calls.py tests/parity/test_generated_calls.py tests/integration/test_fuzz.py tests/integration/test_idempotency.py tests/integration/mcp/test_hostile.py

# Make and the tests start thousands of processes: let them share compiled bytecode.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-full check bench docs clean

demo: $(DEMO)/.ready    ## the main features, as a transcript
	@$(DEMO)/bin/python examples/demo.py

test: $(READY)          ## the tests, and the gate on branch coverage
	@mkdir -p .cache
	COVERAGE_FILE=.cache/coverage $(PY) -m pytest $(MEASURED) --cov --cov-report=json:$(REPORT)
	$(PY) tests/architecture/coverage_gate.py $(REPORT)
	$(PY) -m pytest $(addprefix --ignore=,$(MEASURED) $(FULL))

test-full: $(READY)     ## the suites of other projects, frameworks, agents, a browser, all examples
	$(PY) -m pytest $(FULL)
	TOOLI_TEST_FULL=1 $(PY) -m pytest $(GENERATED)

check: $(READY)         ## lint, format, types, layers, dead code, spelling
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m pyright --pythonpath $(PY)
	$(PY) -m pyright --pythonpath $(PY) --project benchmarks
	$(VENV)/bin/lint-imports
	$(PY) -m vulture
	$(VENV)/bin/codespell src examples docs benchmarks *.md

bench: $(READY)         ## measure, and write benchmarks/RESULTS.md
	$(PY) benchmarks/run.py

docs: $(READY)          ## write the generated parts of the documents and tables
	$(PY) -m docs.generate

clean:
	rm -rf $(VENV) $(DEMO) .cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache .coverage*

$(READY): pyproject.toml requirements-dev.txt constraints.txt
	@test -x $(PY) || $(PYTHON) -m venv $(VENV)
	@$(PY) -m pip install --quiet --quiet --disable-pip-version-check -c constraints.txt -r requirements-dev.txt -e .
	@touch $@

# The demo needs the package and its HTTP server, not the tools of the developers.
$(DEMO)/.ready: pyproject.toml constraints.txt
	@echo "Installing tooli into $(DEMO) ..."
	@test -x $(DEMO)/bin/python || $(PYTHON) -m venv $(DEMO)
	@$(DEMO)/bin/python -m pip install --quiet --quiet --disable-pip-version-check -c constraints.txt -e ".[http]"
	@touch $@
