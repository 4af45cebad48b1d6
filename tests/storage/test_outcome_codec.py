"""Encoding and decoding of stored outcomes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tooli import SecretInput
from tooli.core.call import Failed, Ok, RedactionPolicy
from tooli.core.result_types import Image, Link, Next, Page
from tooli.errors import ConflictError, InputError, Suggestion, ToolError
from tooli.schema.tool_reader import read_tool
from tooli.storage import outcome_codec
from tooli.storage.outcome_codec import (
    MAX_OUTCOME_BYTES,
    NOT_STORED,
    decode_outcome,
    encode_items,
    encode_outcome,
    restore_type,
)

NO_SECRETS = RedactionPolicy()
SECRET = "hush-1234"
WITH_SECRET = RedactionPolicy(secrets=[SecretInput(SECRET)])


class SoldOut(ConflictError):
    """An error class of an app."""

    code = "E3901"


def encode_value(value: Any, redaction: RedactionPolicy = NO_SECRETS, printed: str = "") -> bytes:
    return encode_outcome(redaction, Ok(value), printed, [])[0]


def replay(value: Any, redaction: RedactionPolicy = NO_SECRETS) -> Any:
    outcome = decode_outcome(encode_value(value, redaction)).outcome
    assert isinstance(outcome, Ok)
    return outcome.value


# ------------------------------------------------------------------ values


@pytest.mark.parametrize(
    "value", [None, True, 3, 2.5, "text", [1, "two"], {"a": {"b": [None]}}, "\x1b[31m"]
)
def test_json_value_round_trip(value: Any) -> None:
    assert replay(value) == value


def test_plain_value_is_returned_without_a_copy() -> None:
    value = {"a": [1, 2]}
    _, outcome = encode_outcome(NO_SECRETS, Ok(value), "", [])
    assert isinstance(outcome, Ok) and outcome.value is value


def test_iterator_is_returned_as_a_copy() -> None:
    data, outcome = encode_outcome(NO_SECRETS, Ok(iter([1, 2])), "", [])
    assert isinstance(outcome, Ok) and outcome.value == [1, 2]
    assert decode_outcome(data).outcome == Ok([1, 2])


def test_conversion_warnings_are_added_to_copies() -> None:
    warnings = ["earlier"]
    data, outcome = encode_outcome(NO_SECRETS, Ok([float("nan"), object]), "", warnings)
    assert isinstance(outcome, Ok)
    assert warnings[0] == "earlier" and len(warnings) > 1
    assert decode_outcome(data).warnings == tuple(warnings)


def test_circular_value_is_cut() -> None:
    loop: list[Any] = [1]
    loop.append(loop)
    assert replay(loop) == [1, None]
    nested: dict[str, Any] = {}
    for _ in range(outcome_codec.MAX_JSON_DEPTH + 5):
        nested = {"inner": nested}
    assert isinstance(replay(nested), dict)


def test_page_round_trip() -> None:
    page = replay(Page(iter([1, 2]), next_cursor="c", total=9))
    assert isinstance(page, Page)
    assert (page.items, page.next_cursor, page.total) == ([1, 2], "c", 9)


def test_next_round_trip() -> None:
    result = replay(Next({"id": 1}).then("show", {"id": 1}, why="see it").then("stop"))
    assert isinstance(result, Next) and result.result == {"id": 1}
    steps = [(step.command, dict(step.arguments), step.why) for step in result.steps]
    assert steps == [("show", {"id": 1}, "see it"), ("stop", {}, "")]


@pytest.mark.parametrize("listed", [False, True])
def test_content_round_trip(listed: bool) -> None:
    image = Image(b"\x89PNG\0", "image/png")
    assert replay([image, "caption"] if listed else image) == (
        [image, "caption"] if listed else image
    )
    link = Link("https://example.org/a", name="a")
    assert replay(link) == link


def test_printed_text_and_warnings_are_stored() -> None:
    stored = decode_outcome(encode_outcome(NO_SECRETS, Ok(1), "line\n", ["careful"])[0])
    assert (stored.printed, stored.warnings) == ("line\n", ("careful",))


def test_large_outcome_is_not_stored() -> None:
    assert encode_value("x" * MAX_OUTCOME_BYTES) == NOT_STORED
    assert encode_items(NO_SECRETS, None, []) == NOT_STORED
    assert decode_outcome(NOT_STORED).outcome is None


def test_stream_items_round_trip() -> None:
    data = encode_items(NO_SECRETS, [b'{"a":1}', b"2"], ["careful"])
    stored = decode_outcome(data)
    assert stored.outcome == Ok([{"a": 1}, 2]) and stored.warnings == ("careful",)
    assert decode_outcome(encode_items(NO_SECRETS, [], [])).outcome == Ok([])


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"[1]", b"{}", b'{"page":{}}', b'{"failed":{}}', b"7", b'{"shown":[{}]}'],
)
def test_invalid_data_raises_value_error(data: bytes) -> None:
    with pytest.raises(ValueError):
        decode_outcome(data)


# ------------------------------------------------------------------ errors


def round_trip_error(error: ToolError, redaction: RedactionPolicy = NO_SECRETS) -> ToolError:
    data, _ = encode_outcome(redaction, Failed(error), "", [])
    outcome = decode_outcome(data).outcome
    assert isinstance(outcome, Failed)
    return outcome.error


def test_error_round_trip() -> None:
    error = SoldOut(
        "nothing left",
        field="item",
        suggestion=Suggestion("fix", "order less", argv=["shop", "order"]),
        details={"left": 0},
        exit_code=77,
    )
    found = round_trip_error(error)
    assert type(found) is SoldOut and found.to_dict() == error.to_dict()
    assert (found.exit_code, found.http_status) == (77, error.http_status)
    assert found.is_translated


def test_error_of_an_unknown_class_keeps_its_category() -> None:
    data, _ = encode_outcome(NO_SECRETS, Failed(SoldOut("none")), "", [])
    payload = json.loads(data)
    payload["failed"].update(kind="gone:Gone", category="human")
    outcome = decode_outcome(json.dumps(payload).encode()).outcome
    assert isinstance(outcome, Failed)
    assert (outcome.error.code, outcome.error.category) == ("E3901", "human")


# ------------------------------------------------------------------ secrets


@pytest.mark.parametrize(
    "value",
    [
        f"key={SECRET}",
        {"page": {"value": SECRET}},
        Page([SECRET], next_cursor=SECRET, total=1),
        Next([SECRET]).then("show", {"key": SECRET}, why=SECRET),
        [Link(f"https://example.org/?k={SECRET}", name=SECRET), SECRET],
    ],
    ids=["text", "object", "page", "next", "content"],
)
def test_secret_is_not_stored(value: Any) -> None:
    data = encode_value(value, WITH_SECRET, printed=f"printed {SECRET}")
    assert SECRET.encode() not in data and b"***" in data
    stored = decode_outcome(data)
    assert stored.printed == "printed ***"
    assert any("hidden in the result" in line for line in stored.warnings)


def test_secret_of_a_stream_is_not_stored() -> None:
    data = encode_items(WITH_SECRET, [json.dumps({"k": SECRET}).encode()], [f"about {SECRET}"])
    stored = decode_outcome(data)
    assert stored.outcome == Ok([{"k": "***"}])
    assert stored.warnings == ("about ***", "1 secret was hidden in the result")


def test_secret_of_an_error_is_not_stored() -> None:
    error = InputError(
        f"{SECRET} is wrong",
        suggestion=Suggestion(
            "fix", "again", argv=["app", SECRET], applicability="machine_applicable"
        ),
        details={"given": {SECRET}},
    )
    found = round_trip_error(error, WITH_SECRET)
    assert found.message == "*** is wrong" and found.details == {"given": ["***"]}
    assert found.suggestion is not None
    assert found.suggestion.argv == ["app", "***"]
    assert found.suggestion.applicability == "has_placeholders"


@pytest.mark.parametrize("word", ["value", "page", "items", "failed", "kind", "steps", "command"])
def test_secret_equal_to_a_format_name_keeps_outcome_readable(word: str) -> None:
    redaction = RedactionPolicy(secrets=[SecretInput(word)])
    assert replay({"a": f"my {word}"}, redaction) == {"a": "my ***"}
    page = replay(Page([word], next_cursor=None, total=1), redaction)
    assert isinstance(page, Page) and page.items == ["***"]
    assert isinstance(replay(Next(1).then("next-command"), redaction), Next)
    found = round_trip_error(InputError(word, code="E1000"), redaction)
    assert (found.code, found.message) == ("E1000", "***")


def test_value_without_the_secret_is_stored_unchanged() -> None:
    value = {"text": "\x1b[31mred\x1b[0m"}
    assert replay(value, WITH_SECRET) == value


# ------------------------------------------------------------------ types


@dataclass
class Point:
    x: int
    y: int = 0


def returns_point() -> Point:
    return Point(1)


def returns_points() -> Iterator[Point]:
    yield Point(1)


def returns_json() -> dict[str, list[int]]:
    return {}


def returns_unknown() -> Exception:
    return Exception()


@pytest.mark.parametrize(
    ("function", "value", "restored"),
    [
        (returns_point, {"x": 1, "y": 2}, Point(1, 2)),
        (returns_point, None, None),
        (returns_point, {"x": "no"}, {"x": "no"}),
        (returns_point, {"x": 1}, {"x": 1}),
        (returns_points, [{"x": 1, "y": 0}], [Point(1)]),
        (returns_json, {"a": [1]}, {"a": [1]}),
        (returns_unknown, "text", "text"),
    ],
)
def test_restored_value_has_the_annotated_type_if_it_is_valid(
    function: Any, value: Any, restored: Any
) -> None:
    tool = read_tool(function, app="shop", path=("act",), kwargs={})
    outcome_codec._validators.clear()
    assert restore_type(tool, value) == restored
    assert restore_type(tool, value) == restored  # from the cache
