"""A caller that is refused many times: the audit log shows it, and stays small."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.http.asgi_client import post

from tooli import Tooli
from tooli.stages import audit, rate_limit
from tooli.storage.audit_log import get_log_path
from tooli.storage.audit_reader import read_last_records


@pytest.fixture(autouse=True)
def own_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLI_STATE_DIR", str(tmp_path / "state"))


def make_vault() -> Tooli:
    app = Tooli("vault", security_policy="strict")

    @app.command(auth=["admin"])
    def wipe(what: str = "") -> str:
        return "gone"

    @app.command(auth=[], rate_limit="2/hour")
    def peek() -> str:
        return "gold"

    @app.command(auth=[])
    def fail() -> str:
        raise ValueError("broken")

    return app


def denials(app: str = "vault") -> list[dict[str, Any]]:
    records = read_last_records(get_log_path(app), 1000)
    return [record for record in records if record["event"] == "denial"]


async def test_every_refusal_because_of_scopes_is_logged() -> None:
    api = make_vault().asgi(mcp=False, tokens={"t": []})
    token = (b"authorization", b"Bearer t")
    codes = [(await post(api, "wipe", {"what": f"disk{i}"}, token)).code for i in range(20)]
    assert codes == ["E2001"] * 20
    assert [record["code"] for record in denials()] == codes


@pytest.mark.parametrize(("command", "code"), [("peek", "E4029"), ("fail", "E4031")])
async def test_limits_are_logged_with_a_count(
    command: str, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [1000.0]
    monkeypatch.setattr(audit, "_limit_counter", audit.LimitCounter())
    monkeypatch.setattr(audit, "monotonic", lambda: clock[0])
    monkeypatch.setattr(rate_limit, "_limiter", rate_limit.RateLimiter())
    api = make_vault().asgi(mcp=False, tokens={"t": [], "u": []})
    token, other = (b"authorization", b"Bearer t"), (b"authorization", b"Bearer u")
    codes = [(await post(api, command, {}, token)).code for _ in range(20)]
    refused = codes.count(code)
    assert refused >= 15
    assert [record["code"] for record in denials()] == [code]
    assert "not_logged" not in denials()[0]
    clock[0] += audit.LIMIT_LOG_SECONDS
    await post(api, command, {}, token)
    assert [record.get("not_logged") for record in denials()] == [None, refused - 1]
    for _ in range(6):
        await post(api, command, {}, other)
    assert len(denials()) == 3
    assert not any([record.get("arguments") for record in denials()])


def test_number_of_counted_callers_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "_MAX_COUNTED_CALLERS", 3)
    counter = audit.LimitCounter()
    assert [counter.count(("E4029", "t", str(i))) for i in range(9)] == [0] * 9
    assert len(counter._counts) == 3
    assert counter.count(("E4029", "t", "8")) is None
