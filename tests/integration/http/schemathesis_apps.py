"""Serve an app that schemathesis tests: the sample app, or the example with a token.

python -m tests.integration.http.schemathesis_apps sample | files
"""

from __future__ import annotations

import sys
from typing import Annotated, Literal

from tests.parity import sample_apps

from tooli import Option, Tooli
from tooli.http.http_server import serve_http

FAILURES = tuple(name for name in sample_apps.ERRORS if not name.endswith("exit-0"))
"""Errors with an outcome that the document describes: an exit with code 0 has no result."""
SMALL_INT = Annotated[int, Option(min=0, max=20)]
NARROWER_TYPES = {
    **{name: {"n": SMALL_INT} for name in ("count", "acount", "breaking", "returning")},
    "interrupted": {"after": SMALL_INT},
    "list_users": {"limit": SMALL_INT},
    "result": {"kind": Literal[tuple(sample_apps.RESULTS)]},
    **{name: {"kind": Literal[FAILURES]} for name in ("fail", "afail")},
}
"""Parameter types by function. The types of the sample app accept values that make it fail."""
ERROR_CODES = {"E2101": "a human must approve"}
"""Codes that `fail` can raise. The OpenAPI document lists their statuses."""


def make_sample() -> Tooli:
    """Return the sample app with narrower parameter types."""
    for fn, options in (*sample_apps.TOOLS, *sample_apps.USERS):
        fn.__annotations__.update(NARROWER_TYPES.get(fn.__name__, {}))
        if fn.__name__ in ("fail", "afail"):
            options["error_codes"] = ERROR_CODES
    return sample_apps.make_app()


def make_files() -> Tooli:
    """Return the app of the example `file_tools`."""
    from examples.file_tools.app import app

    return app


if __name__ == "__main__":
    if sys.argv[1] == "sample":
        serve_http(make_sample(), port=0, mcp=False)
    else:
        serve_http(make_files(), port=0, mcp=False, token="secret")
