# Everything runs from a virtual environment that this file makes itself: python3 and make suffice.
PYTHON ?= python3
VENV   ?= .venv
PY      = $(VENV)/bin/python
READY   = $(VENV)/.ready
DEMO    = .venv-demo
REPORT  = .cache/coverage.json
# What is run under coverage: the tests of the rooms whose branches are counted.
MEASURED = tests/core tests/schema tests/text tests/records tests/pipeline tests/stages tests/inputs tests/execution/test_declared_capabilities.py tests/describe/test_schema.py tests/describe/test_mcp.py tests/parity/test_shaping.py tests/parity/test_inputs.py tests/test_errors.py tests/test_python_api.py

# Thousands of processes are started, here by Make and there by tests: none compiles what another did.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test check bench docs clean

demo: $(DEMO)/.ready    ## what tooli does, as a transcript
	@$(DEMO)/bin/python examples/demo.py

test: $(READY)          ## all tests, and the branches that they reach
	@mkdir -p .cache
	COVERAGE_FILE=.cache/coverage $(PY) -m pytest $(MEASURED) --cov=tooli --cov-branch --cov-report=json:$(REPORT)
	$(PY) tests/architecture/coverage_gate.py $(REPORT)
	$(PY) -m pytest $(addprefix --ignore=,$(MEASURED))

check: $(READY)         ## lint, format, types, layers, dead code, spelling
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m pyright --pythonpath $(PY)
	$(VENV)/bin/lint-imports
	$(PY) -m vulture
	$(VENV)/bin/codespell src examples docs benchmarks *.md

bench: $(READY)         ## the figures, into benchmarks/RESULTS.md
	$(PY) benchmarks/run.py

docs: $(READY)          ## what is generated in the documents
	$(PY) -m docs.generate

clean:
	rm -rf $(VENV) $(DEMO) .cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache .coverage*

$(READY): pyproject.toml requirements-dev.txt constraints.txt
	@test -x $(PY) || $(PYTHON) -m venv $(VENV)
	@$(PY) -m pip install --quiet --disable-pip-version-check -c constraints.txt -r requirements-dev.txt -e .
	@touch $@

# The demo needs the package and its HTTP server, not the tools of the developers.
$(DEMO)/.ready: pyproject.toml constraints.txt
	@echo "Installing tooli into $(DEMO) ..."
	@test -x $(DEMO)/bin/python || $(PYTHON) -m venv $(DEMO)
	@$(DEMO)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[http]"
	@touch $@
