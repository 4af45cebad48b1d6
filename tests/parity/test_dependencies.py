"""Dependencies and lifespans work on every interface, and are closed after each call."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Annotated, Any

import pytest

from tooli import Context, Depends, Tooli
from tooli.describe.openapi_document import build_openapi
from tooli.describe.schema_formats import describe_tool
from tooli.testing import Case, assert_parity, invoke
from tooli.testing.app_interfaces import interfaces

events: list[str] = []


@pytest.fixture(autouse=True)
def clear_events() -> None:
    events.clear()


class Pool:
    def __init__(self, size: int) -> None:
        self.size = size


def get_pool(ctx: Context) -> Pool:
    return ctx.lifespan


PoolDep = Annotated[Pool, Depends(get_pool)]


def get_sync(pool: PoolDep) -> Iterator[int]:
    events.append("open")
    try:
        yield pool.size
    except ValueError:
        events.append("rollback")
    finally:
        events.append("close")


async def get_async(pool: PoolDep) -> AsyncIterator[int]:
    events.append("open")
    try:
        yield pool.size
    except ValueError:
        events.append("rollback")
        raise
    finally:
        events.append("close")


@contextmanager
def sync_lifespan(app: Tooli) -> Iterator[Pool]:
    events.append("start")
    yield Pool(7)
    events.append("stop")


async def async_lifespan() -> AsyncIterator[Pool]:
    events.append("start")
    yield Pool(7)
    events.append("stop")


def make_app(get: Any, lifespan: Any) -> Tooli:
    app = Tooli("shop", version="1.0")
    app.lifespan(lifespan)
    Db = Annotated[int, Depends(get)]

    def find(text: str, db: Db) -> str:
        events.append("run")
        return f"{text} {db}"

    async def afind(text: str, db: Db, pool: PoolDep) -> str:
        events.append("run")
        return f"{text} {db} {pool.size}"

    def items(db: Db, count: int = 2) -> Iterator[int]:
        events.append("run")
        yield from range(db, db + count)
        events.append("last")

    async def aitems(db: Db) -> AsyncIterator[int]:
        events.append("run")
        yield db
        events.append("last")

    def fail(db: Db) -> str:
        events.append("run")
        raise ValueError("bad")

    def fail_late(db: Db) -> Iterator[int]:
        events.append("run")
        yield db
        raise ValueError("bad")

    for fn in (find, afind, items, aitems, fail, fail_late):
        fn.__annotations__ = {  # the annotations of local names cannot be evaluated
            **fn.__annotations__,
            "db": Db,
            **({"pool": PoolDep} if fn is afind else {}),
            "return": {"find": str, "afind": str, "fail": str}.get(fn.__name__, list[int]),
        }
        for name, kind in (("text", str), ("count", int)):
            if name in fn.__annotations__:
                fn.__annotations__[name] = kind
        app.command()(fn)
    return app


VARIANTS = pytest.mark.parametrize(
    ("get", "lifespan"),
    [
        (get_sync, sync_lifespan),
        (get_async, async_lifespan),
        (get_sync, asynccontextmanager(async_lifespan)),
    ],
    ids=["sync", "async", "mixed"],
)
CASES: list[tuple[Case, list[str]]] = [
    (Case("find", {"text": "x"}), ["open", "run", "close"]),
    (Case("afind", {"text": "x"}), ["open", "run", "close"]),
    (Case("items", {"count": 3}), ["open", "run", "last", "close"]),
    (Case("aitems"), ["open", "run", "last", "close"]),
    (Case("fail"), ["open", "run", "rollback", "close"]),
    (Case("fail-late"), ["open", "run", "rollback", "close"]),
]


@VARIANTS
@pytest.mark.parametrize(("case", "expected"), CASES, ids=lambda v: getattr(v, "tool", ""))
def test_every_interface_opens_and_closes(
    get: Any, lifespan: Any, case: Case, expected: list[str]
) -> None:
    app = make_app(get, lifespan)
    assert_parity(app, case)
    for interface in interfaces(app):
        events.clear()
        interface.send_case(case)
        own = [event for event in events if event not in ("start", "stop")]
        assert own == expected, interface.name
        if interface.surface != "mcp":  # its server in the test is not started
            assert (events[0], events[-1]) == ("start", "stop"), interface.name


@VARIANTS
def test_dependencies_are_in_no_description(get: Any, lifespan: Any) -> None:
    app = make_app(get, lifespan)
    texts = [json.dumps(build_openapi("shop", "1.0", None, app.catalog))]
    for tool in app.catalog:
        texts += [json.dumps(describe_tool(tool, kind)) for kind in ("json", "mcp", "openai")]
    for flags in (("--help-agent",), ("find", "--help"), ("find", "--help-agent")):
        texts.append(invoke(app, *flags).stdout)
    assert not any('"db"' in text or "--db" in text or "pool" in text for text in texts)
    assert events == []


@VARIANTS
def test_caller_cannot_set_a_dependency(get: Any, lifespan: Any) -> None:
    for interface in interfaces(make_app(get, lifespan)):
        response = interface.send_case(Case("find", {"text": "x", "db": 1}))
        assert response.envelope["error"]["code"] in ("E1004", "E1007"), interface.name
    assert "open" not in events


@VARIANTS
def test_call_that_is_refused_opens_nothing(get: Any, lifespan: Any) -> None:
    app = make_app(get, lifespan)
    assert not app.call("find").ok
    assert app.options(dry_run=True).call("find", text="x").meta["dry_run"]
    assert invoke(app, "find", "--schema").exit_code == 0
    assert events == []


@VARIANTS
def test_overrides_replace_dependencies(get: Any, lifespan: Any) -> None:
    app = make_app(get, lifespan)
    app.dependency_overrides[get] = lambda: 99
    assert app.call("find", text="x").unwrap() == "x 99"
    assert list(app.stream("items")) == [99, 100]
    assert "open" not in events
    app.dependency_overrides.clear()
    assert app.call("find", text="x").unwrap() == "x 7"
