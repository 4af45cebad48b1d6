"""Serve an app that schemathesis tests: the parity app, or the example with a token.

python -m tests.integration.http.schemathesis_apps zoo | files
"""

from __future__ import annotations

import sys
from typing import Annotated, Literal

from tests.parity import zoo

from tooli import Option, Tooli
from tooli.http.http_server import serve_http

SMALL_INT = Annotated[int, Option(min=0, max=20)]
NARROWER_TYPES = {
    **{name: {"n": SMALL_INT} for name in ("count", "acount", "breaking", "returning")},
    "interrupted": {"after": SMALL_INT},
    "list_users": {"limit": SMALL_INT},
    "result": {"kind": Literal[tuple(zoo.RESULTS)]},
    **{name: {"kind": Literal[tuple(zoo.ERRORS)]} for name in ("fail", "afail")},
}
"""Parameter types by function. The types of the parity app accept values that make it fail."""
ERROR_CODES = {"E2101": "a human must approve"}
"""Codes that `fail` can raise. The OpenAPI document lists their statuses."""


def make_zoo() -> Tooli:
    """Return the parity app with narrower parameter types."""
    for fn, options in (*zoo._TOOLS, *zoo._USERS):
        fn.__annotations__.update(NARROWER_TYPES.get(fn.__name__, {}))
        if fn.__name__ in ("fail", "afail"):
            options["error_codes"] = ERROR_CODES
    return zoo.make_app()


def make_files() -> Tooli:
    """Return the app of the example `file_tools`."""
    from examples.file_tools.app import app

    return app


if __name__ == "__main__":
    if sys.argv[1] == "zoo":
        serve_http(make_zoo(), port=0, mcp=False)
    else:
        serve_http(make_files(), port=0, mcp=False, token="secret")
