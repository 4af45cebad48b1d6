"""What schemathesis has to know about our apps, beyond the OpenAPI document."""

from __future__ import annotations

import os
from typing import Any
from uuid import uuid4

import schemathesis


def _fit(case: Any) -> None:
    """What is right by the schema, so that it is right for the moment as well."""
    if case.query and "timeout" in case.query:
        case.query["timeout"] = "60"  # a shorter one may be over before the call
    if case.headers and "Idempotency-Key" in case.headers:
        case.headers["Idempotency-Key"] = uuid4().hex  # no other call has used it


@schemathesis.hook
def before_call(context: Any, case: Any, kwargs: Any) -> None:
    """Nothing is destroyed, and no search leaves the folder that it was started in."""
    if case.operation.path in ("/tools/delete", "/tools/rename"):
        case.query = {**(case.query or {}), "dry_run": "true"}
    if case.meta is None or case.meta.generation.mode.is_positive:
        _fit(case)
    if isinstance(case.body, dict):
        root = case.body.get("root")
        if isinstance(root, str) and "\x00" not in root and os.path.isdir(root):
            case.body = {**case.body, "root": "."}
