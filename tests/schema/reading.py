"""Helpers that read a function or one parameter."""

from __future__ import annotations

from typing import Any

from tooli.core.tool import MISSING, Param, Tool
from tooli.schema.tool_reader import read_tool


def read(fn: Any, **settings: Any) -> Tool:
    return read_tool(fn, app="app", path=("tool",), kwargs=settings, version="1.0")


def read_one(annotation: Any = MISSING, default: Any = MISSING) -> Param:
    """The Param of a function with just this parameter, called `the_name`."""
    fn = (lambda the_name: None) if default is MISSING else (lambda the_name=default: None)
    if annotation is not MISSING:
        fn.__annotations__["the_name"] = annotation
    return read(fn).params[0]
