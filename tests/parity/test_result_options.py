"""Pages, filters, selected fields and size limits have the same effect on every interface."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.parity.records_app import make_app, row

from tooli import Tooli
from tooli.annotations import ReadOnly
from tooli.testing import Case, assert_parity, invoke
from tooli.testing.app_interfaces import interfaces

LISTS = ("rows", "stream", "astream")
CASES = [
    *(
        Case(tool, {}, options)
        for tool in LISTS
        for options in (
            {"limit": 5},
            {"limit": 0},
            {"limit": 12},
            {"limit": 99},
            {"filter": "n >= 3 and kind == 'odd'"},
            {"filter": "owner.name == 'ada' or tags contains 't0'", "limit": 2},
            {"filter": "n > 100"},
            {"fields": "n,name"},
            {"fields": "owner.name, n as number, tags[0] as first", "limit": 3},
            {"filter": "not (n < 10)", "fields": "n", "limit": 1},
            {"max_items": 4},
            {"max_items": 12},
            {"max_items": 4, "limit": 6},
            {"limit": "x"},
            {"limit": -1},
            {"filter": "m > 1", "fields": "nme", "limit": 1.5},
            {"filter": "n > 'a'"},
            {"filter": "kind == 'evn'"},
            {"filter": "n >"},
            {"fields": "n,,name"},
            {"cursor": "nonsense"},
            {"cursor": ""},
            {"dry_run": True, "limit": 3},
            {"detailed": True, "limit": 3},
        )
    ),
    Case("rows", {"count": 0}, {"limit": 3}),
    Case("pages"),
    Case("pages", {}, {"limit": 0}),
    Case("pages", {}, {"limit": 3}),
    Case("source"),
    Case("source", {}, {"limit": 3}),
    Case("source", {"count": 3}),
    Case("source", {}, {"filter": "n == 2"}),
    Case("careless", {}, {"limit": 2}),
    Case("careless"),
    Case("text", {}, {"limit": 2}),
    Case("one", {}, {"fields": "whole"}),
    Case("one", {}, {"limit": 2}),
    Case("one", {}, {"filter": "whole > 3"}),
    Case("owned", {"limit": 4}),
    Case("owned", {"limit": 4}, {"limit": 2}, skip={"python": "the tool's own parameter wins"}),
    Case("onward", {}, {"limit": 3}),
]


@pytest.mark.parametrize(
    "case", [pytest.param(c, id=f"{c.tool} {dict(c.options)!r:.70}") for c in CASES]
)
def test_interfaces_agree(case: Case) -> None:
    assert_parity(make_app(), case)


def read_all_pages(interface: Any, tool: str, options: dict[str, Any], arguments: Any) -> list[Any]:
    """Return the envelopes of all pages."""
    pages: list[Any] = []
    while True:
        envelope = interface.send_case(Case(tool, arguments, options)).envelope
        assert envelope["ok"], envelope
        pages.append(envelope)
        cursor = envelope["meta"].get("page", {}).get("next_cursor")
        if cursor is None:
            return pages
        options = {**options, "cursor": cursor}
        assert len(pages) < 100


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    tool=st.sampled_from([*LISTS, "pages", "source", "careless"]),
    count=st.integers(0, 17),
    limit=st.integers(1, 19),
    filtered=st.sampled_from([None, "n > 2", "kind == 'odd'"]),
)
def test_pages_contain_all_records_on_every_interface(
    tool: str, count: int, limit: int, filtered: str | None
) -> None:
    app = make_app()
    keep = {None: lambda i: True, "n > 2": lambda i: i > 2, "kind == 'odd'": lambda i: i % 2}
    expected = [row(i) for i in range(count) if keep[filtered](i)]
    options: dict[str, Any] = {"limit": limit}
    if filtered is not None:
        options["filter"] = filtered
    for interface in interfaces(app):
        if interface.streams:
            continue
        pages = read_all_pages(interface, tool, options, {"count": count})
        records = [record for page in pages for record in page.get("result", [])]
        assert records == expected, interface.name
        for page in pages:
            assert len(page.get("result", [])) <= limit
            assert page["meta"]["page"].get("limit") == limit
        if filtered is None and tool in ("rows", "pages", "source"):
            assert all(page["meta"]["page"]["total"] == count for page in pages)


@pytest.mark.parametrize("tool", ["stream", "astream"])
def test_stream_is_not_read_beyond_the_page(tool: str) -> None:
    app = make_app()
    produced = app.__dict__["produced"]
    for interface in interfaces(app):
        answer = interface.send_case(Case(tool, {"count": 10**6}, {"limit": 10}))
        assert answer.envelope["result"] == [row(i) for i in range(10)], interface.name
        assert produced == list(range(10)), interface.name


def test_cursor_of_one_interface_works_on_another() -> None:
    app = make_app()
    paged_interfaces = [interface for interface in interfaces(app) if not interface.streams]
    first_page = paged_interfaces[0].send_case(Case("rows", {}, {"limit": 5})).envelope
    cursor = first_page["meta"]["page"]["next_cursor"]
    for interface in paged_interfaces:
        answer = interface.send_case(Case("rows", {}, {"limit": 5, "cursor": cursor}))
        assert answer.envelope["result"] == [row(i) for i in range(5, 10)], interface.name


def test_mcp_content_says_that_the_result_is_incomplete() -> None:
    """The model reads only the structured content or the text, not `_meta`."""
    from tooli.testing.app_interfaces import HandshakeInterface

    interface = HandshakeInterface(make_app())
    params = {"name": "pages", "arguments": {"count": 12}}
    result = interface._send("tools/call", params)["result"]
    meta = result["structuredContent"]["meta"]
    assert json.loads(result["content"][0]["text"])["meta"] == meta
    assert meta["page"] == result["_meta"]["io.tooli/meta"]["page"]
    assert (meta["page"]["limit"], meta["page"]["total"]) == (5, 12)
    assert "same arguments and cursor set to next_cursor" in meta["hint"]
    cursor = meta["page"]["next_cursor"]
    params["arguments"]["cursor"] = cursor
    result = interface._send("tools/call", params)["result"]
    assert [record["n"] for record in result["structuredContent"]["result"]] == [5, 6, 7, 8, 9]


@pytest.mark.parametrize("tool", ["dicts", "dict_stream"])
@pytest.mark.parametrize(
    ("options", "warning"),
    [
        ({"filter": "name == n1"}, "text needs quotes: name == 'n1'. Write name == \"n1\""),
        ({"filter": "size > ten"}, "'size' is a number: compare it with a value."),
        ({"filter": "nme == 'n1'"}, "did you mean 'name'? Write name == 'n1'"),
        ({"fields": "nme, size"}, "did you mean 'name'? Write name,size"),
    ],
)
def test_expression_that_does_not_fit_untyped_records(
    tool: str, options: dict[str, str], warning: str
) -> None:
    found = assert_parity(make_untyped_app(), Case(tool, {}, options))
    assert found["ok"]
    assert [line.endswith(warning) for line in found["meta"]["warnings"]] == [True]


def test_corrected_filter_is_a_next_step_of_a_reading_command() -> None:
    app = make_untyped_app()
    words = ["dicts", "--json", "--filter", "name == n1"]
    step = json.loads(invoke(app, *words).stdout)["meta"]["next"][-1]
    assert step["why"] == "The corrected filter."
    found = json.loads(invoke(app, *step["argv"][1:]).stdout)
    assert found["result"] == [{"name": "n1", "size": 1}]
    assert "warnings" not in found["meta"]
    step = json.loads(invoke(app, "dicts", "--json", "--select", "nme").stdout)["meta"]["next"][-1]
    assert json.loads(invoke(app, *step["argv"][1:]).stdout)["result"][0] == {"name": "n0"}


def make_untyped_app() -> Tooli:
    app = Tooli("untyped")

    @app.command(annotations=ReadOnly, auth=[])
    def dicts() -> list[dict]:
        """Return records without a schema."""
        return [{"name": f"n{i}", "size": i} for i in range(3)]

    @app.command(auth=[])
    def dict_stream() -> Iterator[dict]:
        """Yield records without a schema."""
        yield from dicts()

    return app
