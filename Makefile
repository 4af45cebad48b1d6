# Everything runs from a virtual environment that this file makes itself.
PYTHON ?= python3
VENV   ?= .venv
PY      = $(VENV)/bin/python
READY   = $(VENV)/.ready

.PHONY: demo test check bench clean

$(READY): pyproject.toml requirements-dev.txt constraints.txt
	@test -x $(PY) || $(PYTHON) -m venv $(VENV)
	@$(PY) -m pip install --quiet --disable-pip-version-check -c constraints.txt -r requirements-dev.txt -e .
	@touch $@

demo: $(READY)
	@$(PY) examples/demo.py

test: $(READY)
	$(PY) -m pytest

clean:
	rm -rf $(VENV) .cache .pytest_cache .ruff_cache .hypothesis
