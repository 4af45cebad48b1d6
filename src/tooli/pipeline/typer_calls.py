"""Run a call through Typer's command tree, so that callbacks and custom classes run.

    arguments ─▶ build_words ─▶ argv ─▶ Typer: callbacks ▸ command ─▶ function

The command line is built from the validated arguments, and Typer parses it as it parses any other.
Servers run calls in threads. Typer's commands keep the arguments of a running call, so each call
takes a command tree of its own from a pool. It takes the tree before the function runs: in the
process of the function, which may be monitored or sandboxed, Typer could not be imported.
"""

from __future__ import annotations

import functools
import sys
from contextvars import copy_context
from queue import SimpleQueue
from threading import Thread
from weakref import WeakKeyDictionary

from tooli.core import typer_lock
from tooli.core.call import Problem
from tooli.core.command_route import (
    CONVERTING_KEYWORDS,
    EXIT_KEY,
    CommandRun,
    changes_runs,
    current_run,
)
from tooli.core.event_loop import iterate_async, run_awaitable
from tooli.core.tool import Handle, TyperOnly, is_structured, item_shape
from tooli.errors import InputError, InternalError, ToolError
from tooli.pipeline import load_location
from tooli.pipeline.drivers import close_stream, is_async_stream, is_awaitable, is_stream
from tooli.pipeline.failure import requested_exit_code
from tooli.pipeline.input_errors import build_input_error
from tooli.schema import Converted
from tooli.schema.convert_values import convert_argument
from tooli.schema.pydantic_messages import normalize_message
from tooli.text.json_encoder import encode
from tooli.text.jsonable import to_jsonable

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from tooli.core import AppState
    from tooli.core.call import Call
    from tooli.core.command_route import CommandRoute
    from tooli.core.tool import Param

MAX_COUNT = 1000
"""Maximum value of an option that is counted, such as `-vvv`."""


# ------------------------------------------------------------------ command trees


class CommandTrees:
    """The command trees of an app that are not in use."""

    def __init__(self) -> None:
        self._revision = -1
        self._unused: list[Any] = []

    def take(self, state: AppState) -> Any:
        """Return a command tree that no other call uses."""
        if self._revision != state.revision:
            self._unused, self._revision = [], state.revision
        try:
            return self._unused.pop()
        except IndexError:
            app: Any = state.app
            if state.served_typer is None:
                app._initialize_typer()  # or wait for the thread that does it
            with typer_lock.current:  # Typer changes os.environ here
                return _build_command_tree(state)

    def give_back(self, tree: Any, revision: int) -> None:
        """Keep a command tree for the next call, unless the app has changed."""
        if revision == self._revision and not hasattr(tree, "tooli_failed"):
            self._unused.append(tree)


_trees_of_apps: WeakKeyDictionary[AppState, CommandTrees] = WeakKeyDictionary()


class TakenTree:
    """A command tree that a call has taken, and the commands along its route.

    `commands` are the app, its groups, and the command.
    """

    def __init__(self, route: CommandRoute) -> None:
        state = route.state
        self._revision = state.revision
        self._trees = _trees_of_apps.setdefault(state, CommandTrees())
        self.tree = self._trees.take(state)
        self.commands = _find_commands(self.tree, route)
        _prepare_params(self.commands)
        self.is_running = False
        self._is_taken = True

    def give_back(self) -> None:
        """Let other calls use the tree, once. A thread may still run it, after a timeout."""
        if self._is_taken and not self.is_running:
            self._is_taken = False
            self._trees.give_back(self.tree, self._revision)


def _build_command_tree(state: AppState) -> Any:
    """Return a new command tree. An option with a prompt must be given: nobody can answer."""
    app: Any = state.served_typer or state.app
    tree = load_location("typer.main:get_command")(app)
    pending = [tree]
    for command in pending:
        for param in command.params:
            if getattr(param, "prompt", None):
                param.prompt_for_value = report_missing(param)
        inner = getattr(command, "commands", None)
        if hasattr(command.callback, "tooli_failed"):
            vars(tree)["tooli_failed"] = True  # a module is not imported yet: do not keep the tree
        if inner is not None:
            pending += inner.values()
        elif command.callback is not None and not hasattr(command, "tooli_app"):
            command.callback = _recorded(command.callback)
    return tree


def report_missing(param: Any) -> Callable[[Any], object]:
    """Return a replacement for the prompt of an option that reports the option as missing."""
    usage_errors: Any = sys.modules[load_location("typer:BadParameter").__module__]

    def fail(ctx: Any) -> object:
        run = current_run.get()
        if isinstance(run, TyperCall) and run.has_value_of(param.name):
            return None  # the function gets the value of the call
        raise usage_errors.MissingParameter(ctx=ctx, param=param)

    return fail


def _recorded(callback: Callable[..., object]) -> Callable[..., object]:
    """Return the callback of a plain Typer's command; it records the result in the current run."""

    @functools.wraps(callback)
    def run_and_record(**values: object) -> object:
        run = current_run.get()
        if isinstance(run, TyperCall):
            return run.record(callback, values)
        return callback(**values)

    return run_and_record


def _find_commands(tree: Any, route: CommandRoute) -> list[Any]:
    """Return the commands along the path: the app, its groups, and the command."""
    if not hasattr(tree, "commands"):
        return [tree]  # an app with one command
    found = [tree]
    for name in route.path:
        command = getattr(found[-1], "commands", {}).get(name)
        if command is None:
            raise InternalError(f"Typer has no command {' '.join(route.path)!r}.")
        found.append(command)
    for routed in route.params.values():
        owner = found[-1] if routed.level is None else found[routed.level]
        if routed.name not in [param.name for param in owner.params]:
            raise InternalError(f"Typer does not know the parameter {routed.name!r}.")
    return found


def _prepare_params(commands: Sequence[Any]) -> None:
    """Let Typer make what it converts parameters with, which it does at the first use."""
    context = None
    for command in commands:
        settings = command.context_settings
        context = command.context_class(command, context, command.name, **settings)
        for param in (*command.params, command.get_help_option(context)):
            if getattr(param, "_runtime_param", 0) is None:
                with typer_lock.current:
                    param.get_runtime_param()


# ------------------------------------------------------------------ the call


class RoutedCall:
    """The function of one call of a tool that has a route, with its callbacks around it.

    `given` are the names of the arguments that the caller gave. Typer fills in all others.
    """

    def __init__(self, call: Call, given: Iterable[str]) -> None:
        assert call.tool.route is not None
        functools.update_wrapper(self, call.tool.fn)
        self._call = call
        self.given = frozenset(given)
        self._taken = TakenTree(call.tool.route)
        plan = vars(self).get("tooli_plan")

        def run_plan(**arguments: object) -> object:
            return self._start(arguments, plan).run()

        if plan is not None:  # the author's plan runs behind the callbacks as well
            vars(self)["tooli_plan"] = run_plan

    def __call__(self, /, **arguments: object) -> object:
        """Run the callbacks and the function; return its value, or an iterator of its items."""
        typer_call = self._start(arguments)
        return ThreadedItems(typer_call) if self._call.tool.is_streaming else typer_call.run()

    def _start(self, bound: Mapping[str, Any], fn: Callable[..., Any] | None = None) -> TyperCall:
        return TyperCall(self._call, self._taken, self.given, bound, fn)

    def close(self) -> None:
        """Give the command tree back. A stream gives it back itself, when it has ended."""
        if not self._call.tool.is_streaming:
            self._taken.give_back()


class TyperCall(CommandRun):
    """A call while Typer runs it."""

    def __init__(
        self,
        call: Call,
        taken: TakenTree,
        given: frozenset[str],
        bound: Mapping[str, Any],
        fn: Callable[..., Any] | None = None,
    ) -> None:
        assert call.tool.route is not None
        self._call, self._given, self._bound = call, given, bound
        self.taken = taken
        self._route: CommandRoute = call.tool.route
        self._fn = fn or self._route.registration.fn
        self._is_plan = fn is not None
        self._result: tuple[object] | None = None
        self._has_started = False
        self.emit: Callable[[object], None] | None = None  # receives the items of a stream

    def run(self) -> object:
        """Let Typer run the callbacks and the command; return the result of the function."""
        tree, self.taken.is_running = self.taken.tree, True
        token = current_run.set(self)
        try:
            returned = self._invoke(tree, self._build_argv())
        except (Exception, SystemExit) as exc:
            if requested_exit_code(exc) != 0 or (self._has_started and self._result is None):
                raise self._translated(exc) from exc.__cause__
            returned = None
            if not self._has_started and self._call.meta is not None:
                self._call.meta[EXIT_KEY] = True
        finally:
            current_run.reset(token)
            self.taken.is_running = False
        return returned if self._result is None else self._result[0]

    def _invoke(self, tree: Any, argv: list[str]) -> object:
        name = self._call.tool.app
        if _overrides_main(tree.__class__):
            code = tree.main(argv, prog_name=name, standalone_mode=False)
            if not self._has_started and isinstance(code, int):
                raise SystemExit(code)
            return code
        with tree.make_context(name, argv) as context:
            return tree.invoke(context)

    # -------------------------------------------------------------- the function

    def is_for(self, registration: object) -> bool:
        """True if this is a call of a command, and not of another one that a callback invokes."""
        return registration is self._route.registration

    def call_function(self, parsed: Mapping[str, object]) -> object:
        """Call the function with the values that Typer has parsed.

        The function gets the values of the call, as from every other tool. It gets Typer's values
        of arguments that the caller did not give, and of those that the app's own code converts.
        """
        route, tool = self._route, self._call.tool
        bound = {k: v for k, v in self._bound.items() if not route.is_of_callback(k)}
        exact = [] if self._has_custom_class else [name for name in self._given if name in bound]
        parsed = {k: v for k, v in parsed.items() if k not in exact or self._is_converted(k)}
        if tool.input_model is not None or self._is_plan:
            parsed = {name: value for name, value in parsed.items() if name in bound}
        signature = route.registration.read_signature()
        converted = {
            name: convert_argument(signature.param(name), value)
            if isinstance(value, Converted)
            else value
            for name, value in parsed.items()
        }
        return self.record(self._fn, {**bound, **converted})

    @property
    def _has_custom_class(self) -> bool:
        return changes_runs(self._route.registration.kwargs.get("cls"))

    def _is_converted(self, name: str) -> bool:
        """True if a parser or callback of the app converts the parameter, or Typer opens it."""
        param = self._route.params[name].param
        keywords = param.option_kwargs.keys()
        return isinstance(param.shape, TyperOnly) or not keywords.isdisjoint(CONVERTING_KEYWORDS)

    def record(self, fn: Callable[..., object], values: Mapping[str, object]) -> object:
        """Call the function of the command, and keep its result."""
        self._has_started = True
        value = fn(**values)
        if is_awaitable(value):
            value = run_awaitable(value)
        if is_async_stream(value):
            value = iterate_async(value)
        if is_stream(value):
            value = self._consume(value)
        self._result = (value,)
        return value

    def _consume(self, items: Iterator[object]) -> object:
        """Read a stream here, while the contexts of Typer are open."""
        try:
            if self.emit is None:
                return list(items)
            for item in items:
                self.emit(item)
        finally:
            close_stream(items)
        return None

    # -------------------------------------------------------------- command line and errors

    def _build_argv(self) -> list[str]:
        """Return the command line of the call."""
        commands, argv = self.taken.commands, list[str]()
        values = self._call.tool.arguments_by_param(self._bound)
        for level, command in enumerate(commands):
            is_last = level == len(commands) - 1
            taken = {
                routed.name: (name, routed.param, values[name], self._is_given(name, values[name]))
                for name, routed in self._route.params.items()
                if routed.level == (None if is_last else level)
            }
            argv += build_words(command, taken, is_last=is_last)
            if not is_last:
                argv.append(self._route.path[level])
        return argv

    def _is_given(self, name: str, value: object) -> bool:
        """True if the caller gave a value. None stands for no value if it is the default."""
        param = self._call.tool.param(name)
        is_empty = value is None and param is not None and param.default is None
        return name in self._given and not is_empty

    def has_value_of(self, typer_name: str) -> bool:
        """True if the caller gave a value that no command line can express, such as an object."""
        params = self._route.params.items()
        return any([name in self._given for name, routed in params if routed.name == typer_name])

    def _translated(self, exc: BaseException) -> BaseException:
        """Return an exception; an error about a parameter names the parameter of the tool."""
        param = getattr(exc, "param", None)
        if isinstance(exc, ToolError) or param is None or not hasattr(exc, "format_message"):
            return exc
        level, context = -1, getattr(exc, "ctx", None)
        while context is not None:
            level, context = level + 1, context.parent
        is_command = level >= len(self.taken.commands) - 1
        for name, routed in self._route.params.items():
            if routed.name == param.name and routed.level == (None if is_command else level):
                code = "E1002" if type(exc).__name__ == "MissingParameter" else "E1003"
                text = normalize_message(getattr(exc, "message", "") or "a value is required")
                problem = Problem(code, name, f"{name!r}: {text}")
                return build_input_error(self._call.replace(problems=(problem,)), [])
        return exc


def _overrides_main(cls: type) -> bool:
    """True if an app's own group class replaces `main`."""
    owners = [base for base in cls.__mro__ if "main" in vars(base)]
    return any(owner.__module__.partition(".")[0] not in _LIBRARIES for owner in owners)


_LIBRARIES = ("typer", "click", "tooli")


# ------------------------------------------------------------------ words of a command line


def build_words(
    command: Any, taken: Mapping[str, tuple[str, Param, Any, bool]], *, is_last: bool = True
) -> list[str]:
    """Return the words after the name of a command, up to the name of the next one.

    `taken` has the tool's name, the declaration and the value of each parameter, and whether the
    caller gave it. Raises InputError for a value that a command line cannot express.
    """
    options: list[str] = []
    arguments: list[tuple[list[str], bool]] = []
    names: list[str] = []
    for typer_param in command.params:
        if typer_param.name not in taken:
            continue
        name, param, value, is_given = taken[typer_param.name]
        item = item_shape(param.shape)
        if isinstance(item, Handle) or is_structured(param.shape):
            if is_given and not is_last:
                raise _inexpressible(name, "callbacks take objects on the command line only")
            continue  # optional for Typer: the function gets the value of the call
        if typer_param.param_type_name == "argument":
            arguments.append((_argument_words(typer_param, name, param, value), is_given))
            names.append(name)
        elif is_given:
            options += _option_words(typer_param, name, param, value)
    last_given = max([i for i, (_, is_given) in enumerate(arguments) if is_given], default=-1)
    count = last_given + 1 if is_last else len(arguments)
    for i in range(last_given if is_last else count):
        if not arguments[i][0]:  # Typer would read the next word as its value
            raise _inexpressible(names[i], "it needs a value, because other words follow it")
    words = [word for found, _ in arguments[:count] for word in found]
    prefixes = {"-", *(flag[0] for p in command.params for flag in p.opts if not flag[0].isalnum())}
    if any(word[:1] in prefixes for word in words):
        return [*options, "--", *words]
    return [*options, *words]


def _argument_words(typer_param: Any, name: str, param: Param, value: Any) -> list[str]:
    if value is None or (value == [] and typer_param.nargs == -1):
        return []
    many = typer_param.nargs != 1
    return [_to_text(item, name, param) for item in (value if many else [value])]


def _option_words(typer_param: Any, name: str, param: Param, value: Any) -> list[str]:
    flags = sorted(typer_param.opts, key=len)
    if getattr(typer_param, "count", False) and isinstance(value, int):
        if not 0 <= value <= MAX_COUNT:
            raise _inexpressible(name, f"the value must be between 0 and {MAX_COUNT}")
        return [flags[-1]] * value
    if value is None or value in ([], ()):
        if typer_param.default not in (None, [], ()) or param.option_kwargs.get("envvar"):
            raise _inexpressible(name, "leave it out instead of passing an empty value")
        return []
    if getattr(typer_param, "is_flag", False) and isinstance(value, bool):
        found = flags if value else sorted(typer_param.secondary_opts, key=len)
        if found or value is (typer_param.default or False):
            return found[-1:]
        raise _inexpressible(name, f"the command line has no flag for {str(value).lower()}")
    if getattr(typer_param, "multiple", False):
        found = [_one_option(typer_param, flags[-1], name, param, item) for item in value]
        return [word for words in found for word in words]
    return _one_option(typer_param, flags[-1], name, param, value)


def _one_option(typer_param: Any, flag: str, name: str, param: Param, value: Any) -> list[str]:
    if typer_param.nargs != 1:
        return [flag, *(_to_text(item, name, param) for item in value)]
    text = _to_text(value, name, param)
    return [f"{flag}={text}"] if flag[:2] == "--" else [flag, text]


def _to_text(value: Any, name: str, param: Param) -> str:
    """Return a value as Typer reads it from a command line."""
    if isinstance(item_shape(param.shape), TyperOnly) and str(value) == "-":
        raise _inexpressible(name, "'-' stands for stdin on a command line only. Name a file")
    if hasattr(value, "get_secret_value"):
        value = value.get_secret_value()
    if isinstance(getattr(value.__class__, "_member_map_", None), dict):
        value = value.value
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (str, int, float)):
        return str(value)
    if hasattr(value, "__fspath__"):
        return str(value)
    formats: Sequence[str] | None = param.option_kwargs.get("formats")
    if formats and hasattr(value, "strftime"):
        return value.strftime(formats[0])
    if hasattr(value, "isoformat"):
        return value.isoformat()
    json_value = to_jsonable(value, [])
    return json_value if isinstance(json_value, str) else encode(json_value, []).decode()


def _inexpressible(name: str, reason: str) -> InputError:
    return InputError(f"{name!r} cannot be passed to Typer: {reason}.", code="E1003", field=name)


# ------------------------------------------------------------------ streams

_CLOSE_TIMEOUT = 5.0


class _StreamClosed(BaseException):
    """Ends the thread of a stream whose reader has stopped."""


class ThreadedItems:
    """The items of a stream that Typer runs.

    Typer closes its contexts when the command returns, so the stream is read inside of them, in a
    thread of its own. The thread produces an item only when the reader asks for it.
    """

    def __init__(self, typer_call: TyperCall) -> None:
        self._requests: SimpleQueue[bool] = SimpleQueue()
        self._answers: SimpleQueue[tuple[str, Any]] = SimpleQueue()
        self._is_started = self._is_ended = False
        typer_call.emit = self._emit
        target = copy_context().run
        self._thread = Thread(target=target, args=(self._produce, typer_call), daemon=True)

    def _produce(self, typer_call: TyperCall) -> None:
        try:
            if self._requests.get():
                typer_call.run()
            self._answers.put(("end", None))
        except BaseException as exc:
            self._answers.put(("error", exc))
        finally:
            typer_call.taken.give_back()

    def _emit(self, item: object) -> None:
        self._answers.put(("item", item))
        if not self._requests.get():
            raise _StreamClosed

    def __iter__(self) -> ThreadedItems:
        return self

    def __next__(self) -> Any:
        if self._is_ended:
            raise StopIteration
        if not self._is_started:
            self._is_started = True
            self._thread.start()
        self._requests.put(True)
        kind, payload = self._answers.get()
        if kind == "item":
            return payload
        self._is_ended = True
        if kind == "error":
            raise payload
        raise StopIteration

    def close(self) -> None:
        """End the stream; wait a limited time for the function to clean up."""
        if self._is_started and not self._is_ended:
            self._is_ended = True
            self._requests.put(False)
            self._thread.join(_CLOSE_TIMEOUT)
        self._is_ended = True

    __del__ = close
