"""A call of which some items succeed and others fail has the same answer on every interface."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Any, TypedDict

import pytest
from tests.http.asgi_client import post, send

from tooli import (
    Context,
    NotFoundError,
    Output,
    Partial,
    PartialFailure,
    SecretInput,
    TemporaryError,
    Tooli,
)
from tooli.annotations import ReadOnly
from tooli.testing import Case, assert_parity, invoke
from tooli.testing.app_interfaces import HandshakeInterface, StatelessInterface, interfaces

SECRET = "hunter2-hunter2"


class Item(TypedDict):
    name: str
    size: int


def fetch_all(names: list[str]) -> Partial[Item]:
    found: list[Item] = []
    failed: list[Any] = []
    for name in names:
        if name.startswith("gone"):
            failed.append((name, NotFoundError(f"There is no {name}.")))
        elif name.startswith("busy"):
            failed.append((name, TemporaryError("The shop is busy.")))
        elif name.startswith("bug"):
            failed.append((name, ValueError(SECRET)))
        else:
            found.append(Item(name=name, size=len(name)))
    return Partial(found, failed=failed)


def make_app() -> Tooli:
    app = Tooli("bulk", version="1.0")

    @app.command(annotations=ReadOnly)
    def fetch(names: list[str]) -> Partial[Item]:
        """Fetch items."""
        return fetch_all(names)

    @app.command(annotations=ReadOnly)
    async def afetch(names: list[str]) -> Partial[Item]:
        """Fetch items."""
        return fetch_all(names)

    @app.command(annotations=ReadOnly, timeout=30)
    def forked(names: list[str]) -> Partial[Item]:
        """Fetch items in a process of its own."""
        return fetch_all(names)

    @app.command(annotations=ReadOnly)
    def untyped(kind: str) -> Any:
        """Return failures in other forms."""
        failures: dict[str, Any] = {
            "none": (),
            "messages": ["too large", {"message": "gone", "code": "E3010", "item": 7}],
            "keys": {"a": "too large", "b": NotFoundError("gone")},
            "all": [("a", "no"), ("b", TemporaryError("busy"))],
            "invalid": [{"code": 3, "suggestion": 5}, None],
        }
        return Partial([] if kind == "all" else [1], failed=failures[kind])

    @app.command(annotations=ReadOnly)
    def items(count: int, bad: int) -> Iterator[int]:
        """Yield items, and fail at one of them."""
        for number in range(count):
            if number == bad:
                raise NotFoundError(f"There is no {number}.")
            yield number

    @app.command(annotations=ReadOnly)
    async def aitems(count: int, bad: int) -> AsyncIterator[int]:
        """Yield items, and fail at one of them."""
        for item in items(count, bad):
            yield item

    return app


NAMES = {"names": ["apple", "gone-1", "fig", "busy-1"]}


@pytest.mark.parametrize("tool", ["fetch", "afetch", "forked"])
@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        (NAMES, {}),
        (NAMES, {"filter": "size > 3"}),
        (NAMES, {"fields": "name"}),
        (NAMES, {"max_items": 1}),
        ({"names": ["apple", "fig"]}, {}),
        ({"names": ["gone-1", "gone-2"]}, {}),
        ({"names": ["busy-1"]}, {}),
        ({"names": ["bug", "apple"]}, {}),
    ],
)
def test_interfaces_agree(
    tool: str, arguments: Mapping[str, Any], options: Mapping[str, Any]
) -> None:
    found = assert_parity(make_app(), Case(tool, arguments, options))
    failed = [name for name in arguments["names"] if "-" in name or name == "bug"]
    assert found["ok"] is not bool(failed)
    if failed:
        assert found["error"]["code"] == "E4070"
        assert [entry["item"] for entry in found["error"]["details"]["errors"]] == failed


@pytest.mark.parametrize("kind", ["none", "messages", "keys", "all", "invalid"])
def test_forms_of_failures(kind: str) -> None:
    found = assert_parity(make_app(), Case("untyped", {"kind": kind}))
    assert found["ok"] is (kind == "none")
    if kind == "none":
        assert found["result"] == [1]
        return
    details = found["error"]["details"]
    assert details["summary"]["failed"] == len(details["errors"]) == 2
    assert all(entry["message"] and entry["code"] for entry in details["errors"])
    assert found["error"]["is_retryable"] is False


@pytest.mark.parametrize("tool", ["items", "aitems"])
@pytest.mark.parametrize("options", [{}, {"filter": "value != 0"}, {"limit": 2}, {"limit": 9}])
def test_stream_that_fails_keeps_its_items(tool: str, options: dict[str, Any]) -> None:
    options = {} if "filter" in options else options  # numbers have no fields
    found = assert_parity(make_app(), Case(tool, {"count": 5, "bad": 3}, options))
    if options.get("limit") == 2:
        assert found["ok"]  # the page is full before the failure
        return
    assert found["result"] == [0, 1, 2]
    assert found["error"]["code"] == "E3010"
    assert found["error"]["details"] == {"items_before_failure": 3}


def test_failure_before_the_first_item_has_no_result() -> None:
    found = assert_parity(make_app(), Case("items", {"count": 5, "bad": 0}))
    assert found.keys() == {"ok", "error", "meta"}


def test_summary_and_suggestion() -> None:
    app = make_app()
    error = app.call("fetch", **NAMES).error
    assert error is not None
    assert error.details is not None
    assert error.details["summary"] == {"total": 4, "succeeded": 2, "failed": 2, "retryable": 1}
    done = invoke(app, "fetch", *NAMES["names"], mode="json")
    assert done.exit_code == 60
    suggestion = done.envelope["error"]["suggestion"]
    assert suggestion["argv"][1:4] == ["fetch", "gone-1", "busy-1"]
    again = invoke(app, *suggestion["argv"][1:], mode="json").envelope
    assert again["error"]["details"]["summary"]["total"] == 2
    assert "suggestion" not in again["error"]  # nothing is left out


def test_python_has_both() -> None:
    result = make_app().call("fetch", **NAMES)
    assert not result.ok
    assert result.result == [{"name": "apple", "size": 5}, {"name": "fig", "size": 3}]
    with pytest.raises(PartialFailure, match="2 of 4 items failed"):
        result.unwrap()
    received: list[Any] = []
    with pytest.raises(PartialFailure):
        received.extend(make_app().stream("fetch", **NAMES))
    assert received == result.result


@pytest.mark.parametrize("mode", ["text", "plain", "csv"])
def test_text_modes_show_both(mode: str) -> None:
    done = invoke(make_app(), "fetch", *NAMES["names"], "--output", mode)
    assert done.exit_code == 60
    assert [name for name in ("apple", "fig", "gone") if name in done.stdout] == ["apple", "fig"]
    assert "2 of 4 items failed." in done.stderr
    assert "There is no gone-1." in done.stderr
    assert "The shop is busy." in done.stderr


def test_one_failure_is_shown_in_text() -> None:
    done = invoke(make_app(), "fetch", "gone-1", "fig", "--output", "text")
    assert "There is no gone-1." in done.stderr


async def test_http_status_is_multi_status() -> None:
    response = await post(make_app().asgi(), "fetch", NAMES)
    assert response.status == 207
    assert response.json()["ok"] is False
    assert len(response.json()["result"]) == 2


async def test_openapi_describes_the_items_of_a_failure() -> None:
    document = (await send(make_app().asgi(), "GET", "/openapi.json")).json()
    schemas = document["components"]["schemas"]
    assert schemas["CallFailure"]["properties"]["result"]["type"] == "array"


@pytest.mark.parametrize("interface_class", [HandshakeInterface, StatelessInterface])
def test_mcp_structured_content_has_both(interface_class: type[Any]) -> None:
    interface = interface_class(make_app())
    reply = interface._send("tools/call", {"name": "fetch", "arguments": NAMES})["result"]
    assert reply["isError"] is True
    content = reply["structuredContent"]
    assert [item["name"] for item in content["result"]] == ["apple", "fig"]
    assert content["meta"]["error"]["details"]["summary"]["failed"] == 2
    text = json.loads(reply["content"][0]["text"])
    assert text["result"] == content["result"]


@pytest.mark.parametrize("tool", ["fetch", "afetch", "forked"])
async def test_servers_mask_unexpected_failures(
    tool: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR, "tooli.error")
    response = await post(make_app().asgi(), tool, {"names": ["bug", "apple"]})
    assert SECRET.encode() not in response.body
    (entry,) = response.json()["error"]["details"]["errors"]
    assert entry["message"].startswith("The command failed unexpectedly")
    assert any(SECRET in str(record.exc_text) for record in caplog.records)


def test_secrets_are_redacted() -> None:
    app = Tooli("bulk")

    @app.command(annotations=ReadOnly)
    def leak(key: SecretInput[str]) -> Partial[str]:
        """Return a secret."""
        return Partial([key.reveal()], failed=[(key.reveal(), f"{key.reveal()} is wrong")])

    for interface in interfaces(app):
        if interface.surface == "python" and interface.streams:
            continue  # Python code gets the values themselves
        response = interface.send_case(Case("leak", {"key": SECRET}, argv=[]))
        assert SECRET not in json.dumps(response.envelope), interface.name


def test_output_file_is_kept(tmp_path: Path) -> None:
    app = Tooli("bulk")

    @app.command()
    def write(path: Output) -> Partial[str]:
        """Write a file."""
        path.write_text("done")
        return Partial(["a"], failed=[("b", "no")])

    @app.command()
    def other(path: Output) -> None:
        """Write a file, and fail."""
        path.write_text("done")
        raise NotFoundError("no")

    assert not app.call("write", path=str(tmp_path / "a")).ok
    assert (tmp_path / "a").read_text() == "done"
    assert not app.call("other", path=str(tmp_path / "b")).ok
    assert not (tmp_path / "b").exists()


@pytest.mark.parametrize("tool", ["fetch", "items"])
def test_replay_returns_both(tool: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLI_STATE_DIR", str(tmp_path))
    app = make_app()
    arguments: Any = NAMES if tool == "fetch" else {"count": 5, "bad": 3}
    options = {"filter": "size > 3"} if tool == "fetch" else {}
    run = app.options(idempotency_key="k1", **options)
    first = run.call(tool, **arguments)
    replayed = run.call(tool, **arguments)
    whole = app.options(idempotency_key="k1").call(tool, **arguments)
    assert replayed.meta["idempotency"]["replayed"]
    assert replayed.result == first.result
    assert replayed.error is not None
    assert first.error is not None
    assert replayed.error.details == first.error.details
    assert first.result == ([{"name": "apple", "size": 5}] if tool == "fetch" else [0, 1, 2])
    assert len(whole.result) == (2 if tool == "fetch" else 3)


def test_size_limit_cuts_the_items() -> None:
    app = make_app()
    names = [*(f"name-{number:04}" for number in range(300)), "gone-1"]
    found = app.options(max_bytes=4000).call("fetch", names=names)
    assert not found.ok
    assert found.error is not None
    assert found.error.code == "E4070"
    assert found.meta["truncated"]["total"] == 300
    assert 0 < len(found.result) < 300
    assert len(found.model_dump_json()) <= 4000


@pytest.mark.parametrize("mode", ["text", "plain"])
def test_text_modes_say_that_there_are_more(mode: str) -> None:
    names = [f"gone-{number}" for number in range(202)]
    assert "and 2 more" in invoke(make_app(), "fetch", *names, "--output", mode).stderr


def test_many_failures_are_counted() -> None:
    found = make_app().call("fetch", names=[f"gone-{number}" for number in range(500)])
    assert found.error is not None
    details = found.error.details
    assert details is not None
    assert len(details["errors"]) == 200
    assert details["summary"]["failed"] == 500


def test_page_of_a_partial_result_has_a_cursor() -> None:
    app = make_app()
    found = app.options(limit=1).call("fetch", **NAMES)
    assert found.error is not None
    assert (len(found.result), found.meta["page"]["total"]) == (1, 2)


def test_context_is_injected_as_usual() -> None:
    app = Tooli("bulk")

    @app.command(annotations=ReadOnly)
    def run(ctx: Context) -> Partial[int]:
        """Warn, and fail."""
        ctx.warn("careful")
        return Partial([1], failed=["no"])

    found = assert_parity(app, Case("run"))
    assert found["meta"]["warnings"] == ["careful"]
