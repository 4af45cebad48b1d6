"""An app whose commands require scopes, fail or have a rate limit."""

from __future__ import annotations

import os

from tooli import Context, NotFoundError, StdinOr, TemporaryError, Tooli

app = Tooli("token-auth", version="1.0", description="For tests.")


@app.command(auth=["files:read"])
def whoami(ctx: Context) -> dict[str, object]:
    """Return the principal and the scopes of the token."""
    caller = ctx.caller
    return {"principal": caller.principal, "scopes": sorted(caller.scopes)}


@app.command(auth=["files:write"])
def write() -> str:
    """Require another scope."""
    return "written"


@app.command(auth=[])
def anyone() -> str:
    """Require no scope."""
    return "anyone"


@app.command(auth=[])
def find(name: str) -> str:
    """Fail for every name except `there`."""
    if "RAN" in os.environ:
        with open(os.environ["RAN"], "a") as file:
            file.write(".")
    if name == "there":
        return name
    raise NotFoundError(f"There is no {name}.")


@app.command(auth=[])
def busy() -> str:
    """Fail with a temporary error."""
    raise TemporaryError("Not now.")


@app.command(auth=[])
def read(source: StdinOr[str]) -> str:
    """Read the input, and fail."""
    raise NotFoundError("Nothing in it.")


@app.command(auth=[], rate_limit="2/hour")
def rare(word: str = "") -> str:
    """Allow two calls per hour."""
    return word


if __name__ == "__main__":
    app()
