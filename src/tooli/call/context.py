"""Context: what a tool may ask of the framework while it runs.

A parameter annotated with it is filled in by the framework and appears in no
schema: `def sync(path: Path, ctx: Context) -> dict`.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any, TypeVar

    from tooli.call.model import Call, Caller, Options

    T = TypeVar("T")


class Context:
    """The call that is running: who asked, with which options, and ways to talk to them."""

    __slots__ = ("_call",)

    def __init__(self, call: Call) -> None:
        self._call = call

    @property
    def caller(self) -> Caller:
        """Who is asking, and through which door."""
        return self._call.caller

    @property
    def options(self) -> Options:
        """What the caller asked of the framework: dry_run, yes, verbose, …"""
        return self._call.options

    @property
    def tool(self) -> str:
        """The tool that runs, as `meta.tool` names it."""
        return self._call.tool.id

    def warn(self, message: str) -> None:
        """Tell the caller something that is no failure; it stands in `meta.warnings`."""
        self._call.warnings.append(message)

    def log(self, message: str, *, level: int = 1) -> None:
        """Write a line to stderr when the caller wants that much: `-v` shows level 1."""
        if self._call.options.verbose >= level and not self._call.options.quiet:
            print(message, file=sys.stderr, flush=True)

    def progress(
        self, items: Iterable[T], *, total: int | None = None, label: str = ""
    ) -> Iterator[T]:
        """The same items, with a bar on stderr for a person and silence for a machine."""
        options = self._call.options
        if not options.interactive or options.quiet:
            return iter(items)
        return _bar(items, total, label or self._call.tool.name)

    def confirm(self, question: str, *, default: bool = False) -> bool:
        """Ask a person yes or no. `--yes` answers yes; where nobody can answer, the default."""
        options = self._call.options
        if options.yes or self._call.approved:
            return True
        if not options.interactive or options.no_input:
            return default
        from tooli.call.asking import ask

        return ask(question, default=default)


def _bar(items: Iterable[Any], total: int | None, label: str) -> Iterator[Any]:
    from rich.console import Console
    from rich.progress import track

    console = Console(file=sys.stderr)
    yield from track(items, description=label, total=total, console=console, transient=True)


def typer_context(call: Call) -> Any:
    """Typer's context for a tool that wants one, where no Typer runs the call."""
    import typer
    from typer.core import TyperCommand

    command = TyperCommand(name=call.tool.name, callback=call.tool.fn)
    return typer.Context(command, info_name=call.tool.name)
