"""Apps for schemathesis, in a process of their own: every kind of parameter, and a token.

python -m tests.integration.http.checked zoo | files
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Annotated

from tests.parity import zoo

from tooli import Option, Tooli
from tooli.surfaces.http.serve import serve_http

BROKEN = {"fail", "afail", "breaking", "interrupted", "result"}
"""They fail with whatever they are asked for: that is what they are there for."""
ENDLESS = {"count", "acount", "returning"}
"""They make as many items as anybody says."""


def make_zoo() -> Tooli:
    """The zoo, without what is meant to break."""
    app = Tooli("zoo", version="1.2.0", description="Everything once.")
    for fn, said in zoo._TOOLS:
        name = said.get("name") or fn.__name__
        if name not in BROKEN | ENDLESS:
            app.command(**said)(fn)
    users = Tooli("users")
    for fn, said in zoo._USERS:
        if fn.__name__ != "list_users":
            users.command(**said)(fn)
    app.add_typer(users, name="users")

    @app.command()
    def few(n: Annotated[int, Option(min=0, max=20)] = 3) -> Iterator[dict[str, int]]:
        """A stream of a decent length."""
        for i in range(n):
            yield {"i": i}

    return app


def make_files() -> Tooli:
    """The example."""
    from examples.file_tools.app import app

    return app


if __name__ == "__main__":
    if sys.argv[1] == "zoo":
        serve_http(make_zoo(), port=0, mcp=False)
    else:
        serve_http(make_files(), port=0, mcp=False, token="secret")
