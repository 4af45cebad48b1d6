"""The values of sessions in the store: several processes, conflicts, limits and failures."""

from __future__ import annotations

import asyncio
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from tooli.core.session_state import SessionState
from tooli.errors import AuthError, InternalError, StateError, TemporaryError
from tooli.storage import session_store
from tooli.storage.idempotency_sqlite import SqliteIdempotencyStore, get_idempotency_store
from tooli.storage.idempotency_store import StoreUnavailable
from tooli.storage.session_store import (
    MAX_STATE_BYTES,
    SessionKey,
    SessionStore,
    StoredSession,
    get_session_store,
)


@pytest.fixture(autouse=True)
def state_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TOOLI_STATE_DIR", str(tmp_path / "state"))
    return tmp_path / "state"


def open_session(
    name: str = "s1",
    *,
    url: str | None = None,
    owner: str = "ann",
    scopes: frozenset[str] | None = frozenset(),
) -> StoredSession:
    return StoredSession(url, "shop", name, owner, scopes)


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest) -> str | None:
    return None if request.param == "sqlite" else request.getfixturevalue("postgres_server")


def unique() -> str:
    return os.urandom(8).hex()


def test_requests_of_a_session_share_its_values(url: str | None) -> None:
    name = unique()
    first, second = open_session(name, url=url), open_session(name, url=url)
    assert (len(first), "a" in first, first.get("a"), list(first)) == (0, False, None, [])
    first["a"] = {"text": "é\ud800\0", "list": [1, 2.5, None, True]}
    assert second["a"] == first["a"] == {"text": "é\ud800\0", "list": [1, 2.5, None, True]}
    assert second.setdefault("a", 1) == first["a"]
    assert second.setdefault("b", 2) == 2
    assert dict(first) == {"a": first["a"], "b": 2}
    assert first.pop("b") == 2
    assert second.pop("b", None) is None
    with pytest.raises(KeyError):
        second.pop("b")
    with pytest.raises(KeyError):
        del second["b"]
    with pytest.raises(KeyError):
        second["b"]
    del second["a"]
    assert dict(first) == {}
    first["c"] = 1
    second.clear()
    assert dict(open_session(name, url=url)) == {}
    assert dict(open_session(unique(), url=url)) == {}


def test_an_unused_session_writes_nothing(state_dir: Path) -> None:
    session = open_session()
    session.flush()
    assert not state_dir.exists()


def test_changes_at_the_same_time_are_all_kept(url: str | None) -> None:
    name, winners = unique(), list[int]()

    def change(number: int) -> None:
        session = open_session(name, url=url)
        for i in range(5):
            session[f"{number}-{i}"] = i
        if session.setdefault("winner", number) == number:
            winners.append(number)

    threads = [threading.Thread(target=change, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(open_session(name, url=url)) == 21
    assert winners == [open_session(name, url=url)["winner"]]


def test_changes_in_place_are_written_by_flush() -> None:
    session = open_session()
    session["cart"] = {"items": []}
    session["seen"] = [1]
    session["cart"]["items"].append("tea")
    assert open_session()["cart"] == {"items": []}
    other = open_session()
    other["name"] = "Ann"
    other["seen"] = [2]
    assert session["name"] == "Ann"  # it has read the change of another request
    assert session["seen"] == [2]
    assert session["cart"] == {"items": ["tea"]}  # and keeps its own
    session.flush()
    assert dict(open_session()) == {"cart": {"items": ["tea"]}, "seen": [2], "name": "Ann"}
    session["cart"]["items"].append("rum")
    other["more"] = 1
    session.flush()  # the row has another version meanwhile
    assert dict(open_session())["cart"] == {"items": ["tea", "rum"]}
    session["cart"]["items"].append("gin")
    session["last"] = True  # a change of another value writes it too
    assert open_session()["cart"]["items"] == ["tea", "rum", "gin"]


def test_a_session_that_was_deleted_is_empty() -> None:
    session = open_session()
    session["a"] = 1
    get_idempotency_store(None).execute(lambda c: c.execute("DELETE FROM sessions"), 10.0)
    assert dict(session) == {}
    session["b"] = 2
    assert dict(open_session()) == {"b": 2}


@pytest.mark.parametrize(
    "value", [{1, 2}, (1,), object(), {1: 2}, float("nan"), b"x", {"a": {"b": (1,)}}]
)
def test_values_must_be_json(value: Any) -> None:
    session = open_session()
    session["a"] = 1
    with pytest.raises(InternalError, match=r"ctx.state\['b'\] is a value that is not JSON"):
        session["b"] = value
    assert dict(session) == {"a": 1}


def test_values_nested_too_deeply() -> None:
    value: list[Any] = []
    for _ in range(100_000):
        value = [value]
    with pytest.raises(InternalError, match="not JSON"):
        open_session()["deep"] = value


def test_the_size_of_the_values_is_limited() -> None:
    session = open_session()
    session["a"] = "x" * (MAX_STATE_BYTES // 2)
    with pytest.raises(StateError, match="more than 1 MB"):
        session["b"] = "x" * (MAX_STATE_BYTES // 2)
    assert list(session) == ["a"]


@pytest.mark.parametrize(
    ("stored", "caller", "is_allowed"),
    [
        ({"read"}, {"read"}, True),
        ({"read"}, {"read", "write"}, True),
        ({"read"}, None, True),
        (None, None, True),
        (set(), set(), True),
        ({"read"}, set(), False),
        ({"read", "write"}, {"read"}, False),
        (None, {"read"}, False),
    ],
)
def test_a_caller_needs_the_scopes_of_the_session(
    stored: set[str] | None, caller: set[str] | None, is_allowed: bool
) -> None:
    open_session(scopes=None if stored is None else frozenset(stored))["secret"] = 1
    session = open_session(scopes=None if caller is None else frozenset(caller))
    if is_allowed:
        assert session["secret"] == 1
        return
    for use in (session.load, lambda: session.update(secret=2)):
        with pytest.raises(AuthError, match="scopes that this token does not have") as caught:
            use()
        assert caught.value.code == "E2001"


def test_unused_sessions_are_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    open_session("old")["a"] = 1
    store = get_idempotency_store(None)
    store.execute(lambda c: c.execute("UPDATE sessions SET used = 1"), 10.0)
    open_session("new")["a"] = 1
    assert dict(open_session("old")) == {}


def test_reading_keeps_a_session(monkeypatch: pytest.MonkeyPatch) -> None:
    open_session("read")["a"] = 1
    store = get_idempotency_store(None)
    age = session_store.RETENTION_SECONDS - 60
    store.execute(lambda c: c.execute("UPDATE sessions SET used = unix_time() - ?", (age,)), 10.0)
    assert dict(open_session("read")) == {"a": 1}
    row = store.execute(
        lambda c: c.execute("SELECT unix_time() - used FROM sessions").fetchone(), 10.0
    )
    assert row[0] < age / 2


def test_a_caller_has_a_limited_number_of_sessions() -> None:
    for i in range(session_store.MAX_SESSIONS_PER_CALLER + 5):
        open_session(f"s{i}")["a"] = i
    open_session("other", owner="bob")["a"] = 1
    names = [i for i in range(session_store.MAX_SESSIONS_PER_CALLER + 5) if open_session(f"s{i}")]
    assert names == list(range(5, session_store.MAX_SESSIONS_PER_CALLER + 5))
    assert open_session("other")


def test_a_write_that_was_repeated_after_it_succeeded(state_dir: Path) -> None:
    store = SessionStore(SqliteIdempotencyStore(str(state_dir)))
    key = SessionKey("shop", "s", "ann", frozenset())
    assert store.write(key, "", "v1", "{}")
    assert store.write(key, "", "v1", "{}")  # the connection had broken
    assert not store.write(key, "", "v2", "{}")
    assert not store.write(key, "v0", "v2", "{}")
    assert store.write(key, "v1", "v2", '{"a":1}')
    found = store.find(key, "")
    assert found is not None and (found.version, found.content) == ("v2", '{"a":1}')
    known = store.find(key, "v2")
    assert known is not None and known.content is None


def test_a_store_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    session = open_session(url="postgresql://127.0.0.1:1/none")
    with pytest.raises(TemporaryError, match="The state of the session cannot be used") as caught:
        session["a"] = 1
    assert caught.value.code == "E4060"
    session.preload()  # the error is raised where the state is used
    monkeypatch.setattr(session, "_pid", -1)
    with pytest.raises(TemporaryError):
        session["a"]


def test_a_forked_process_has_the_values_of_before(monkeypatch: pytest.MonkeyPatch) -> None:
    session = open_session()
    session["a"] = 1
    later = open_session()
    later.preload()
    session["a"] = 2
    monkeypatch.setattr(later, "_pid", -1)  # as in a process that was forked
    assert later["a"] == 1
    later.flush()
    assert session["a"] == 2
    state = SessionState(later, is_kept=True, is_copy=True)
    with pytest.raises(InternalError, match="would be lost"):
        state["a"] = 3


def test_an_event_loop_waits_for_the_store_a_short_time(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []

    def refuse(work: Any, seconds: float) -> Any:
        waited.append(seconds)
        raise StoreUnavailable("It is in use.", "Try again.", is_busy=True)

    monkeypatch.setattr(get_idempotency_store(None), "execute", refuse)

    async def read() -> None:
        open_session().load()

    with pytest.raises(TemporaryError):
        asyncio.run(read())
    with pytest.raises(TemporaryError):
        open_session().load()
    assert waited[0] < waited[1]


def test_one_session_store_for_each_store() -> None:
    assert get_session_store(None) is get_session_store(None)
