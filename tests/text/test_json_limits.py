"""The limits of JSON texts, compared with what the decoder returns."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from tooli.text import json_limits
from tooli.text.json_limits import JsonLimitError, check_json_limits
from tooli.text.jsonable import MAX_JSON_DEPTH


def nest(depth: int, value: Any = 1) -> Any:
    for _ in range(depth):
        value = [value]
    return value


def count_containers(value: Any) -> int:
    if isinstance(value, dict):
        value = list(value.values())
    return 1 + sum(map(count_containers, value)) if isinstance(value, list) else 0


def is_accepted(data: bytes, **options: int) -> bool:
    try:
        check_json_limits(data, **options)
    except JsonLimitError:
        return False
    return True


class TestDepth:
    def test_depth_is_limited(self) -> None:
        check_json_limits(json.dumps(nest(MAX_JSON_DEPTH - 1)).encode())
        with pytest.raises(JsonLimitError, match="is nested too deeply"):
            check_json_limits(json.dumps(nest(MAX_JSON_DEPTH)).encode())

    def test_containers_around_the_value(self) -> None:
        data = json.dumps({"params": {"arguments": nest(MAX_JSON_DEPTH - 1)}}).encode()
        assert not is_accepted(data)
        assert is_accepted(data, outer_depth=2)

    def test_neighbours_are_not_nested(self) -> None:
        assert is_accepted(json.dumps([nest(100), {"a": nest(100)}] * 100).encode())

    @pytest.mark.parametrize("text", ["[" * 1000, "{" * 1000, '{"a":[' * 500, "]" * 9 + "[" * 1000])
    def test_invalid_text(self, text: str) -> None:
        assert not is_accepted(text.encode())


class TestContainers:
    @pytest.fixture(autouse=True)
    def low_limit(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(json_limits, "MAX_JSON_CONTAINERS", 1000)

    @pytest.mark.parametrize("value", [[], {}, [{}], {"a": []}])
    def test_number_is_limited(self, value: Any) -> None:
        items = 999 // count_containers(value)
        assert is_accepted(json.dumps([value] * items).encode())
        with pytest.raises(JsonLimitError, match="more than 1,000 lists and objects"):
            check_json_limits(json.dumps([value] * (items + 1)).encode())

    @pytest.mark.parametrize(
        "text",
        ["[{" * 2000, '"[{' * 999, "\\[" * 999, '\\"{' * 999, "\\\\", '\\\\"[[' * 999, "ä[" * 999],
    )
    def test_brackets_in_strings_do_not_count(self, text: str) -> None:
        assert is_accepted(json.dumps([text] * 3).encode())
        assert is_accepted(json.dumps({text: [text]}, ensure_ascii=False).encode())

    @pytest.mark.parametrize("text", ['"', "\\", '\\"', "\\\\", '\\\\"', "\\" * 7, '"[', '\\"]'])
    def test_no_string_hides_brackets(self, text: str) -> None:
        """The count is right whatever a string before the brackets contains."""
        for items in ([text, *[[]] * 999], [*[text] * 3, *[[]] * 999], [{text: text}, *[[]] * 998]):
            assert is_accepted(json.dumps(items).encode())
            assert not is_accepted(json.dumps([*items, []]).encode())

    def test_random_values(self) -> None:
        rng = random.Random(7)
        parts = ['"', "\\", "[", "]", "{", "}", ",", ":", "x", "ä", "\n", "\x00", "\u2022"]

        def make(depth: int) -> Any:
            kind = rng.randrange(4 if depth else 2)
            if kind == 2:
                return [make(depth - 1) for _ in range(rng.randrange(9))]
            if kind == 3:
                return {make(0): make(depth - 1) for _ in range(rng.randrange(9))}
            return "".join(rng.choices(parts, k=rng.randrange(9)))

        for _ in range(300):
            value = [make(4) for _ in range(rng.randrange(120))]
            count = count_containers(value) + 151
            value = [*[[]] * 150, value]
            json_limits.MAX_JSON_CONTAINERS = count
            data = json.dumps(value, ensure_ascii=rng.random() < 0.5).encode()
            assert is_accepted(data)
            json_limits.MAX_JSON_CONTAINERS = count - 1
            assert not is_accepted(data)
