"""YAML of others: values, errors with lines, and the limits of nesting, aliases and numbers."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from typing import Any

import pytest
import yaml

from tooli.text import yaml_reader
from tooli.text.yaml_reader import YamlError, read_yaml

_LEVELS = "\n".join(
    f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10 if i else 'x' * 10)}]" for i in range(9)
)
_MERGED = "a0: &a0 {k: v}\n" + "\n".join(
    f"a{i}: &a{i} {{<<: [{', '.join([f'*a{i - 1}'] * 10)}]}}" for i in range(1, 9)
)


@pytest.fixture(params=["libyaml", "python"], autouse=True)
def parser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Parse with libyaml, and in Python."""
    if request.param == "python":
        monkeypatch.delattr(yaml, "CSafeLoader", raising=False)
    elif not hasattr(yaml, "CSafeLoader"):
        pytest.skip("PyYAML was built without libyaml")
    yaml_reader._loader_class.cache_clear()
    yield
    yaml_reader._loader_class.cache_clear()


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("a: [1, x]\nb: {c: 1.5, d: null}", {"a": [1, "x"], "b": {"c": 1.5, "d": None}}),
        ("a: 2024-01-02", {"a": date(2024, 1, 2)}),
        ("a: &a {k: 1}\nb: {<<: *a, c: *a}", {"a": {"k": 1}, "b": {"k": 1, "c": {"k": 1}}}),
        ("2: a\ntrue: b", {2: "a", True: "b"}),
    ],
)
def test_values(text: str, value: object) -> None:
    assert read_yaml(text) == value
    assert read_yaml(text.encode()) == value


def test_dates_as_text() -> None:
    assert read_yaml("a: 2024-01-02", has_dates=False) == {"a": "2024-01-02"}


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("a: 1\nb: ]", 2, "did not find|expected"),
        ("a: 1\n---\nb: 2", 2, "another document"),
        ("a: 1\nb: !!python/object:os.system x", 2, "could not determine a constructor"),
        ("a: *b", 1, "undefined alias"),
        ("a: 2001-99-99", None, "month must be in 1..12"),
        ("a: !!bool x", None, "it cannot be parsed"),
        (b"a: \xc3\x28", None, "."),
        ("a: \x00", None, "."),
        ("a: &a [*a]", 1, "'a' is a part of what it refers to"),
        ("a: 1\nb: 1" + ":59" * 4_000, 2, "a number has more than 4,000 digits"),
        ("a: " + "1" * 4_001, 1, "a number has more than 4,000 digits"),
        ("\n".join(f"{n}: x" for n in range(2_001)), 1, "more than 2,000 keys that are not text"),
        (_LEVELS, None, "it has more than 4,000,000 values"),
        (_MERGED, None, "it has more than 4,000,000 values"),
        ("[" * 152 + "]" * 152, 1, "it is nested too deeply"),
        ("[" * 100_000, 1, "it is nested too deeply"),
        ("- " * 100_000 + "x", 1, "it is nested too deeply"),
        ("{a: " * 100_000, 1, "it is nested too deeply"),
    ],
)
def test_errors(text: Any, line: int | None, message: str) -> None:
    with pytest.raises(YamlError, match=message) as caught:
        read_yaml(text)
    assert line in (None, caught.value.line)


def test_limits_are_inclusive(monkeypatch: pytest.MonkeyPatch) -> None:
    assert read_yaml("[" * 151 + "]" * 151)
    assert len(read_yaml("\n".join(f"{n}: x" for n in range(2_000)))) == 2_000
    assert len(read_yaml("\n".join(f"k{n}: x" for n in range(2_001)))) == 2_001
    monkeypatch.setattr(yaml_reader, "MAX_YAML_VALUES", 4)
    assert read_yaml("[&a x, *a, *a]") == ["x"] * 3
    with pytest.raises(YamlError, match="more than 4 values"):
        read_yaml("[&a x, *a, *a, *a]")


def test_recursion_of_the_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: object) -> None:
        raise RecursionError

    monkeypatch.setattr(yaml_reader._loader_class(True), "get_single_data", fail)
    with pytest.raises(YamlError, match="nested too deeply"):
        read_yaml("a: 1")
