"""Hooks for schemathesis: changes to generated requests that a schema cannot express."""

from __future__ import annotations

import os
from typing import Any
from uuid import uuid4

import schemathesis


def _replace_unsuitable_values(case: Any) -> None:
    """Replace values that the schema allows but that can fail at run time."""
    if case.query and "timeout" in case.query:
        case.query["timeout"] = "60"  # a call may exceed a shorter timeout
    if case.headers and "Idempotency-Key" in case.headers:
        case.headers["Idempotency-Key"] = uuid4().hex  # a key is valid for one call


def _without_control_characters(value: Any) -> Any:
    """Replace the control characters of all texts, which a schema for any value cannot exclude."""
    if isinstance(value, str):
        return "".join([c if c.isprintable() else "?" for c in value])
    if isinstance(value, list):
        return [_without_control_characters(item) for item in value]
    if isinstance(value, dict):
        return {
            _without_control_characters(name): _without_control_characters(item)
            for name, item in value.items()
        }
    return value


@schemathesis.hook
def before_call(context: Any, case: Any, kwargs: Any) -> None:
    """Confirm the destructive command of the sample app, and limit searches to the directory."""
    if case.operation.path == "/tools/delete" and case.meta.generation.mode.is_positive:
        case.query = {**(case.query or {}), "yes": "true"}
    if case.meta is None or case.meta.generation.mode.is_positive:
        _replace_unsuitable_values(case)
        if case.operation.path.endswith("/argument-any"):
            case.body = _without_control_characters(case.body)
    if isinstance(case.body, dict):
        root = case.body.get("root")
        if isinstance(root, str) and "\x00" not in root and os.path.isdir(root):
            case.body = {**case.body, "root": "."}
