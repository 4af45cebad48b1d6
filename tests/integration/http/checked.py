"""Apps for schemathesis, in a process of their own: every kind of parameter, and a token.

python -m tests.integration.http.checked zoo | files
"""

from __future__ import annotations

import sys
from typing import Annotated, Literal

from tests.parity import zoo

from tooli import Option, Tooli
from tooli.http.http_server import serve_http

FEW = Annotated[int, Option(min=0, max=20)]
NARROWED = {
    **{name: {"n": FEW} for name in ("count", "acount", "breaking", "returning")},
    "interrupted": {"after": FEW},
    "list_users": {"limit": FEW},
    "result": {"kind": Literal[tuple(zoo.RESULTS)]},
    **{name: {"kind": Literal[tuple(zoo.ERRORS)]} for name in ("fail", "afail")},
}
"""What the zoo leaves open, and an honest schema would not: how many, and which there are."""
RAISED = {"E2101": "a human must approve"}


def make_zoo() -> Tooli:
    """The zoo, all of it."""
    for fn, text in (*zoo._TOOLS, *zoo._USERS):
        fn.__annotations__.update(NARROWED.get(fn.__name__, {}))
        if fn.__name__ in ("fail", "afail"):
            text["error_codes"] = RAISED
    return zoo.make_app()


def make_files() -> Tooli:
    """The example."""
    from examples.file_tools.app import app

    return app


if __name__ == "__main__":
    if sys.argv[1] == "zoo":
        serve_http(make_zoo(), port=0, mcp=False)
    else:
        serve_http(make_files(), port=0, mcp=False, token="secret")
