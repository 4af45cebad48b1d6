"""Sources under a name."""

from __future__ import annotations

from pathlib import Path

import pytest

from tooli.errors import InputError, NotFoundError
from tooli.sources import named_sources
from tooli.sources.kept_sources import KeptSource
from tooli.sources.named_sources import resolve
from tooli.sources.source_grammar import SourceOptions, parse_source


class Point:
    def __init__(self, name: str, value: str) -> None:
        self.name = name
        self.value = value


@pytest.fixture(autouse=True)
def names(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = parse_source("openapi:/a.json", SourceOptions(auth="env:KEY")).replace(name="shop")
    monkeypatch.setattr(
        named_sources, "load_kept_sources", lambda: {"shop": KeptSource("shop", kept)}
    )
    points = [Point("stock", "stock.cli:app [extra]"), Point("shop", "other:app")]
    monkeypatch.setattr(named_sources, "entry_points", lambda group: points)


def test_kept_sources_come_first() -> None:
    assert resolve(parse_source("@shop")).target == "/a.json"
    found = resolve(parse_source("@stock"))
    assert (found.kind, found.target, found.name) == ("app", "stock.cli:app", "stock")


def test_unknown_name() -> None:
    with pytest.raises(NotFoundError, match="did you mean 'stock'"):
        resolve(parse_source("@stocks"))


def test_only_options_that_select_tools_are_allowed() -> None:
    resolve(parse_source("@shop", SourceOptions(include=("a",), read_only=True)))
    for options in (
        SourceOptions(base_url="http://other.example"),
        SourceOptions(headers=(("A", "b"),)),
    ):
        with pytest.raises(InputError, match="cannot be given with @shop"):
            resolve(parse_source("@shop", options))


def test_installed_apps_are_not_imported(tmp_path: Path) -> None:
    assert list(named_sources.installed_apps()) == ["stock", "shop"]
