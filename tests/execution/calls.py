"""Calls for tests that run a function without the stages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tooli import Tooli
from tooli.core.call import Call, Caller, Options

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def make_call(
    fn: Callable[..., Any] = lambda: None,
    arguments: Mapping[str, Any] | None = None,
    *,
    surface: str = "python",
    meta: dict[str, Any] | None = None,
    **fields: Any,
) -> Call:
    """Return a call of a function, which is the only command of an app."""
    app = Tooli("app")
    app.command("work")(fn)
    (tool,) = app.catalog
    return Call(tool, arguments or {}, Caller(surface), [], Options(), meta=meta, **fields)
