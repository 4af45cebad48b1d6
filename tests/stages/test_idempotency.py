"""Idempotency keys: one run per key, and the outcome that a repeated call gets."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import pydantic
import pytest
from tests.stages.stage_calls import make_call, make_context, pass_through

from tooli import Context, SecretInput, Tooli, dry_run_support, record_dry_action
from tooli.annotations import Destructive, Idempotent, ReadOnly
from tooli.core.call import Call, Caller, Failed, Ok, Options
from tooli.core.result_types import Image, Link, Next, Page
from tooli.errors import (
    ApprovalRequired,
    AuthError,
    ConflictError,
    StateError,
    Suggestion,
    TimeoutExceeded,
)
from tooli.pipeline.drivers import run
from tooli.schema.detail_fields import Detail
from tooli.stages import idempotency
from tooli.stages.idempotency import run_once
from tooli.storage import idempotency_sqlite
from tooli.storage.idempotency_sqlite import SqliteIdempotencyStore
from tooli.storage.idempotency_store import NewAttempt, StoreUnavailable
from tooli.testing import invoke
from tooli.testing.app_interfaces import Case, interfaces, send_request
from tooli.testing.assertions import without_volatile_fields


@pytest.fixture(autouse=True)
def state_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Use a separate store for each test."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    (tmp_path / "tooli").mkdir()
    yield tmp_path / "tooli"
    for store in idempotency_sqlite._open_stores.values():
        store.close()
    idempotency_sqlite._open_stores.clear()


class User(pydantic.BaseModel):
    name: str
    tags: set[str] = set()


@dataclass
class Point:
    x: int
    where: Path


class Person(pydantic.BaseModel):
    name: str
    notes: Annotated[str, Detail]


class SoldOut(ConflictError):
    code = "E3901"


class Shop:
    """An app whose tools count their runs."""

    def __init__(self, **settings: Any) -> None:
        self.app = Tooli("shop", version="1.0", **settings)
        self.runs = 0
        self.app.command("other")(lambda: None)

    def add(self, fn: Any, name: str = "do", **settings: Any) -> Shop:
        self.app.command(name, **settings)(fn)
        return self

    def count_run(self) -> int:
        self.runs += 1
        return self.runs


@pytest.fixture
def shop() -> Shop:
    return Shop()


RESULTS: dict[str, Any] = {
    "text": "done",
    "nothing": None,
    "number": 1.5,
    "list": [{"a": 1}, {"a": None}],
    "tuple": (1, "two"),
    "bytes": b"\xff\x00",
    "name": "broken \udc80 name",
    "model": User(name="ann", tags={"b", "a"}),
    "models": [User(name="ann")],
    "point": Point(1, Path("/tmp")),
    "nan": [float("nan")],
    "object": [object.__new__(type("Odd", (), {"__str__": lambda self: "odd"}))],
    "picture": Image(b"\x89PNG"),
    "mixed": ["see", Link("file:///x", "x")],
}


@pytest.mark.parametrize("kind", RESULTS)
def test_every_interface_gets_the_stored_result(shop: Shop, kind: str) -> None:
    def do(order: str) -> Any:
        shop.count_run()
        return RESULTS[kind]

    shop.add(do)
    _assert_same_replays(shop)


def _assert_same_replays(shop: Shop) -> None:
    """Assert that each interface returns the same with a key, and that only the first call runs."""
    arguments = {"order": "a"}
    expected_answers = [
        interface.send_case(Case("do", arguments)) for interface in interfaces(shop.app)
    ]
    shop.runs = 0
    keyed = Case("do", arguments, {"idempotency_key": "k1"})
    first_runs: set[str] = set()
    for number, (interface, expected) in enumerate(
        zip(interfaces(shop.app), expected_answers, strict=True)
    ):
        assert interface.skip_reason(keyed) is None
        answer = interface.send_case(keyed)
        idempotency_meta = answer.envelope.get("meta", {}).pop("idempotency", None)
        assert without_volatile_fields(answer.envelope) == without_volatile_fields(
            expected.envelope
        ), interface.name
        assert answer.exit_code == expected.exit_code
        if not interface.streams:
            assert (idempotency_meta["key"], idempotency_meta["replayed"]) == ("k1", number > 0), (
                interface.name
            )
            first_runs.add(idempotency_meta["first_run"])
    assert len(first_runs) == 1
    assert shop.runs == 1


def test_failure_is_stored_and_replayed_on_every_interface(shop: Shop) -> None:
    def do(order: str) -> None:
        shop.count_run()
        raise SoldOut(
            "gone",
            field="order",
            details={"left": 0},
            exit_code=21,
            suggestion=Suggestion("abort", "Buy something else."),
        )

    shop.add(do)
    _assert_same_replays(shop)
    with pytest.raises(SoldOut) as caught:
        shop.app.call("do", order="a", idempotency_key="k1").unwrap()
    assert (caught.value.exit_code, caught.value.http_status) == (21, 409)


def test_unexpected_exception_is_stored(shop: Shop) -> None:
    def do() -> None:
        shop.count_run()
        raise ZeroDivisionError("oh")

    shop.add(do)
    first = shop.app.call("do", idempotency_key="k")
    second = shop.app.call("do", idempotency_key="k")
    assert first.error and second.error and first.error.to_dict() == second.error.to_dict()
    assert shop.runs == 1


def test_printed_text_is_replayed_on_every_interface_that_shows_it(shop: Shop) -> None:
    def do(order: str):
        shop.count_run()
        print("paid", order)

    shop.add(do)
    case = Case("do", {"order": "a"}, {"idempotency_key": "k1"})
    shown = [
        interface
        for interface in interfaces(shop.app)
        if interface.surface != "python" and not interface.streams
    ]
    answers = [interface.send_case(case).envelope["result"] for interface in shown]
    assert len(answers) > 3
    assert set(answers) == {"paid a"}
    assert shop.runs == 1


def test_iterator_in_a_result_is_returned_to_the_first_caller(shop: Shop) -> None:
    def do() -> dict[str, Any]:
        return {"inner": iter([1, 2])}

    shop.add(do)
    for _ in "ab":
        assert shop.app.call("do", idempotency_key="k").to_dict()["result"] == {"inner": [1, 2]}


def _cyclic_list() -> list[Any]:
    items: list[Any] = [1]
    items += [items, items]
    return items


def _nested_list(levels: int) -> list[Any]:
    items: list[Any] = []
    for _ in range(levels):
        items = [items]
    return items


@pytest.mark.parametrize(
    "value",
    [_cyclic_list(), _nested_list(300), _nested_list(5000)],
    ids=["cyclic", "deep", "very deep"],
)
def test_cyclic_and_deep_values_are_stored_as_they_are_encoded(shop: Shop, value: Any) -> None:
    def do() -> Any:
        shop.count_run()
        return value

    shop.add(do)
    expected_answers = without_volatile_fields(shop.app.call("do").to_dict())
    for replayed in (False, True):
        answer = shop.app.call("do", idempotency_key="k").to_dict()
        assert answer["meta"].pop("idempotency")["replayed"] is replayed
        assert without_volatile_fields(answer) == expected_answers
    assert shop.runs == 2


def test_result_that_cannot_be_encoded_is_not_stored(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> Any:
        raise RuntimeError("no")

    monkeypatch.setattr("tooli.storage.outcome_codec._encode_value", fail)
    shop.add(lambda: shop.count_run(), "do")
    first = shop.app.call("do", idempotency_key="k")
    assert (first.result, first.meta["idempotency"]["kept"]) == (1, False)
    assert "could not be stored" in first.meta["warnings"][0]
    second = shop.app.call("do", idempotency_key="k").error
    assert (second.code, second.details["done"], shop.runs) == ("E3052", True, 1)


SECRET = "hunter2hunter2"


@pytest.mark.parametrize("kind", ["value", "number", "split", "page", "next", "shown", "error"])
def test_secret_is_not_stored(shop: Shop, state_dir: Path, kind: str) -> None:

    def do(pw: SecretInput[str], number: SecretInput[int], ctx: Context) -> Any:
        shop.count_run()
        ctx.warn(f"used {pw.reveal()}")
        text = f"as {pw.reveal()}"
        if kind == "error":
            raise ConflictError(text, details={text: [text]}, suggestion=Suggestion("fix", text))
        return {
            "value": {text: (text, User(name=text))},
            "number": {"n": number.reveal()},
            "split": f"as {SECRET[:4]}\x1b[31m{SECRET[4:]}",
            "page": Page([text]),
            "next": Next([text], "other", {}, why=text),
            "shown": [text, Link("file:///x", text)],
        }[kind]

    shop.add(do)
    argv = ["do", "env:PW", "env:NO", "--idempotency-key=k", "--json"]
    first = invoke(shop.app, *argv, env={"PW": SECRET, "NO": "71077345"})
    second = invoke(shop.app, *argv, env={"PW": SECRET, "NO": "71077345"})
    shown = [done.envelope for done in (first, second)]
    assert [one["meta"].pop("idempotency")["replayed"] for one in shown] == [False, True]
    warnings = [one["meta"].pop("warnings") for one in shown]
    assert all(["used ***" in one and "hidden in the" in one[-1] for one in warnings]), warnings
    assert without_volatile_fields(shown[0]) == without_volatile_fields(shown[1])
    assert "***" in second.stdout
    assert shop.runs == 1
    for store in idempotency_sqlite._open_stores.values():
        store.close()
    stored = b"".join([path.read_bytes() for path in state_dir.iterdir() if path.is_file()])
    assert SECRET[4:].encode() not in stored and b"71077345" not in stored


def test_changed_secret_at_the_same_location_is_another_call(shop: Shop, tmp_path: Path) -> None:
    class Login(pydantic.BaseModel):
        pw: SecretInput[str]

    def one(pw: SecretInput[str]) -> str:
        return "done"

    def several(pws: list[SecretInput[str]]) -> str:
        return "done"

    for name, function in (("one", one), ("several", several)):
        shop.app.command(name)(function)
        argv = [name, "env:PW", f"--idempotency-key={name}", "--json"]
        codes = [
            (invoke(shop.app, *argv, env={"PW": value}).envelope.get("error") or {}).get("code")
            for value in (SECRET, SECRET, "another one by now")
        ]
        assert codes == [None, None, "E3050"], name

    def nested(login: Login) -> str:
        return "done"

    nested.__annotations__["login"] = Login
    shop.app.command("nested")(nested)
    errors = [
        shop.app.call("nested", login={"pw": value}, idempotency_key="n").error
        for value in (SECRET, SECRET, "another one by now")
    ]
    assert [error and error.code for error in errors] == [None, None, "E3050"]


def test_replayed_error_of_the_function_is_not_logged_as_a_denial(state_dir: Path) -> None:
    shop = Shop()

    def do(pw: SecretInput[str]) -> None:
        raise AuthError(f"the server refused {pw.reveal()}")

    shop.add(do, annotations=Destructive)
    for _ in "ab":
        error = shop.app.call("do", pw=SECRET, yes=True, idempotency_key="k").error
        assert error.message == "the server refused ***"
    log_text = (state_dir / "audit" / "shop.jsonl").read_text()
    assert SECRET not in log_text
    events = [json.loads(line)["event"] for line in log_text.splitlines()]
    assert events == ["destructive_run"] * 2


def test_warnings_are_replayed(shop: Shop) -> None:
    def do(ctx: Context) -> int:
        ctx.warn("mind the gap")
        return 1

    shop.add(do)
    for _ in "ab":
        assert shop.app.call("do", idempotency_key="k").meta["warnings"] == ["mind the gap"]


def test_replayed_result_in_python_has_the_annotated_type(shop: Shop) -> None:
    def do() -> list[User]:
        return [User(name="ann", tags={"x"})]

    def point() -> Point:
        return Point(1, Path("/tmp"))

    shop.add(do).add(point, "point")
    for name in ("do", "point"):
        first = shop.app.call(name, idempotency_key="k").result
        second = shop.app.call(name, idempotency_key="k")
        assert second.meta["idempotency"]["replayed"]
        assert second.result == first and type(second.result) is type(first)


def test_pages_and_next_steps_are_replayed(shop: Shop) -> None:
    def page(ctx: Context) -> Page[int]:
        shop.count_run()
        start = int(ctx.page.cursor or 0)
        return Page([start, start + 1], next_cursor=str(start + 2), total=9)

    def next_steps() -> Next[list[int]]:
        shop.count_run()
        return Next([1], "other", {}, why="because")

    shop.add(page, "page").add(next_steps, "next_steps")
    for name in ("page", "next_steps"):
        first = shop.app.call(name, idempotency_key="k", limit=2).to_dict()
        second = shop.app.call(name, idempotency_key="k", limit=2).to_dict()
        assert first["result"] == second["result"]
        assert first["meta"]["next"] == second["meta"]["next"]
    assert shop.runs == 2
    cursor = shop.app.call("page", idempotency_key="k", limit=2).meta["page"]["next_cursor"]
    other = shop.app.call("page", idempotency_key="k", cursor=cursor, limit=2)
    assert other.error is not None and other.error.code == "E3050"  # another page is another call


def test_result_options_apply_to_a_replay(shop: Shop) -> None:
    def do() -> list[dict[str, int]]:
        shop.count_run()
        return [{"n": n, "m": -n} for n in range(5)]

    shop.add(do)
    first = shop.app.call("do", idempotency_key="k", limit=2, fields="n")
    assert first.result == [{"n": 0}, {"n": 1}]
    cursor = first.meta["page"]["next_cursor"]
    rest = shop.app.call("do", idempotency_key="k", limit=2, fields="n", cursor=cursor)
    assert rest.result == [{"n": 2}, {"n": 3}]
    assert len(shop.app.call("do", idempotency_key="k").unwrap()) == 5
    assert shop.runs == 1


# ------------------------------------------------------------------ streams


def make_stream(shop: Shop) -> Any:
    def do(count: int) -> Iterator[dict[str, int]]:
        shop.count_run()
        for number in range(count):
            yield {"n": number}

    return do


def test_stream_is_replayed_item_by_item(shop: Shop) -> None:
    shop.add(make_stream(shop))
    items = [{"n": 0}, {"n": 1}]
    assert list(shop.app.stream("do", count=2, idempotency_key="k")) == items
    assert list(shop.app.stream("do", count=2, idempotency_key="k")) == items
    assert shop.app.call("do", count=2, idempotency_key="k").result == items
    assert shop.runs == 1
    _assert_same_items(shop)


def _assert_same_items(shop: Shop) -> None:
    case = Case("do", {"count": 2}, {"idempotency_key": "k"})
    for interface in interfaces(shop.app):
        assert interface.send_case(case).envelope["result"] == [{"n": 0}, {"n": 1}], interface.name
    assert shop.runs == 1


def test_async_stream_is_stored(shop: Shop) -> None:
    async def do(count: int) -> Any:
        shop.count_run()
        for number in range(count):
            yield {"n": number}

    shop.add(do)

    async def collect() -> list[Any]:
        return [item async for item in shop.app.astream("do", count=2, idempotency_key="k")]

    assert asyncio.run(collect()) == asyncio.run(collect()) == [{"n": 0}, {"n": 1}]
    _assert_same_items(shop)


def test_stream_with_a_limit_runs_to_its_end(shop: Shop) -> None:
    ended: list[int] = []

    def do(count: int) -> Iterator[dict[str, int]]:
        yield from make_stream(shop)(count)
        ended.append(count)

    shop.add(do)
    arguments = {"count": 5, "idempotency_key": "k"}
    first = shop.app.call("do", **arguments, limit=2)
    assert (first.result, ended) == ([{"n": 0}, {"n": 1}], [5])
    cursor = first.meta["page"]["next_cursor"]
    rest = shop.app.call("do", **arguments, limit=2, cursor=cursor)
    assert (rest.result, rest.meta["idempotency"]["replayed"]) == ([{"n": 2}, {"n": 3}], True)
    assert list(shop.app.stream("do", **arguments, limit=1)) == [{"n": 0}]
    assert len(shop.app.call("do", **arguments).unwrap()) == 5
    assert shop.runs == 1


@pytest.mark.parametrize("limits", [{"max_bytes": 100}, {"max_items": 2}, {"filter": "n > 2"}])
def test_limits_apply_to_the_items_of_a_replay(shop: Shop, limits: dict[str, Any]) -> None:
    shop.add(make_stream(shop))
    arguments = {"count": 50, "idempotency_key": "k", **limits}
    first = list(shop.app.stream("do", **arguments))
    assert first and list(shop.app.stream("do", **arguments)) == first
    assert shop.runs == 1


def test_omitted_details_are_stored(shop: Shop) -> None:
    def do() -> Iterator[Person]:
        shop.count_run()
        yield Person(name="ann", notes="long")

    shop.add(do)
    short = shop.app.call("do", idempotency_key="k", concise=True)
    assert short.to_dict()["result"] == [{"name": "ann"}]
    whole = shop.app.call("do", idempotency_key="k")
    assert whole.to_dict()["result"] == [{"name": "ann", "notes": "long"}]
    assert shop.runs == 1


def test_stream_that_is_too_large_runs_to_its_end(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tooli.stages.idempotency.MAX_OUTCOME_BYTES", 1000)
    ended: list[int] = []

    def do(count: int) -> Iterator[dict[str, int]]:
        yield from make_stream(shop)(count)
        ended.append(count)

    shop.add(do)
    first = shop.app.call("do", count=500, idempotency_key="k", limit=2)
    assert (first.result, ended) == ([{"n": 0}, {"n": 1}], [500])
    error = shop.app.call("do", count=500, idempotency_key="k").error
    assert error.details["done"] is True
    assert error.suggestion["fix"].startswith("The call took effect and is not run again.")
    assert shop.runs == 1


def test_failed_stream_is_replayed_with_the_number_of_items(shop: Shop) -> None:
    def do() -> Iterator[int]:
        shop.count_run()
        yield 1
        raise ConflictError("no more")

    shop.add(do)
    errors = [shop.app.call("do", idempotency_key="k").to_dict()["error"] for _ in "ab"]
    assert errors[0] == errors[1]
    assert errors[0]["details"] == {"items_before_failure": 1}
    assert shop.runs == 1


def test_stream_closed_early_is_indeterminate(shop: Shop) -> None:
    shop.add(make_stream(shop))
    items = shop.app.stream("do", count=9, idempotency_key="k")
    next(items)
    assert shop.app.call("do", count=9, idempotency_key="k").error.code == "E3051"
    items.close()
    error = shop.app.call("do", count=9, idempotency_key="k").error
    assert error.code == "E3052"
    assert error.details["ended_by"]["code"] == "E4130"


def test_result_that_is_too_large_is_not_stored(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("tooli.storage.outcome_codec", "tooli.stages.idempotency"):
        monkeypatch.setattr(f"{module}.MAX_OUTCOME_BYTES", 1000)

    def do() -> str:
        shop.count_run()
        return "x" * 2000

    shop.add(do).add(make_stream(shop), "count")
    for name, more in (("do", {}), ("count", {"count": 300})):
        first = shop.app.call(name, **more, idempotency_key="k")
        assert first.ok and len(first.unwrap()) in (2000, 300)
        error = shop.app.call(name, **more, idempotency_key="k").error
        assert error.code == "E3052" and error.details["done"] is True
        assert error.details["most"] == 1000
    assert shop.runs == 2


# ------------------------------------------------------------------ rejected calls


def test_same_key_with_other_arguments_is_rejected_on_every_interface(shop: Shop) -> None:
    shop.add(lambda order: shop.count_run(), "do")
    shop.app.call("do", order="a", idempotency_key="k")
    case = Case("do", {"order": "b"}, {"idempotency_key": "k"})
    answers = [interface.send_case(case) for interface in interfaces(shop.app)]
    assert {a.envelope["error"]["code"] for a in answers} == {"E3050"}
    assert {a.exit_code for a in answers} <= {20, None}
    assert shop.runs == 1


def test_explicit_default_is_the_same_call(shop: Shop) -> None:
    def do(order: str, count: int = 1) -> int:
        return shop.count_run()

    shop.add(do)
    shop.app.call("do", order="a", idempotency_key="k")
    assert shop.app.call("do", order="a", count=1, idempotency_key="k").result == 1


def test_key_may_be_sent_as_a_header_or_in_the_query(shop: Shop) -> None:
    shop.add(lambda order: {"n": shop.count_run()}, "do")
    api = shop.app.asgi(mcp=False)
    payload: dict[str, Any] = {"body": b'{"order":"a"}'}

    async def ask(**more: Any) -> Any:
        return (await send_request(api, "POST", "/tools/do", **payload, **more)).json()

    first = asyncio.run(ask(headers={"Idempotency-Key": "k"}))
    assert first["ok"], first
    quoted = asyncio.run(ask(headers={"Idempotency-Key": '"k"'}))
    queried = asyncio.run(ask(query="idempotency_key=k"))
    assert first["meta"]["idempotency"]["replayed"] is False
    assert quoted["result"] == queried["result"] == first["result"] == {"n": 1}
    assert quoted["meta"]["idempotency"]["replayed"] is True
    both = asyncio.run(ask(headers={"Idempotency-Key": "k"}, query="idempotency_key=other"))
    assert both["error"]["code"] == "E1050"
    same = asyncio.run(ask(headers={"Idempotency-Key": "k"}, query="idempotency_key=k"))
    assert same["result"] == {"n": 1}


@pytest.mark.parametrize("key", ["", "two words", "käse", "x" * 256])
def test_invalid_key_is_rejected_on_every_interface(shop: Shop, state_dir: Path, key: str) -> None:
    shop.add(lambda order: shop.count_run(), "do")
    case = Case("do", {"order": "a"}, {"idempotency_key": key})
    for interface in interfaces(shop.app):
        error = interface.send_case(case).envelope["error"]
        assert (error["code"], error["field"]) == ("E1007", "idempotency_key"), interface.name
    assert shop.runs == 0 and not list(state_dir.glob("*idempotency*"))


def test_dry_run_does_not_use_the_key(shop: Shop, state_dir: Path) -> None:
    shop.add(lambda order: shop.count_run(), "do")
    assert shop.app.call("do", order="b", dry_run=True, idempotency_key="k").ok
    assert not list(state_dir.glob("*idempotency*"))
    assert shop.app.call("do", order="a", idempotency_key="k").result == 1


def test_rejected_call_does_not_use_the_key(shop: Shop, state_dir: Path) -> None:
    shop.add(lambda order: shop.count_run(), "do", annotations=Destructive)
    assert shop.app.call("do", order="a", idempotency_key="k").error.code == "E1010"
    assert shop.app.call("do", idempotency_key="k", yes=True).error.code == "E1002"
    assert not list(state_dir.glob("*idempotency*"))
    assert shop.app.call("do", order="a", idempotency_key="k", yes=True).ok


def add_rm_command(shop: Shop, **settings: Any) -> Shop:
    @dry_run_support
    def rm(path: Path) -> int:
        if not record_dry_action("delete", path, state=path):
            shop.count_run()
            path.unlink()
        return shop.runs

    return shop.add(rm, "rm", annotations=Destructive, auth=[], **settings)


@pytest.mark.parametrize("settings", [{}, {"timeout": 60}], ids=["in process", "child process"])
def test_rejected_plan_releases_the_key(
    shop: Shop, tmp_path: Path, settings: dict[str, Any]
) -> None:
    add_rm_command(shop, **settings)
    file = tmp_path / "file"
    file.write_text("1")

    def apply(token: str) -> Any:
        return shop.app.call("rm", path=file, yes=True, apply=token, idempotency_key="k")

    assert apply("nonsense").error.code == "E1051"
    stale = shop.app.call("rm", path=file, dry_run=True).unwrap()["token"]
    file.write_text("22")
    assert apply(stale).error.code == "E3053"
    done = apply(shop.app.call("rm", path=file, dry_run=True).unwrap()["token"])
    assert done.ok and done.meta["idempotency"]["replayed"] is False
    assert not file.exists()


def test_call_that_cannot_be_logged_releases_the_key(state_dir: Path) -> None:
    shop = Shop(security_policy="strict")
    shop.add(lambda: shop.count_run(), "do", auth=[])
    (state_dir / "audit").write_text("")  # so that the folder cannot be created
    assert shop.app.call("do", idempotency_key="k").error.code == "E4061"
    (state_dir / "audit").unlink()
    assert shop.app.call("do", idempotency_key="k").result == 1


def test_unreadable_input_releases_the_key(shop: Shop) -> None:
    def do(number: SecretInput[int]) -> int:
        return shop.count_run()

    shop.add(do)
    argv = ["do", "env:NO", "--idempotency-key=k", "--json"]
    assert invoke(shop.app, *argv, env={"NO": "none"}).envelope["error"]["code"] == "E1003"
    assert invoke(shop.app, *argv, env={"NO": "4711"}).result == 1


def test_call_whose_process_cannot_start_releases_the_key(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> Any:
        raise OSError(24, "Too many open files")

    shop.add(lambda: 1, "do", timeout=60)
    with monkeypatch.context() as patch:
        patch.setattr("tooli.execution.process_runner.open_pipes", fail)
        assert "was not run" in shop.app.call("do", idempotency_key="k").error.message
    assert shop.app.call("do", idempotency_key="k").result == 1


def test_rejection_of_a_nested_call_is_stored(shop: Shop, tmp_path: Path) -> None:
    """The nested call did not run, but the function did."""
    add_rm_command(shop)
    file = tmp_path / "file"

    def do() -> None:
        shop.count_run()
        file.write_text("1")
        token = shop.app.call("rm", path=file, dry_run=True).unwrap()["token"]
        file.write_text("22")
        shop.app.call("rm", path=file, yes=True, apply=token).unwrap()

    shop.add(do)
    for replayed in (False, True):
        answer = shop.app.call("do", idempotency_key="k")
        assert answer.error.code == "E3053"
        assert answer.meta["idempotency"]["replayed"] is replayed
    assert shop.runs == 1


def test_keys_are_separate_for_principals_but_not_for_names(shop: Shop) -> None:
    shop.add(lambda: shop.count_run(), "do")
    tool, options = shop.app.find("do"), Options(idempotency_key="k")
    callers = [
        Caller("http", principal="ann"),
        Caller("mcp", principal="bob"),
        Caller("cli", principal="ann"),
        Caller("cli", "claude-code"),
        Caller("http", "an-agent", maybe_agent=True),
    ]
    values: list[Any] = []
    for caller in callers:
        call, stages = shop.app.prepare(Call(tool, {}, caller, [], options))
        values.append(run(call, stages).value)
    assert values == [1, 2, 1, 3, 3]


# ------------------------------------------------------------------ stopped calls


def stopped_by(shop: Shop, stop: BaseException, **settings: Any) -> Any:
    def do() -> int:
        if shop.count_run() == 1:
            raise stop
        return shop.runs

    shop.add(do, **settings)
    with_key = {"idempotency_key": "k"}
    try:
        shop.app.call("do", **with_key)
    except BaseException as raised:
        assert raised is stop
    return shop.app.call("do", **with_key)


STOPS = [KeyboardInterrupt(), TimeoutExceeded("late"), asyncio.CancelledError()]


@pytest.mark.parametrize("stop", STOPS, ids=repr)
def test_stopped_call_is_indeterminate(shop: Shop, stop: BaseException) -> None:
    second = stopped_by(shop, stop)
    assert second.error.code == "E3052"
    assert second.error.details["ended_by"]["message"]
    assert "`shop idempotency forget k`" in second.error.suggestion["fix"]
    assert "example" not in second.error.suggestion  # Python runs no command lines
    assert second.error.to_exception().exit_code == 101
    assert shop.runs == 1


@pytest.mark.parametrize("stop", STOPS, ids=repr)
@pytest.mark.parametrize("behavior", [Idempotent, ReadOnly, Destructive | Idempotent], ids=repr)
def test_stopped_idempotent_call_runs_again(shop: Shop, stop: BaseException, behavior: Any) -> None:
    shop.app = Tooli("shop", security_policy="off")
    shop.app.command("other")(lambda: None)
    second = stopped_by(shop, stop, annotations=behavior)
    assert (second.result, second.meta["idempotency"]["replayed"]) == (2, False)
    assert shop.app.call("do", idempotency_key="k").meta["idempotency"]["replayed"] is True


def test_timeout_error_of_the_function_is_stored(shop: Shop) -> None:
    second = stopped_by(shop, TimeoutError("the bank is slow"))
    assert second.error.code == "E4050" and second.meta["idempotency"]["replayed"]


def test_exit_of_the_function_is_stored(shop: Shop) -> None:
    second = stopped_by(shop, SystemExit(7))
    assert second.error.to_exception().exit_code == 7
    assert second.meta["idempotency"]["replayed"]


def test_refusal_by_the_function_uses_the_key(shop: Shop) -> None:
    second = stopped_by(shop, ApprovalRequired("may I?"))
    assert second.error.code == "E2101" and second.meta["idempotency"]["replayed"]


def test_call_that_ends_with_a_question_does_not_run_without_the_answer(shop: Shop) -> None:
    from tooli.core.peer import InputRequired

    assert stopped_by(shop, InputRequired({})).error.code == "E3052"
    assert shop.runs == 1


def test_a_cancelled_task_is_indeterminate(shop: Shop) -> None:
    entered = asyncio.Event()

    async def do() -> None:
        shop.count_run()
        entered.set()
        await asyncio.Event().wait()

    shop.add(do)

    async def cancel() -> None:
        task = asyncio.ensure_future(shop.app.acall("do", idempotency_key="k"))
        await entered.wait()
        task.cancel()
        await asyncio.wait({task})
        assert task.cancelled()

    asyncio.run(cancel())
    assert shop.app.call("do", idempotency_key="k").error.code == "E3052"


def test_concurrent_calls_run_once(shop: Shop) -> None:
    gate = asyncio.Event()

    async def do() -> int:
        await gate.wait()
        return shop.count_run()

    shop.add(do)

    async def both() -> list[Any]:
        first = asyncio.ensure_future(shop.app.acall("do", idempotency_key="k"))
        await asyncio.sleep(0)
        second = await shop.app.acall("do", idempotency_key="k")
        gate.set()
        return [await first, second, await shop.app.acall("do", idempotency_key="k")]

    first, second, third = asyncio.run(both())
    assert (first.result, third.result, shop.runs) == (1, 1, 1)
    assert second.error.code == "E3051" and second.error.is_retryable


# ------------------------------------------------------------------ a store that fails


def damage(state_dir: Path) -> None:
    for store in idempotency_sqlite._open_stores.values():
        store.close()
    for path in state_dir.iterdir():
        path.unlink()
    (state_dir / "idempotency.db").write_bytes(b"no database at all" * 400)


@pytest.mark.parametrize("policy", ["off", "standard", "strict"])
@pytest.mark.parametrize("behavior", [None, Idempotent], ids=repr)
def test_damaged_store_rejects_calls_that_are_not_idempotent(
    state_dir: Path, policy: str, behavior: Any
) -> None:
    shop = Shop(security_policy=policy)
    shop.add(lambda: shop.count_run(), "do", annotations=behavior, auth=[])
    damage(state_dir)
    result = shop.app.call("do", idempotency_key="k")
    if behavior is Idempotent and policy != "strict":
        assert result.result == 1
        assert "is damaged" in result.meta["warnings"][0]
        return
    assert shop.runs == 0
    assert result.error.code == "E4060"
    assert "Nothing ran" in result.error.message
    assert "then delete" in result.error.suggestion["fix"]
    assert result.error.to_exception().exit_code == 75
    assert shop.app.call("do", idempotency_key="k").error.code == "E4060"
    assert shop.runs == 0
    (damaged,) = state_dir.glob("idempotency.db.damaged-*")
    damaged.unlink()
    assert shop.app.call("do", idempotency_key="k").result == 1


def test_outcome_that_cannot_be_stored_is_a_warning(shop: Shop, state_dir: Path) -> None:
    def do() -> int:
        damage(state_dir)
        return shop.count_run()

    shop.add(do)
    result = shop.app.call("do", idempotency_key="k")
    assert result.result == 1
    assert result.meta["idempotency"]["kept"] is False
    assert "could not be stored" in result.meta["warnings"][0]


def test_event_loop_waits_for_the_store_with_a_short_timeout(
    shop: Shop, state_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the store is locked after the call, the outcome is stored once the lock is released."""
    import sqlite3

    monkeypatch.setattr("tooli.stages.idempotency.EVENT_LOOP_WAIT_SECONDS", 0.3)
    waited: list[float] = []
    execute = SqliteIdempotencyStore.execute

    def execute_and_record(self: Any, work: Any, timeout: float) -> Any:
        waited.append(timeout)
        return execute(self, work, timeout)

    monkeypatch.setattr(SqliteIdempotencyStore, "execute", execute_and_record)
    connections: list[Any] = []

    async def do() -> int:
        connections.append(sqlite3.connect(state_dir / "idempotency.db", isolation_level=None))
        connections[0].execute("BEGIN IMMEDIATE")
        return shop.count_run()

    shop.add(do)
    first = asyncio.run(shop.app.acall("do", idempotency_key="k"))
    assert first.result == 1 and first.meta["idempotency"]["kept"] is False
    assert waited == [0.3, 0.3]
    connections[0].close()
    while (second := shop.app.call("do", idempotency_key="k")).error is not None:
        assert second.error.code == "E3051"
    assert (second.result, second.meta["idempotency"]["replayed"]) == (1, True)


def test_call_with_an_unreadable_stored_outcome_is_not_run_again(
    shop: Shop, state_dir: Path
) -> None:
    import sqlite3

    shop.add(lambda: shop.count_run(), "do")
    shop.app.call("do", idempotency_key="k")
    for data in (b"{", b"[]", b'{"failed":{}}', b'{"other":1}'):
        database = sqlite3.connect(state_dir / "idempotency.db")
        with database:
            database.execute("UPDATE keys SET outcome = ?", (data,))
        database.close()
        result = shop.app.call("do", idempotency_key="k")
        assert result.error.code == "E4060", data
    assert shop.runs == 1


def test_call_without_a_key_takes_the_fast_path() -> None:
    from tooli.pipeline.drivers import ONLY_BIND

    shop = Shop()
    shop.add(lambda: 1, "do")
    assert shop.app.stages_for(shop.app.find("do"), Options()) is ONLY_BIND


class BusyStore(SqliteIdempotencyStore):
    """A store that is busy when an outcome is stored, the first `failures` times."""

    def __init__(self, failures: int, is_busy: bool = True) -> None:
        self.failures = failures
        self.is_busy = is_busy
        self.finished: list[tuple[str, bytes]] = []
        self.released = 0

    def begin(self, *_: Any, **__: Any) -> Any:
        return NewAttempt("token", 0.0)  # type: ignore[arg-type]

    def finish(self, token: Any, state: str, data: bytes) -> bool:
        self._fail()
        self.finished.append((state, data))
        return True

    def release(self, token: Any) -> None:
        self._fail()
        self.released += 1

    def close(self) -> None: ...

    def _fail(self) -> None:
        if self.failures:
            self.failures -= 1
            raise StoreUnavailable("The store is busy.", "Wait.", is_busy=self.is_busy)


class TestBusyStore:
    """An outcome that cannot be stored at once is stored later, by a thread."""

    @pytest.fixture(autouse=True)
    def _run_threads_at_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        class Thread:
            def __init__(self, target: Any, **_: Any) -> None:
                self.start = target

        class Event:
            def wait(self, seconds: float) -> None: ...

        monkeypatch.setattr(idempotency, "Thread", Thread)
        monkeypatch.setattr(idempotency, "Event", Event)

    def run_stage(
        self, store: BusyStore, outcome: Any, monkeypatch: pytest.MonkeyPatch, surface: str = "http"
    ) -> Call:
        monkeypatch.setattr(idempotency, "get_idempotency_store", lambda url: store)
        call = make_call(surface=surface, options={"idempotency_key": "k"})
        assert pass_through(run_once(make_context(call)), call, outcome)[1] is outcome
        return call

    def test_outcome_is_stored_later(self, monkeypatch: pytest.MonkeyPatch) -> None:
        store = BusyStore(3)
        call = self.run_stage(store, Ok(1), monkeypatch)
        assert [state for state, _ in store.finished] == ["done"]
        assert "The outcome of the call could not be stored." in call.warnings[0]
        assert call.meta is not None
        assert call.meta["idempotency"]["kept"] is False

    def test_key_is_released_later(self, monkeypatch: pytest.MonkeyPatch) -> None:
        store = BusyStore(2)
        self.run_stage(store, Failed(StateError("no"), has_started=False), monkeypatch)
        assert (store.released, store.finished) == (1, [])

    def test_number_of_attempts_is_limited(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(idempotency, "MAX_STORE_ATTEMPTS", 2)
        store = BusyStore(9)
        self.run_stage(store, Ok(1), monkeypatch)
        assert (store.failures, store.finished) == (6, [])

    def test_other_failures_are_not_repeated(self, monkeypatch: pytest.MonkeyPatch) -> None:
        store = BusyStore(9, is_busy=False)
        self.run_stage(store, Ok(1), monkeypatch)
        assert store.failures == 8

    def test_command_line_does_not_wait(self, monkeypatch: pytest.MonkeyPatch) -> None:
        store = BusyStore(9)
        self.run_stage(store, Ok(1), monkeypatch, surface="cli")
        assert store.failures == 8

    def test_concurrent_call_with_the_same_key_is_a_warning(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        store = BusyStore(0)
        monkeypatch.setattr(store, "finish", lambda *_: False)
        call = self.run_stage(store, Ok(1), monkeypatch)
        assert call.warnings == ["Another call with this idempotency key ran at the same time."]
