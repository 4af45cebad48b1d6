"""Limits on the time that a check against a JSON Schema takes."""

from __future__ import annotations

from typing import Any

import pytest

from tooli.schema.json_validation import build_validator, find_problems
from tooli.schema.schema_cost import (
    ReferenceLimit,
    SchemaTooComplex,
    count_reference,
    find_reference,
)
from tooli.schema.schema_cost import limit_references as limit


def chain(length: int, keyword: str = "allOf", reference: str = "#/$defs/{}") -> dict[str, Any]:
    """A schema whose parts refer to each other, so that 2**length parts apply to one value."""
    parts: dict[str, Any] = {
        f"p{i}": {keyword: [{"$ref": reference.format(f"p{i + 1}")}] * 2} for i in range(length)
    }
    parts[f"p{length}"] = {"type": "object"}
    return {"$defs": parts, "$ref": "#/$defs/p0"}


@pytest.mark.parametrize("keyword", ["allOf", "anyOf", "oneOf"])
def test_schema_that_grows_with_each_definition(keyword: str) -> None:
    assert find_problems(build_validator(chain(5, "allOf")), {}) == ()
    schema = chain(25, keyword)
    schema["$defs"]["p25"] = {"type": "string"} if keyword == "anyOf" else {"type": "object"}
    ((code, field, message),) = find_problems(build_validator(schema), {})
    assert (code, field, message) == (
        "E1003",
        None,
        "The schema is too complex to check these values",
    )


def test_schema_that_grows_with_the_depth_of_the_value() -> None:
    node = {"properties": {"c": {"$ref": "#/$defs/node"}}}
    schema = {"$defs": {"node": {"allOf": [node, node]}}, "$ref": "#/$defs/node"}
    value: Any = {}
    for _ in range(40):
        value = {"c": value}
    assert "too complex" in find_problems(build_validator(schema), value)[0][2]


def test_many_values_may_have_references() -> None:
    schema = {"$defs": {"n": {"type": "integer"}}, "items": {"$ref": "#/$defs/n"}}
    assert find_problems(build_validator(schema), list(range(50_000))) == ()


@pytest.mark.parametrize("keyword", ["unevaluatedProperties", "unevaluatedItems"])
def test_unevaluated_properties_of_a_growing_schema(keyword: str) -> None:
    with pytest.raises(SchemaTooComplex, match="too many parts"):
        build_validator({**chain(25), keyword: False})
    validator = build_validator({**chain(4), keyword: False})
    assert find_problems(validator, {}) == ()


def test_unevaluated_properties_with_other_references() -> None:
    schema = {
        "$defs": {"a": {"$anchor": "x", "properties": {"b": {}}}},
        "$ref": "#x",
        "unevaluatedProperties": False,
    }
    with pytest.raises(SchemaTooComplex, match="is not like"):
        build_validator(schema)


def test_unevaluated_properties_of_a_schema_that_contains_itself() -> None:
    schema = {
        "properties": {"c": {"$ref": "#"}},
        "allOf": [{"$ref": "#/$defs/a"}],
        "$defs": {"a": {"if": {"$ref": "#/$defs/none/x"}, "properties": {"d~/": {}}}},
        "unevaluatedProperties": False,
    }
    schema["$defs"]["a"]["if"] = {"type": "object"}  # type: ignore[index]
    problems = find_problems(build_validator(schema), {"c": {"c": {}}, "e": 1})
    assert len(problems) == 1


def test_unevaluated_properties_with_a_slow_pattern() -> None:
    schema: dict[str, Any] = {"patternProperties": {"^(a+)+$": {}}, "unevaluatedProperties": False}
    with pytest.raises(SchemaTooComplex, match="too much time"):
        build_validator(schema)
    schema["patternProperties"] = {"^x-": {}}
    assert find_problems(build_validator(schema), {"x-1": 1}) == ()
    assert len(find_problems(build_validator(schema), {"y": 1})) == 1


@pytest.mark.parametrize(
    "parts",
    [
        {"a": {"$ref": "#/$defs/a"}},
        {"a": {"allOf": [{"$ref": "#/$defs/b"}]}, "b": {"not": {"$ref": "#/$defs/a"}}},
        {"a": {"anyOf": [{"type": "string"}, {"$ref": "#"}]}},
        {f"{'a' * i}": {"allOf": [{"$ref": f"#/$defs/{'a' * (i + 1)}"}]} for i in range(1, 90)},
    ],
)
def test_part_that_consists_of_itself(parts: dict[str, Any]) -> None:
    with pytest.raises(SchemaTooComplex, match=r"consists of itself|too deeply"):
        build_validator({"$defs": parts, "$ref": "#/$defs/a"})


def test_value_that_is_nested_deeply() -> None:
    schema = {"$defs": {"n": {"items": {"$ref": "#/$defs/n"}}}, "$ref": "#/$defs/n"}
    value: list[Any] = []
    for _ in range(80):
        value = [value]
    assert find_problems(build_validator(schema), value) == ()
    for _ in range(60):
        value = [value]
    assert "too complex" in find_problems(build_validator(schema), value)[0][2]


def test_panic_of_a_library(monkeypatch: pytest.MonkeyPatch) -> None:
    class PanicException(BaseException):
        pass

    def panic(*_: Any) -> Any:
        raise PanicException

    validator = build_validator({})
    monkeypatch.setattr(type(validator), "iter_errors", panic)
    assert "too deeply" in find_problems(validator, 1)[0][2]


def test_references_are_counted_in_a_check_only() -> None:
    with count_reference():
        pass
    with pytest.raises(ReferenceLimit), limit(1):
        for _ in range(20_000):
            with count_reference():
                pass
    with count_reference():
        pass


def test_reference_is_a_json_pointer() -> None:
    root: dict[str, Any] = {"$defs": {"a/b~c": {"type": "integer"}, "any": True}}
    assert find_reference("#", root) is root
    assert find_reference("#/$defs/a~1b~0c", root) == {"type": "integer"}
    for reference in ("#/$defs/None/x", "#/$defs/any", "https://example.com/x"):
        assert find_reference(reference, root) is None
