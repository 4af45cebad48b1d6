"""An app for MCP clients, with results, failures, waiting calls and prompts of every kind."""

import asyncio
import math
import os
import subprocess
import sys
import threading
import time
from typing import Annotated, Any, Literal, TypedDict

from tooli import Context, InputError, Option, Suggestion, Tooli
from tooli.annotations import Destructive, Idempotent, OpenWorld, ReadOnly

app = Tooli("served", version="2.1", description="Tools to be called by clients.")
gates: dict[str, threading.Event] = {}
events: list[str] = []


class Pet(TypedDict):
    """A pet."""

    name: str
    age: int


# ------------------------------------------------------------------ results


@app.command(annotations=ReadOnly | Idempotent, version="3", when_to_use="To add.")
def add(a: Annotated[int, Option(help="The first.")], b: int = 1) -> int:
    """Add two numbers.

    Both are whole.
    """
    return a + b


@app.command()
def items(n: int = 3) -> list[int]:
    """Count up."""
    return list(range(n))


@app.command()
def pet(name: str, age: int = 1) -> Pet:
    """Make a pet."""
    return {"name": name, "age": age}


@app.command()
def maybe(there: bool = False) -> int | None:
    """Return a number or None."""
    return 1 if there else None


@app.command()
def echo(value: Any = None) -> Any:
    """Return the value."""
    return value


@app.command()
def greet(name: str, tone: Literal["warm", "cool"] = "warm") -> str:
    """Greet somebody."""
    return f"Hello {name}!" if tone == "warm" else f"{name}."


@app.command()
def loose(kind: str):
    """Return a value without an annotation."""
    return {"str": "text", "none": None, "dict": {"a": 1}, "list": [1, 2]}[kind]


@app.command()
def shout(word: str, fail: bool = False) -> None:
    """Print a word, loudly."""
    print(word.upper())
    if fail:
        raise ValueError("hoarse")


@app.command()
def odd() -> dict[str, Any]:
    """Return values that JSON cannot represent."""
    return {"nan": math.nan, "lone": "\ud800", "snow": "\N{SNOWMAN}", "inf": math.inf, "b": b"\xff"}


@app.command()
def big(size: int) -> str:
    """Return a long text."""
    return "x" * size


class Row(TypedDict):
    """A row."""

    n: int
    text: str


@app.command(paginated=100)
def rows(count: int = 250) -> list[Row]:
    """Show a page of the rows."""
    return [{"n": i, "text": "row"} for i in range(count)]


@app.command()
def all_rows(count: int, size: int = 100) -> list[Row]:
    """Show all rows."""
    return [{"n": i, "text": '"' * size} for i in range(count)]


@app.command()
def careful(ctx: Context, kind: str = "pet") -> Pet:
    """Return a pet and a warning."""
    ctx.warn("Be careful.")
    return {"name": kind, "age": 1}


@app.command()
def careful_count(ctx: Context) -> int:
    """Return a number and a warning."""
    ctx.warn("Be careful.")
    return 1


@app.command(annotations=OpenWorld, hidden=True)
def secret() -> int:
    """A hidden command."""
    return 1


users = Tooli("users", description="Users.")
app.add_typer(users, name="users")


@users.command(annotations=Idempotent, always_visible=True)
def create_one(name: str) -> Pet:
    """Create a user."""
    return {"name": name, "age": 0}


# ------------------------------------------------------------------ failures


@app.command()
def fail(kind: str = "input") -> int:
    """Fail in the given way."""
    if kind == "input":
        fix = Suggestion("retry_with_modified_input", "Say something else.")
        raise InputError("Not like this.", code="E1004", field="kind", suggestion=fix)
    if kind == "exit":
        sys.exit(3)
    if kind == "exit0":
        sys.exit(0)
    if kind == "interrupt":
        raise KeyboardInterrupt
    if kind == "deep":
        return fail(kind)
    raise ZeroDivisionError("by \N{SNOWMAN}")


# ------------------------------------------------------------------ waiting


def gate(key: str) -> threading.Event:
    """Return the event of a key, the same one in every thread.

    `setdefault` is atomic. A `defaultdict` is not: two threads could each create an event.
    """
    return gates.setdefault(key, threading.Event())


@app.command()
def wait(key: str) -> str:
    """Wait until `release` is called with the same key."""
    events.append(f"wait {key}")
    assert gate(key).wait(60)
    return key


@app.command()
async def wait_async(key: str) -> str:
    """Wait in a coroutine until `release` is called with the same key."""
    events.append(f"wait {key}")
    try:
        while not gate(key).is_set():
            await asyncio.sleep(0.005)
    except asyncio.CancelledError:
        events.append(f"cancelled {key}")
        raise
    return key


@app.command()
def wait_loop(key: str, ctx: Context) -> str:
    """Wait until the call is cancelled."""
    events.append(f"wait {key}")
    while not ctx.cancelled:
        time.sleep(0.005)
    events.append(f"cancelled {key}")
    return key


@app.command()
async def release(key: str) -> str:
    """End the waiting calls of a key. A coroutine runs even if no thread is free."""
    gate(key).set()
    return key


@app.command()
async def happened(event: str, count: int = 1) -> int:
    """Wait until an event has occurred `count` times."""
    until = time.monotonic() + 30
    while events.count(event) < count and time.monotonic() < until:
        await asyncio.sleep(0.005)
    return events.count(event)


@app.command()
async def count_of(event: str) -> int:
    """Return how often an event has occurred."""
    return events.count(event)


@app.command()
def sleep(seconds: float = 60, child: bool = False) -> int:
    """Sleep, optionally with a child process."""
    if child:
        started = subprocess.Popen([sys.executable, "-c", f"import time; time.sleep({seconds})"])
        os.write(2, b"child %d\n" % started.pid)
    os.write(2, b"ready\n")
    time.sleep(seconds)
    return 1


# ------------------------------------------------------------------ prompts, progress and messages


@app.command(annotations=Destructive)
def wipe(path: str) -> str:
    """Run a destructive command."""
    return f"wiped {path}"


@app.command(annotations=Destructive)
async def wipe_async(path: str) -> str:
    """Run a destructive command in a coroutine."""
    return f"wiped {path}"


@app.command(requires_approval=True, danger_level="high")
def launch(target: str) -> str:
    """Run a command that needs an approval."""
    return f"launched {target}"


@app.command()
def ask_name(ctx: Context) -> str:
    """Ask for a name."""
    schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    reply = ctx.elicit("Who are you?", schema)
    return f"{reply.action}: {reply.content.get('name')}"


@app.command()
async def ask_twice(ctx: Context) -> str:
    """Ask two questions in a coroutine."""
    first = await ctx.aelicit("One?", {"type": "object", "properties": {"x": {"type": "string"}}})
    second = await ctx.aelicit("Two?", {"type": "object", "properties": {"x": {"type": "string"}}})
    return f"{first.content.get('x')} {second.content.get('x')}"


@app.command()
def think(prompt: str, ctx: Context) -> str:
    """Return the answer of the client's model."""
    return ctx.sample(prompt, max_tokens=50, system="Be brief.")


@app.command()
def steps(n: int, ctx: Context) -> int:
    """Report progress."""
    for _ in ctx.progress(range(n), label="stepping"):
        pass
    ctx.report(n, n, "done")
    return n


@app.command()
def steps_to(key: str, ctx: Context) -> str:
    """Report three steps, then wait until `release` is called with the key."""
    for done in range(1, 4):
        ctx.report(done, 3)
    assert gate(key).wait(60)
    return key


@app.command()
def chat(ctx: Context) -> int:
    """Log messages of every level."""
    ctx.warn("careful")
    ctx.log("loud", level="error")
    ctx.log("plain")
    ctx.log("quiet", level=2)
    return 1


@app.command()
def whoami(ctx: Context) -> dict[str, Any]:
    """Return the caller."""
    caller = ctx.caller
    return {"surface": caller.surface, "name": caller.name, "version": caller.version}


# ------------------------------------------------------------------ resources and prompts


@app.resource("note://{name}")
def note(name: str) -> str:
    """A note."""
    return f"note {name}"


@app.resource("fact://one")
def fact() -> dict[str, int]:
    """A fact."""
    return {"one": 1}


@app.prompt()
def review(code: str) -> str:
    """Review code."""
    return f"Review {code}"


# ------------------------------------------------------------------ printing


@app.command()
def noisy(how: str) -> str:
    """Write to stdout in the given way."""
    if how == "print":
        print("noise")
    elif how == "write":
        os.write(1, b"noise\n")
    elif how == "stdout":
        sys.__stdout__.write("noise\n")
        sys.__stdout__.flush()
    elif how == "buffer":
        sys.stdout.buffer.write(b"noise\n")
    elif how == "child":
        subprocess.run([sys.executable, "-c", "print('noise')"], check=True)
    elif how == "shell":
        os.system("echo noise")
    elif how == "fork":
        pid = os.fork()
        if pid == 0:
            os.write(1, b"noise\n")
            print("noise", flush=True)
            os._exit(0)
        os.waitpid(pid, 0)
    elif how == "stdin":
        return repr((sys.stdin.read(), os.read(0, 10)))
    elif how == "close":
        os.close(1)
        print("noise")
    elif how == "close-stdout":
        sys.stdout.close()
    elif how == "replace":
        sys.stdout = open(1, "w", closefd=False)
        print("noise", flush=True)
    elif how == "thread":
        other = threading.Thread(target=print, args=("noise",))
        other.start()
        other.join()
    elif how == "end":
        os._exit(7)
    return how


if __name__ == "__main__":
    app()
