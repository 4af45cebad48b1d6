"""The schemas and responses that all operations share."""

from __future__ import annotations

import jsonschema

from tooli.describe.openapi_shared import answer_schema, failure_response, shared_schemas
from tooli.errors import ERROR_CODES


def test_every_error_code_has_a_valid_example() -> None:
    response = failure_response()
    components = {"schemas": shared_schemas()}
    schema = {"$ref": "#/components/schemas/CallFailure", "components": components}
    examples = response["content"]["application/json"]["examples"]
    for example in examples.values():
        jsonschema.validate(example["value"], schema)
    assert examples.keys() == ERROR_CODES.keys()
    for code, (_, _, status, *_rest) in ERROR_CODES.items():
        (row,) = [row for row in response["description"].splitlines() if f"{code} " in row]
        assert row.startswith(f"- {status}: ")


def test_answer_without_a_result_is_valid_only_if_the_result_may_be_null() -> None:
    answer = {"ok": True, "meta": {"tool": "a.b", "duration_ms": 1}}
    for is_required in (True, False):
        schema = answer_schema({"type": "string"}, is_required=is_required)
        schema["components"] = {"schemas": shared_schemas()}
        assert jsonschema.Draft202012Validator(schema).is_valid(answer) != is_required
        assert jsonschema.Draft202012Validator(schema).is_valid({**answer, "result": "x"})
        assert not jsonschema.Draft202012Validator(schema).is_valid({**answer, "ok": False})
