"""An app whose commands ask for scopes, and fail on demand."""

from __future__ import annotations

import os

from tooli import Context, NotFoundError, StdinOr, TemporaryError, Tooli

app = Tooli("tokened", version="1.0", description="For tests.")


@app.command(auth=["files:read"])
def whoami(ctx: Context) -> dict[str, object]:
    """Who calls, as their token says."""
    caller = ctx.caller
    return {"principal": caller.principal, "scopes": sorted(caller.scopes)}


@app.command(auth=["files:write"])
def write() -> str:
    """Needs another scope."""
    return "written"


@app.command(auth=[])
def anyone() -> str:
    """Needs none."""
    return "anyone"


@app.command(auth=[])
def find(name: str) -> str:
    """Finds nothing, but what is called 'there'."""
    if "RAN" in os.environ:
        with open(os.environ["RAN"], "a") as file:
            file.write(".")
    if name == "there":
        return name
    raise NotFoundError(f"There is no {name}.")


@app.command(auth=[])
def busy() -> str:
    """Never works now."""
    raise TemporaryError("Not now.")


@app.command(auth=[])
def read(source: StdinOr[str]) -> str:
    """Reads what it is given, and finds it wanting."""
    raise NotFoundError("Nothing in it.")


@app.command(auth=[], rate_limit="2/hour")
def rare(word: str = "") -> str:
    """Twice an hour."""
    return word


if __name__ == "__main__":
    app()
