"""A small app that uses every feature of MCP, for tests with real clients."""

from __future__ import annotations

import asyncio
import pathlib
import time
from typing import Annotated, Any, Literal

from tooli import (
    Audio,
    Context,
    Embedded,
    Image,
    Link,
    Message,
    NotFoundError,
    Option,
    Tooli,
)
from tooli.annotations import Destructive, ReadOnly

app = Tooli("notes", description="Notes for tests.", version="2.1")
NOTES = {1: "milk", 2: "bread"}


@app.command(annotations=ReadOnly)
def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    return a + b


@app.command(annotations=ReadOnly, resource="notes://{id}")
def note(id: int) -> dict[str, Any]:
    """Return a note."""
    if id not in NOTES:
        raise NotFoundError(f"There is no note {id}.")
    return {"id": id, "text": NOTES[id]}


@app.command()
def show() -> list[str | Image | Audio | Embedded | Link]:
    """Return content of every kind."""
    return [
        "some text",
        Image(b"png"),
        Audio(b"wav"),
        Embedded("notes://1", "milk", "text/plain"),
        Link("notes://2", "bread"),
    ]


@app.command()
def echo(text: str) -> None:
    """Print the text."""
    print(text)


@app.command()
def count(to: int, ctx: Context) -> int:
    """Count, and report progress."""
    for _ in ctx.progress(range(to), label="counting"):
        pass
    return to


@app.command()
async def acount(to: int, ctx: Context) -> int:
    """Count on the event loop."""
    for done in range(to):
        ctx.report(done + 1, to)
        await asyncio.sleep(0)
    return to


@app.command()
def log(level: str, ctx: Context) -> str:
    """Send a log message."""
    ctx.log("something", level=level)
    return "logged"


@app.command()
def sleep(seconds: float, ctx: Context) -> str:
    """Report progress, then sleep."""
    ctx.report(1)
    time.sleep(seconds)
    return "done"


@app.command()
def wait_for_cancel(marker: pathlib.Path, ctx: Context) -> str:
    """Wait in a thread until the client cancels the call; then write the marker."""
    ctx.report(1)
    while not ctx.cancelled:
        time.sleep(0.01)
    marker.write_text("cancelled")
    return "not cancelled"


@app.command()
async def wait_for_cancel_async(marker: pathlib.Path, ctx: Context) -> str:
    """Wait on the event loop until the client cancels the call; then write the marker."""
    ctx.report(1)
    try:
        await asyncio.sleep(3600)
    except asyncio.CancelledError:
        marker.write_text("cancelled")
        raise
    return "not cancelled"


@app.command(requires_approval=True)
def deploy(where: str) -> str:
    """Deploy something. A human must approve it."""
    return f"deployed to {where}"


@app.command(requires_approval=True)
async def adeploy(where: str, ctx: Context) -> str:
    """Deploy something on the event loop, and ask another question."""
    reply = await ctx.aelicit("Which colour?", {"type": "object", "properties": {}})
    return f"deployed to {where}, {reply.action}"


@app.command(annotations=Destructive)
def wipe(what: str) -> str:
    """Destroy something."""
    return f"wiped {what}"


@app.command()
def interview(ctx: Context) -> str:
    """Ask for a name, then for an age."""
    name_schema = {"type": "object", "properties": {"name": {"type": "string"}}}
    age_schema = {"type": "object", "properties": {"age": {"type": "integer"}}}
    name = ctx.elicit("Your name?", name_schema)
    if not name.accepted:
        return f"no name ({name.action})"
    age = ctx.elicit("Your age?", age_schema)
    return f"{name.content['name']}, {age.content.get('age')}"


@app.command()
def consult(question: str, ctx: Context) -> str:
    """Ask the client's model."""
    return ctx.sample(question)


@app.command()
def write_note(id: int, text: str) -> str:
    """Change a note, and notify its subscribers."""
    NOTES[id] = text
    app.announce(f"notes://{id}")
    return "written"


@app.command()
def register(kind: Literal["tool", "prompt", "resource"]) -> str:
    """Register a tool, a prompt or a resource while the app is served."""
    if kind == "tool":
        app.command(f"registered-{len(app.catalog)}")(add)
    elif kind == "prompt":
        app.prompt("registered")(greeting)
    else:
        app.resource("notes://registered/text")(greeting)
    return kind


def greeting() -> str:
    """Return a greeting; registered while the app is served."""
    return "hello"


# ------------------------------------------------------------------ resources


@app.resource("notes://all", title="All notes", size=12, annotations={"audience": ["user"]})
def all_notes() -> list[str]:
    """Return all notes."""
    return list(NOTES.values())


@app.resource("notes://logo.png")
def logo() -> bytes:
    """The logo."""
    return b"\x89PNG"


@app.resource("notes://readme.md")
async def readme() -> str:
    """How to use the app."""
    return "# Notes"


@app.resource("notes://pair")
def pair() -> list[Embedded]:
    """Return two documents."""
    return [Embedded("notes://1", "milk"), Embedded("notes://2", b"bread", "text/x-bread")]


@app.resource("notes://broken")
def broken() -> str:
    """Raise an error."""
    raise ValueError("broken")


@app.resource("files://{path*}", complete={"path": lambda text: [f"{text}.txt", f"{text}.md"]})
def file(path: str) -> str:
    """Return the content of a file."""
    return f"content of {path}"


# ------------------------------------------------------------------ prompts


@app.prompt(complete={"topic": lambda text, arguments: [f"{arguments.get('tone')} {text}"]})
def essay(topic: str, tone: Literal["dry", "warm"] = "dry", words: int = 100) -> str:
    """Write an essay.

    Args:
        topic: What it is about.
    """
    return f"Write {words} {tone} words about {topic}."


@app.prompt("talk", title="A talk", description="Two people.")
def dialogue(who: Annotated[str, Option(help="Who talks.")]) -> list[Message]:
    """Not shown, because the decorator sets a description."""
    return [Message(f"I am {who}."), Message("Hello!", "assistant"), Message(Image(b"png"))]


@app.prompt()
async def ask_first(ctx: Context) -> str:
    """Return a prompt after asking a question."""
    reply = await ctx.aelicit("What about?", {"type": "object", "properties": {}})
    return f"about {reply.content.get('x')}"


if __name__ == "__main__":
    app()
