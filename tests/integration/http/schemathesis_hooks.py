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


@schemathesis.hook
def before_call(context: Any, case: Any, kwargs: Any) -> None:
    """Make destructive calls dry runs, and limit searches to the working directory."""
    if case.operation.path in ("/tools/delete", "/tools/rename"):
        case.query = {**(case.query or {}), "dry_run": "true"}
    if case.meta is None or case.meta.generation.mode.is_positive:
        _replace_unsuitable_values(case)
    if isinstance(case.body, dict):
        root = case.body.get("root")
        if isinstance(root, str) and "\x00" not in root and os.path.isdir(root):
            case.body = {**case.body, "root": "."}
