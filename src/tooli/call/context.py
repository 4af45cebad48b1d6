"""Context: what a tool may ask of the framework while it runs.

A parameter annotated with it is filled in by the framework and appears in no
schema: `def sync(path: Path, ctx: Context) -> dict`.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any, TypeVar

    from tooli.call.model import Call, Caller, Options
    from tooli.call.peer import Question
    from tooli.call.rehearsal import Ledger
    from tooli.call.replies import Reply
    from tooli.contract.pages import PageRequest
    from tooli.detect import ExecutionContext

    T = TypeVar("T")


class Context:
    """The call that is running: who asked, with which options, and ways to talk to them."""

    __slots__ = ("_call", "_ledger")

    def __init__(self, call: Call, ledger: Ledger | None = None) -> None:
        self._call = call
        self._ledger = ledger  # of a rehearsal; a context variable does not reach every thread

    @property
    def caller(self) -> Caller:
        """Who is asking, and through which door."""
        return self._call.caller

    @property
    def execution_context(self) -> ExecutionContext:
        """Who seems to be calling, by the environment: what kind, how sure, seen by what."""
        from tooli.detect import detect_execution_context

        return detect_execution_context(surface=self._call.caller.surface)

    @property
    def options(self) -> Options:
        """What the caller asked of the framework: dry_run, yes, verbose, …"""
        return self._call.options

    @property
    def dry_run(self) -> bool:
        """Whether nothing may be done: the function is run for its plan."""
        return self._call.options.dry_run

    def plan(
        self,
        action: str,
        target: object,
        *,
        details: Mapping[str, Any] | None = None,
        state: Any = None,
    ) -> bool:
        """Note what is about to be done, as `record_dry_action` does; here it works in any thread.

        True in a dry run: then it must not be done.
        """
        if self._ledger is not None:
            return self._ledger.enter(action, target, details, state)
        from tooli.call.rehearsal import record_dry_action

        return record_dry_action(action, target, details=details, state=state)

    @property
    def page(self) -> PageRequest:
        """The page that is wanted, for a tool that pages at the source and returns a `Page`."""
        from tooli.contract.pages import PageRequest

        flow = self._call.flow
        return PageRequest() if flow is None else PageRequest(*flow.wanted())

    @property
    def tool(self) -> str:
        """The tool that runs, as `meta.tool` names it."""
        return self._call.tool.id

    def warn(self, message: str) -> None:
        """Tell the caller something that is no failure; it stands in `meta.warnings`."""
        self._call.warnings.append(str(message))  # an exception, say: it is told by its text

    def log(self, message: str, *, level: int | str = 1) -> None:
        """Say what is going on: on stderr where `-v` asks for it, to the client over MCP.

        The level is a number (`-v` shows 1, `-vv` shows 2) or a word of MCP's
        ("debug", "info", "warning", "error", …).
        """
        call = self._call
        if call.peer is not None:
            word = level if isinstance(level, str) else "info" if level <= 1 else "debug"
            call.peer.log(word, _clean(message, call))
            return
        needed = level if isinstance(level, int) else _NEEDED.get(level, 0)
        if call.options.verbose >= needed and not call.options.quiet:
            print(_clean(str(message), call), file=sys.stderr, flush=True)

    def progress(
        self, items: Iterable[T], *, total: int | None = None, label: str = ""
    ) -> Iterator[T]:
        """The same items: with a bar for a person, with progress told to an MCP client."""
        call = self._call
        if call.peer is not None:
            return _told(self, items, total, label or None)
        if not call.options.interactive or call.options.quiet:
            return iter(items)
        return _bar(items, total, _clean(label or call.tool.name, call))

    def report(self, done: float, total: float | None = None, message: str | None = None) -> None:
        """Tell an MCP client how far the call has come; a call that it cancelled ends here."""
        peer = self._call.peer
        if peer is not None:
            if peer.cancelled:
                from tooli.errors import Interrupted

                raise Interrupted("The client cancelled the call.")
            said = None if message is None else _clean(str(message), self._call)
            peer.progress(done, total, said)

    @property
    def cancelled(self) -> bool:
        """Whether the client has given the call up: a long loop should look, and end."""
        return self._call.peer is not None and self._call.peer.cancelled

    # -------------------------------------------------------------- asking

    def confirm(self, question: str, *, default: bool = False) -> bool:
        """Ask a person yes or no. `--yes` answers yes; where nobody can answer, the default."""
        options = self._call.options
        question = _clean(question, self._call)
        if options.yes or self._call.approved:
            return True
        if self._call.tool.guard.auto_confirm:
            from tooli.call.asking import agrees

            if agrees(self._call):
                return True
        if self._call.peer is not None and self._call.peer.can("elicitation/create"):
            from tooli.call.replies import YES_OR_NO, says_yes

            return says_yes(self.elicit(question, YES_OR_NO), default)
        if not options.interactive or options.no_input:
            return default
        from tooli.call.asking import ask

        return ask(question, default=default)

    def elicit(self, message: str, schema: Any) -> Reply:
        """Ask the client's person to fill in a form; what they did, and what they wrote.

        The schema is a flat JSON Schema object, or a model or dataclass that has one.
        """
        from tooli.call.replies import form, reply

        return reply(self.ask({"answer": form(message, schema)})["answer"])

    async def aelicit(self, message: str, schema: Any) -> Reply:
        """The same in async code."""
        from tooli.call.replies import form, reply

        return reply((await self.aask({"answer": form(message, schema)}))["answer"])

    def sample(self, prompt: Any, *, max_tokens: int = 1000, system: str | None = None) -> str:
        """Let the client's model answer a prompt: text, or a list of messages."""
        from tooli.call.replies import prompt_of, text_of

        return text_of(self.ask({"answer": prompt_of(prompt, max_tokens, system)})["answer"])

    async def asample(
        self, prompt: Any, *, max_tokens: int = 1000, system: str | None = None
    ) -> str:
        """The same in async code."""
        from tooli.call.replies import prompt_of, text_of

        asked = {"answer": prompt_of(prompt, max_tokens, system)}
        return text_of((await self.aask(asked))["answer"])

    def can_ask(self, question: Question | type[Question]) -> bool:
        """Whether the client can answer such a question: Elicit, Sample or Roots."""
        peer = self._call.peer
        return peer is not None and peer.can(question.method)

    def ask(self, questions: Mapping[str, Question]) -> Mapping[str, Any]:
        """Several questions at once (Elicit, Sample, Roots); each answer as MCP writes it."""
        from tooli.call.replies import peer_for

        return peer_for(self._call, questions).ask(_asked(questions, self._call))

    async def aask(self, questions: Mapping[str, Question]) -> Mapping[str, Any]:
        """The same in async code."""
        from tooli.call.replies import peer_for

        return await peer_for(self._call, questions).ask_async(_asked(questions, self._call))

    def let_go(self) -> None:
        """Let the client go while the call runs on; it comes back for the answer if it can."""
        if self._call.peer is not None:
            self._call.peer.let_go()


def _clean(message: Any, call: Call) -> Any:
    """A word on the way, as it may go out."""
    from tooli.call.cleaning import clean_word

    return clean_word(message, call)


def _asked(questions: Mapping[str, Question], call: Call) -> Mapping[str, Question]:
    """Questions as they may go out: to a client, its person or its model."""
    return {name: _cleaned(question, call) for name, question in questions.items()}


def _cleaned(question: Question, call: Call) -> Question:
    said = {name: getattr(question, name) for name in type(question).__match_args__}
    words = {name: value for name, value in said.items() if not isinstance(value, int)}
    return question.replace(**{name: _clean(value, call) for name, value in words.items()})


_NEEDED = {"debug": 2, "info": 1, "notice": 1}
"""How much `-v` shows a level; what is not here is always shown."""


def _told(
    ctx: Context, items: Iterable[Any], total: int | None, label: str | None
) -> Iterator[Any]:
    if total is None and hasattr(items, "__len__"):
        total = len(items)  # pyright: ignore[reportArgumentType]
    for done, item in enumerate(items, 1):
        yield item
        ctx.report(done, total, label)


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
