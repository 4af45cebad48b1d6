"""Two apps that FastAPI or Starlette mounts, without a lifespan: `uvicorn mounted_apps:starlette`.

`wired` runs the lifespan of the first app.
"""

from __future__ import annotations

from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.routing import Mount

from tooli import Context, Tooli

shop = Tooli("shop", version="1")
garden = Tooli("garden", version="1")


@shop.command()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@shop.command()
def steps(ctx: Context, count: int = 3) -> int:
    """Report progress."""
    return sum([1 for _ in ctx.progress(list(range(count)))])


@shop.command()
def shout(word: str) -> None:
    """Print a word."""
    print(word.upper())


@shop.command()
def whoami(ctx: Context) -> str:
    """Return the name of the client."""
    return str(ctx.caller.name)


@shop.resource("shop://facts/one")
def fact() -> str:
    """Return a fact."""
    return "one"


@garden.command()
def crop() -> str:
    """Name a crop."""
    return "rice"


api = shop.asgi()
fast = FastAPI()
fast.mount("/shop", api)
fast.mount("/garden", garden.asgi())


@fast.get("/own")
def own() -> dict[str, bool]:
    """Answer a request to the outer application."""
    return {"own": True}


starlette = Starlette(routes=[Mount("/shop", shop.asgi()), Mount("/garden", garden.asgi())])

wired_api = shop.asgi()
wired = FastAPI(lifespan=wired_api.lifespan)
wired.mount("/shop", wired_api)
wired.mount("/garden", garden.asgi())

nested = FastAPI()
nested.mount("/outer", fast)
