"""Output is redacted in one place: `pipeline/present.py`."""

from __future__ import annotations

import ast
import pathlib

import pytest

import tooli

SOURCE = pathlib.Path(tooli.__file__).parent
REDACTION_MODULES = {f"tooli.text.{name}" for name in ("patterns", "redact", "sanitize")}
ALLOWED = {
    "pipeline/present.py": "the only exit for the output of a call",
    "storage/outcome_codec.py": "stored outcomes: a replay does not know the secrets of the call",
    "storage/audit_log.py": "the audit log, which is not the output of a call",
    "inputs/secret.py": "only the mask that replaces a secret",
    "core/docstring.py": "texts of docstrings in descriptions, which have no call",
    "schema/described.py": "words of tools from elsewhere, which are cleaned when they are read",
    "sources/credentials.py": "credentials in commands and URLs that would be stored or are listed",
    "install/project_documents.py": "texts of other projects that are copied into documents",
}
"""The modules outside of `text/` that may redact or sanitize, and why."""


def imported_modules(code: str) -> set[str]:
    """Return the modules that a file imports, inside of functions as well."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module or "")
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return found


FILES = {
    name: file
    for file in sorted(SOURCE.rglob("*.py"))
    if not (name := file.relative_to(SOURCE).as_posix()).startswith("text/")
}


@pytest.mark.parametrize("name", [name for name in FILES if name not in ALLOWED])
def test_module_does_not_redact(name: str) -> None:
    found = imported_modules(FILES[name].read_text(encoding="utf-8")) & REDACTION_MODULES
    assert not found, f"{name} imports {found}: use the functions of tooli.pipeline.present"


@pytest.mark.parametrize(
    "code",
    [
        "from tooli.text.redact import Redactor",
        "from tooli.text import sanitize",
        "def f():\n    import tooli.text.patterns",
    ],
)
def test_imports_of_redaction_modules_are_found(code: str) -> None:
    assert imported_modules(code) & REDACTION_MODULES


def test_allowed_modules_exist() -> None:
    assert ALLOWED.keys() <= FILES.keys()
