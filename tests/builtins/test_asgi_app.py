"""The ASGI application of an app, with and without MCP."""

from __future__ import annotations

import pytest

from tooli import Tooli
from tooli.builtins.asgi_app import build_asgi_app
from tooli.serving import dispatcher


@pytest.mark.parametrize(
    ("mcp", "installed", "paths"), [(True, True, ["/mcp"]), (False, True, []), (True, False, [])]
)
def test_mcp_is_mounted_if_it_is_wanted_and_installed(
    mcp: bool, installed: bool, paths: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatcher, "is_installed", lambda package: installed)
    api = build_asgi_app(Tooli("shop"), {}, mcp=mcp, stateless=False, json_response=False)
    assert [mount.path for mount in api.mounts] == paths
