"""Public class names and module basenames are unique, except those listed here."""

from __future__ import annotations

from tests.architecture.metrics import (
    find_duplicate_basenames,
    find_duplicate_classes,
    load_modules,
)

ALLOWED_BASENAMES = {
    "audit": "the stage that writes the audit log, and the log itself",
}
ALLOWED_CLASSES: dict[str, str] = {}


def test_public_class_names_are_unique() -> None:
    found = find_duplicate_classes(load_modules())
    assert {name: where for name, where in found.items() if name not in ALLOWED_CLASSES} == {}


def test_module_basenames_are_unique() -> None:
    found = find_duplicate_basenames(load_modules())
    assert {name: where for name, where in found.items() if name not in ALLOWED_BASENAMES} == {}
