"""What schemathesis has to know about our apps, beyond the OpenAPI document."""

from __future__ import annotations

import os
from typing import Any

import schemathesis


@schemathesis.hook
def before_call(context: Any, case: Any, kwargs: Any) -> None:
    """Nothing is destroyed, and no search leaves the folder that it was started in."""
    if case.operation.path in ("/tools/delete", "/tools/rename"):
        case.query = {**(case.query or {}), "dry_run": "true"}
    if isinstance(case.body, dict):
        root = case.body.get("root")
        if isinstance(root, str) and "\x00" not in root and os.path.isdir(root):
            case.body = {**case.body, "root": "."}
