"""One caller fills the approval requests: others can still request approvals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.http.asgi_client import post

from tooli import Tooli
from tooli.storage import approval_store


@pytest.mark.parametrize("has_tokens", [True, False])
async def test_requests_of_one_caller_are_limited(
    has_tokens: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TOOLI_STATE_DIR", str(tmp_path))
    monkeypatch.setattr(approval_store, "MAX_PENDING_REQUESTS_PER_CALLER", 3)
    app = Tooli("shop")
    app.command("pay", requires_approval=True)(lambda amount: amount)
    api = app.asgi(mcp=False, tokens={"m": None, "b": None} if has_tokens else None)

    async def pay(amount: int, token: str, name: str) -> Any:
        headers = [(b"tooli-caller", name.encode())]
        if has_tokens:
            headers.append((b"authorization", f"Bearer {token}".encode()))
        return await post(api, "pay", {"amount": str(amount)}, *headers)

    codes = [(await pay(i, "m", f"name{i}")).code for i in range(5)]
    assert codes == ["E2101"] * 3 + ["E2104"] * 2  # another name is the same caller
    last = (await pay(9, "m", "x")).json()["error"]
    assert "of this caller" in last["message"]
    assert "TOOLI_STATE_DIR" not in last["suggestion"]["fix"]
    if has_tokens:
        assert (await pay(6, "b", "x")).code == "E2101"
