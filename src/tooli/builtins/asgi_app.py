"""The ASGI application of an app: its HTTP API, with MCP at /mcp if the SDK is installed."""

from __future__ import annotations

from functools import partial

from tooli.http import asgi
from tooli.mcp import mcp_endpoint
from tooli.mcp.lazy_endpoint import LazyEndpoint
from tooli.serving import dispatcher

TYPE_CHECKING = False

if TYPE_CHECKING:
    from tooli.core.protocols import App
    from tooli.http.asgi import Api, HttpSettingsDict


def build_asgi_app(
    app: App, settings: HttpSettingsDict, *, mcp: bool, stateless: bool, json_response: bool
) -> Api:
    """Return the ASGI application of an app. `HttpSettings` has the settings."""
    if mcp and dispatcher.is_installed("mcp"):
        build = partial(
            mcp_endpoint,
            app,
            deferred=app._state.defer_loading,
            code_mode=app._state.code_mode,
            stateless=stateless,
            json_response=json_response,
            expose_errors=settings.get("expose_errors", False),
        )
        endpoint = LazyEndpoint(build)
        settings["mounts"] = {"/mcp": endpoint, **settings.get("mounts", {})}
    return asgi.make_api(app, settings)
