"""Context: gives a function access to the running call, its caller and its MCP client.

A parameter with this annotation is injected and does not appear in the schema:
`def sync(path: Path, ctx: Context) -> dict`.
"""

from __future__ import annotations

import sys

from tooli.core import Record, find_loaded
from tooli.core.peer import Elicit, Sample
from tooli.errors import InternalError
from tooli.pipeline.present import present_message, present_questions, present_text

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any, TypeVar

    from tooli.core.call import Call, Caller, Options
    from tooli.core.peer import Peer, Question
    from tooli.core.protocols import JsonObject
    from tooli.core.result_types import PageRequest
    from tooli.core.session_state import SessionState
    from tooli.core.tool import Param
    from tooli.detect import ExecutionContext
    from tooli.errors import ApprovalRequired
    from tooli.pipeline.dry_run_recorder import ActionRecorder
    from tooli.pipeline.reports import ProgressLines

    T = TypeVar("T")


class Context:
    """The running call: its caller, its options, and ways to talk to the caller."""

    __slots__ = ("_call", "_progress_lines", "_recorder")

    def __init__(self, call: Call, recorder: ActionRecorder | None = None) -> None:
        self._call = call
        self._recorder = recorder  # for threads, which do not inherit the context variable
        self._progress_lines: ProgressLines | None = None

    @property
    def caller(self) -> Caller:
        """The caller, and the interface that it uses."""
        return self._call.caller

    @property
    def execution_context(self) -> ExecutionContext:
        """The caller: its category, and the confidence and signals of its detection."""
        from tooli.detect import describe_caller

        return describe_caller(self._call.caller)

    @property
    def options(self) -> Options:
        """The framework options of the call: dry_run, yes, verbose, …"""
        return self._call.options

    @property
    def dry_run(self) -> bool:
        """True in a dry run: the function must not change anything."""
        return self._call.options.dry_run

    def plan(
        self,
        action: str,
        target: object,
        *,
        details: Mapping[str, Any] | None = None,
        state: object = None,
    ) -> bool:
        """Record an action before you perform it, like `record_dry_action`, but in any thread.

        Returns True in a dry run: skip the action then.
        """
        if self._recorder is not None:
            return self._recorder.record_action(action, target, details, state)
        from tooli.pipeline.dry_run_recorder import record_dry_action

        return record_dry_action(action, target, details=details, state=state)

    @property
    def page(self) -> PageRequest:
        """The requested page, for a function that does the paging and returns a `Page`."""
        from tooli.core.result_types import PageRequest

        flow = self._call.flow
        return PageRequest() if flow is None else PageRequest(*flow.requested_page())

    @property
    def lifespan(self) -> Any:
        """What the function of `app.lifespan` has yielded, or None."""
        lifespans = self._call.tool.lifespans
        if self._call.lifespan is None and lifespans:
            return lifespans[-1].value
        return self._call.lifespan

    @property
    def settings(self) -> Any:
        """The settings object of the app (`Tooli(settings=…)`), or None."""
        settings = self._call.tool.settings
        if settings and self._call.session_data is None:
            raise InternalError("Commands that are isolated with bubblewrap have no ctx.settings.")
        return settings[-1].value() if settings else None

    @property
    def state(self) -> SessionState:
        """Values that the calls of one session share: a mapping, empty at first."""
        from tooli.core.session_state import SessionState

        call = self._call
        if call.session_data is None:
            raise InternalError("Commands that are isolated with bubblewrap have no ctx.state.")
        is_copy = find_loaded("tooli.execution.worker", "is_worker_process")
        return SessionState(call.session_data, is_kept=call.keeps_session, is_copy=bool(is_copy))

    @property
    def request_id(self) -> str | None:
        """The id of the request to a server, as in its log; None on the command line."""
        request = self._call.request
        return None if request is None else request.id

    @property
    def tool(self) -> str:
        """The name of the running tool, as in `meta.tool`."""
        return self._call.tool.id

    def warn(self, message: str) -> None:
        """Add a warning to `meta.warnings`."""
        self._call.warnings.append(str(message))  # it may be an exception

    def log(self, message: str, *, level: int | str = 1) -> None:
        """Log a message: to stderr, depending on `-v`, or to the client (MCP, HTTP, `--stream`).

        The level is a number (`-v` shows 1, `-vv` shows 2) or a level of MCP
        ("debug", "info", "warning", "error", …).
        """
        call, peer = self._call, self._event_peer
        if peer is not None:
            level_name = level if isinstance(level, str) else "info" if level <= 1 else "debug"
            peer.log(level_name, present_message(message, call))
            return
        verbosity = level if isinstance(level, int) else _LEVEL_VERBOSITY.get(level, 0)
        if call.options.verbose >= verbosity and not call.options.quiet:
            print(present_text(str(message), call), file=sys.stderr, flush=True)

    def progress(
        self, items: Iterable[T], *, total: int | None = None, label: str = ""
    ) -> Iterator[T]:
        """Iterate over items and show the progress: as a bar on a terminal, or to the client."""
        call = self._call
        if self._event_peer is not None:
            return _report_progress(self, items, total, label or None)
        if not call.options.interactive or call.options.quiet:
            return iter(items)
        return _progress_bar(items, total, present_text(label or call.tool.name, call))

    def report(self, done: float, total: float | None = None, message: str | None = None) -> None:
        """Report the progress to the client; raise if the client has cancelled the call.

        A person at the terminal sees a line on stderr, if there is a total or a message.
        """
        call, peer = self._call, self._call.peer
        text = None if message is None else present_text(str(message), call)
        if peer is not None and peer.cancelled:
            from tooli.errors import Interrupted

            raise Interrupted("The client cancelled the call.")
        if peer is not None and peer.receives_events:
            peer.progress(done, total, text)
        elif call.options.interactive and not call.options.quiet:
            if self._progress_lines is None:
                from tooli.pipeline.reports import ProgressLines

                self._progress_lines = ProgressLines()
            self._progress_lines.show(done, total, text or "")

    def artifact(self, name: str, target: object, *, mime_type: str | None = None) -> None:
        """Report a file or another resource that the call has made: its name, and path or URI.

        It is in `meta.artifacts` of the answer. Clients that receive events get it at once.
        """
        from tooli.pipeline.reports import report_artifact

        report_artifact(self._call, name, target, mime_type)

    @property
    def _event_peer(self) -> Peer | None:
        """The client, if it receives progress and log messages."""
        peer = self._call.peer
        return peer if peer is not None and peer.receives_events else None

    @property
    def cancelled(self) -> bool:
        """True if the client has cancelled the call. A long loop should check it."""
        return self._call.peer is not None and self._call.peer.cancelled

    def remaining_time(self) -> float | None:
        """Return the seconds until the call has to end, for a function that stops itself.

        None without a deadline, and in functions that tooli stops.
        """
        return None if self._call.stop is None else self._call.stop.remaining_time()

    def on_stop(self, callback: Callable[[], object]) -> None:
        """Call a function when the call has to end, in a function that stops itself.

        It is called at the deadline, if the client cancels the call, and after Ctrl-C. It ends
        what the function waits for: `ctx.on_stop(process.kill)`.
        """
        if self._call.stop is not None:
            self._call.stop.on_stop(callback)

    # -------------------------------------------------------------- asking

    def confirm(self, question: str, *, default: bool = False) -> bool:
        """Ask yes or no. `--yes` and approvals mean yes; if nobody can answer, use the default."""
        options = self._call.options
        question = present_text(question, self._call)
        if options.yes or self._call.approved:
            return True
        from tooli.pipeline.terminal_prompts import ask_yes_no, is_auto_confirmed

        if self._call.tool.guard.auto_confirm and is_auto_confirmed(self._call):
            return True
        if self._call.peer is not None and self._call.peer.supports("elicitation/create"):
            return is_yes(self.elicit(question, YES_NO_SCHEMA), default)
        if not options.interactive or options.no_input:
            return default
        return ask_yes_no(question, default=default)

    def elicit(self, message: str, schema: object) -> Reply:
        """Ask the user of the MCP client to fill in a form, and return the reply.

        The schema is a flat JSON Schema object, or a model or a dataclass.
        """
        return parse_reply(self.ask({"answer": build_elicit(message, schema)})["answer"])

    async def aelicit(self, message: str, schema: object) -> Reply:
        """Ask the user of the MCP client to fill in a form, from async code."""
        return parse_reply((await self.aask({"answer": build_elicit(message, schema)}))["answer"])

    def sample(
        self,
        prompt: object,
        *,
        max_tokens: int = 1000,
        system: str | None = None,
        temperature: float | None = None,
        stop_sequences: Sequence[str] = (),
    ) -> str:
        """Ask the language model of the caller; the prompt is a text or a list of messages.

        The caller gives the model: the MCP client, `--sample-via`, `app.options(sampler=…)`.
        """
        question = build_sample(prompt, max_tokens, system, temperature, stop_sequences)
        return sample_text(self.ask({"answer": question})["answer"])

    async def asample(
        self,
        prompt: object,
        *,
        max_tokens: int = 1000,
        system: str | None = None,
        temperature: float | None = None,
        stop_sequences: Sequence[str] = (),
    ) -> str:
        """Ask the language model of the caller, from async code."""
        question = build_sample(prompt, max_tokens, system, temperature, stop_sequences)
        return sample_text((await self.aask({"answer": question}))["answer"])

    def can_ask(self, question: Question | type[Question]) -> bool:
        """True if the client can answer this kind of question: Elicit, Sample or Roots."""
        peer = self._call.peer
        return peer is not None and peer.supports(question.method)

    def ask(self, questions: Mapping[str, Question]) -> Mapping[str, Any]:
        """Ask several questions at once (Elicit, Sample, Roots); return the MCP results by name."""
        return require_peer(self._call, questions).ask(present_questions(questions, self._call))

    async def aask(self, questions: Mapping[str, Question]) -> Mapping[str, Any]:
        """Ask several questions at once, from async code."""
        return await require_peer(self._call, questions).ask_async(
            present_questions(questions, self._call)
        )

    def disconnect_client(self) -> None:
        """Close the client's connection while the call goes on; the client may reconnect."""
        if self._call.peer is not None:
            self._call.peer.disconnect_client()


def call_of(ctx: Context) -> Call:
    """Return the call that a Context belongs to, for commands of tooli itself."""
    return ctx._call


_LEVEL_VERBOSITY = {"debug": 2, "info": 1, "notice": 1}
"""The verbosity at which a level is shown. Other levels are always shown."""


def _report_progress(
    ctx: Context, items: Iterable[Any], total: int | None, label: str | None
) -> Iterator[Any]:
    if total is None and hasattr(items, "__len__"):
        total = len(items)  # pyright: ignore[reportArgumentType]
    for done, item in enumerate(items, 1):
        yield item
        ctx.report(done, total, label)


def _progress_bar(items: Iterable[Any], total: int | None, label: str) -> Iterator[Any]:
    from rich import console, progress

    stderr = console.Console(file=sys.stderr)
    yield from progress.track(items, description=label, total=total, console=stderr, transient=True)


def make_injected(param: Param, call: Call) -> Any:
    """Return the value of an injected parameter: a Context or a `typer.Context`.

    A dependency is made later, where the function runs.
    """
    if getattr(param.shape, "kind", None) == "dependency":
        return None
    is_context = getattr(param.shape, "kind", None) == "context"
    return Context(call) if is_context else typer_context(call)


def replace_context(
    arguments: Mapping[str, Any], recorder: ActionRecorder | None = None, **changes: Any
) -> dict[str, Any]:
    """Return bound arguments with a new Context, if they contain one.

    The new Context has this recorder, and a copy of the call with the changes.
    """
    replaced = dict(arguments)
    for name, value in arguments.items():
        if isinstance(value, Context):
            replaced[name] = Context(value._call.replace(**changes), recorder)
    return replaced


def update_context(arguments: Mapping[str, Any], **changes: Any) -> dict[str, Any]:
    """Return bound arguments whose Context, if they contain one, has a changed copy of the call."""
    updated = dict(arguments)
    for name, value in arguments.items():
        if isinstance(value, Context):
            updated[name] = Context(value._call.replace(**changes), value._recorder)
    return updated


def typer_context(call: Call) -> Any:
    """Return a `typer.Context` for a function that takes one but is not called by Typer."""
    import typer.core

    command = typer.core.TyperCommand(name=call.tool.name, callback=call.tool.fn)
    return typer.Context(command, info_name=call.tool.name)


# ------------------------------------------------------------------ requests to the MCP client


class Reply(Record):
    """The reply to a form: "accept", "decline" or "cancel", and the content."""

    action: str
    content: Mapping[str, Any] = {}

    @property
    def accepted(self) -> bool:
        """True if the form was filled in."""
        return self.action == "accept"


YES_NO_SCHEMA: JsonObject = {
    "type": "object",
    "properties": {"yes": {"type": "boolean", "title": "Yes"}},
    "required": ["yes"],
}
"""The form of a yes-or-no question."""


def is_yes(answer: Reply, default: bool = False) -> bool:
    """True if a yes-or-no form was answered with yes. Return the default if it was cancelled."""
    if answer.action == "cancel":
        return default
    return answer.accepted and answer.content.get("yes") is True


def build_elicit(message: str, schema: object) -> Elicit:
    """Return the question that shows a form."""
    if not isinstance(schema, dict):
        from tooli.schema.json_schema import annotation_schema

        schema = annotation_schema(schema)
    return Elicit(message, {"type": "object", "properties": {}, **schema})


def parse_reply(response: object) -> Reply:
    """Return the reply in an MCP result. A malformed result counts as cancelled."""
    from tooli.text.jsonable import is_object

    if not is_object(response):
        return Reply("cancel")
    content = response.get("content")
    return Reply(str(response.get("action", "cancel")), content if is_object(content) else {})


def build_sample(
    prompt: Any,
    max_tokens: int,
    system: str | None,
    temperature: float | None = None,
    stop_sequences: Sequence[str] = (),
) -> Sample:
    """Return the sampling request for the model of the caller."""
    if isinstance(prompt, str):
        prompt = [{"role": "user", "content": {"type": "text", "text": prompt}}]
    return Sample(prompt, max_tokens, system, temperature, tuple(stop_sequences))


def sample_text(response: object) -> str:
    """Return the text in the answer of the client's model."""
    from tooli.text.jsonable import is_list, is_object

    content = response.get("content") if is_object(response) else None
    blocks = content if is_list(content) else [content]
    return "".join([str(block.get("text", "")) for block in blocks if is_object(block)])


def require_peer(call: Call, questions: Mapping[str, Question]) -> Peer:
    """Return the client; raise ApprovalRequired (exit 101) if it cannot answer."""
    peer = call.peer
    unable = [q.method for q in questions.values() if peer is None or not peer.supports(q.method)]
    if peer is not None and not unable:
        return peer
    if unable == [Sample.method]:
        raise no_sampler_error(call)
    from tooli.errors import ApprovalRequired, Suggestion

    raise ApprovalRequired(
        f"{call.tool.name} has to ask ({', '.join(sorted(set(unable)))}), "
        "but the client cannot answer.",
        code="E2102",
        details={"asked": sorted(set(unable))},
        suggestion=Suggestion("ask_human", "Use a client that supports these requests."),
    )


def no_sampler_error(call: Call) -> ApprovalRequired:
    """Return the error of a call that asks a language model, if its caller provides none."""
    from tooli.errors import ApprovalRequired, Suggestion

    caller = call.caller
    if caller.owns_process:
        from tooli.pipeline.suggestions import suggest_call

        suggestion = Suggestion(
            "fix",
            "Add --sample-via stdin, and answer the sample_request lines on stdout with "
            "sample_response lines on stdin; or add --sample-via URL.",
        )
        suggestion.target = suggest_call(call, sample_via="stdin")
    elif caller.is_in_process:
        suggestion = Suggestion(
            "fix", "Give a function that asks a model: app.options(sampler=fn).call(…)."
        )
    else:
        suggestion = Suggestion(
            "use_different_tool",
            "Call the command over MCP, with a client that declares the capability sampling.",
        )
    return ApprovalRequired(
        f"{call.tool.name} asks a language model, but the caller gives none.",
        code="E2102",
        details={"asked": [Sample.method]},
        suggestion=suggestion,
    )
