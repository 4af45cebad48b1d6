"""What schemathesis has to know about tooli, beyond the OpenAPI document.

A tool takes what can be read without doubt as what it wants, through every door: "7" for
7, a list with repetitions for a set. The check that refuses everything which the schema
does not say is therefore replaced by one that lets pass just that, and nothing else.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import jsonschema
import schemathesis

LIKE = {"type", "format", "uniqueItems"}
"""Where a value may differ from the schema, and still be taken for what it stands for."""


@schemathesis.check
def takes_only_what_stands_for_a_value(ctx: Any, response: Any, case: Any) -> None:
    meta = case.meta
    if meta is None or not meta.generation.mode.is_negative or response.status_code != 200:
        return
    document: dict[str, Any] = case.operation.schema.raw_schema
    body = document["paths"][case.operation.path]["post"]["requestBody"]
    schema = {**body["content"]["application/json"]["schema"], "components": document["components"]}
    if isinstance(case.body, dict):
        Path("judged").touch()
        errors = list(jsonschema.Draft202012Validator(schema).iter_errors(case.body))
        assert _alike(errors), f"accepted: {case.body!r}, but {[error.message for error in errors]}"


def _alike(errors: list[jsonschema.ValidationError]) -> bool:
    other_kind = {tuple(error.absolute_path) for error in errors if error.validator == "type"}
    return all(_is_alike(error, other_kind) for error in errors)


def _is_alike(error: jsonschema.ValidationError, other_kind: set[tuple[Any, ...]]) -> bool:
    if error.validator in LIKE or tuple(error.absolute_path) in other_kind:
        return True
    if error.validator == "anyOf":
        branches: dict[Any, list[jsonschema.ValidationError]] = {}
        for inner in error.context or ():
            branches.setdefault(inner.schema_path[0], []).append(inner)
        return any(_alike(branch) for branch in branches.values())
    return False


@schemathesis.hook
def before_call(context: Any, case: Any, kwargs: Any) -> None:
    """Nothing is destroyed, and no search leaves the folder that it was started in."""
    if case.operation.path in ("/tools/delete", "/tools/rename"):
        case.query = {**(case.query or {}), "dry_run": "true"}
    if isinstance(case.body, dict):
        root = case.body.get("root")
        if isinstance(root, str) and "\x00" not in root and os.path.isdir(root):
            case.body = {**case.body, "root": "."}
