"""The functions with which Python code asks a question, and how to replace them.

`input` and `getpass` read an answer. `typer.prompt`, `typer.confirm` and the prompts of rich call
them. What they ask is read from their frames, because they pass on only a part of the question.
"""

from __future__ import annotations

import sys
from importlib.machinery import PathFinder

from tooli.core import Record

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from importlib.machinery import ModuleSpec
    from types import FrameType, ModuleType
    from typing import Any

PROMPT_FUNCTIONS = {
    "getpass": ("_raw_input", "win_getpass"),
    "typer._click.termui": ("visible_prompt_func", "_getchar"),
    "click.termui": ("visible_prompt_func", "_getchar"),
}
"""Functions that read an answer, by module. `hidden_prompt_func` of Typer calls `getpass`."""

_MAX_FRAMES = 8  # between a function that reads an answer and the one that asks


class AskedQuestion(Record):
    """What the code of a command asks."""

    text: str = ""
    is_hidden: bool = False  # the answer is not shown while it is typed
    is_confirmation: bool = False  # the answer is yes or no
    default: object = None
    choices: tuple[str, ...] = ()
    kind: object = None  # the type of the answer, if the code names one
    is_repeated: bool = False  # the answer before was not valid
    is_shown: bool = False  # the question is printed already, without its last character
    last_character: str = ""
    writes_to_stderr: bool = False


def replace_in_module(
    module: ModuleType, wrap: Callable[[str, Any], Callable[..., Any]]
) -> Iterator[tuple[ModuleType, str, Any]]:
    """Replace the functions of a module that read an answer; yield what was there.

    `wrap` gets the name of a function and the function, which is None if the module has none yet.
    """
    for name in PROMPT_FUNCTIONS.get(module.__name__, ()):
        original = getattr(module, name, None)
        if original is not None or name == "_getchar":
            setattr(module, name, wrap(name, original))
            yield module, name, original


def find_getpass(on_load: Callable[[ModuleType], object]) -> ModuleSpec | None:
    """Return the spec of `getpass`, with a function that is called as soon as it is loaded."""
    spec = PathFinder.find_spec("getpass")
    loader: Any = None if spec is None else spec.loader
    if loader is not None:
        load = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            load(module)
            on_load(module)

        loader.exec_module = exec_module
    return spec


# ------------------------------------------------------------------ what is asked


def read_question(function: str, args: tuple[object, ...]) -> AskedQuestion:
    """Return the question of the code that called one of the functions with these arguments."""
    is_hidden = function in PROMPT_FUNCTIONS["getpass"]
    text = args[0] if args and isinstance(args[0], str) else ""
    frame: FrameType | None = sys._getframe(1)
    for _ in range(_MAX_FRAMES):
        if frame is None:
            break
        read = _READERS.get((frame.f_globals.get("__name__"), frame.f_code.co_name))
        if read is not None:
            return read(frame.f_locals).replace(is_hidden=is_hidden, last_character=text)
        frame = frame.f_back
    return AskedQuestion(_clean(text), is_hidden)


def read_traceback(exc: BaseException) -> AskedQuestion | None:
    """Return the question of the code that raised an exception; None if it is not known."""
    found: AskedQuestion | None = None
    trace = exc.__traceback__
    while trace is not None:
        frame, trace = trace.tb_frame, trace.tb_next
        read = _READERS.get((frame.f_globals.get("__name__"), frame.f_code.co_name))
        found = found if read is None else read(frame.f_locals)
    return found


def _read_prompt(values: Mapping[str, Any]) -> AskedQuestion:
    """Read the frame of `typer.prompt`."""
    default: Any = values.get("default")
    is_second = "result" in values  # "Repeat for confirmation"
    return AskedQuestion(
        _clean(values.get("text")),
        default=default,
        choices=_read_choices(values.get("type")),
        kind=values.get("type") or default.__class__,
        is_repeated="value2" in values if is_second else "value" in values,
        is_shown=True,
        writes_to_stderr=bool(values.get("err")),
    )


def _read_confirm(values: Mapping[str, Any]) -> AskedQuestion:
    """Read the frame of `typer.confirm`."""
    return AskedQuestion(
        _clean(values.get("text")),
        is_confirmation=True,
        default=values.get("default"),
        is_repeated="value" in values,
        is_shown=True,
        writes_to_stderr=bool(values.get("err")),
    )


def _read_rich(values: Mapping[str, Any]) -> AskedQuestion:
    """Read the frame of `PromptBase.__call__`, which `rich.prompt.Prompt.ask` calls."""
    prompt: Any = values.get("self")
    default = values.get("default")
    names = [cls.__name__ for cls in type(prompt).__mro__]
    return AskedQuestion(
        _clean(getattr(prompt, "prompt", "")),
        is_confirmation="Confirm" in names,
        default=default if isinstance(default, (str, int, float)) else None,
        choices=() if "Confirm" in names else tuple(getattr(prompt, "choices", None) or ()),
        kind=getattr(prompt, "response_type", None),
        is_repeated="value" in values,
        is_shown=True,
    )


_READERS: dict[tuple[Any, str], Callable[[Mapping[str, Any]], AskedQuestion]] = {
    ("typer._click.termui", "prompt"): _read_prompt,
    ("click.termui", "prompt"): _read_prompt,
    ("typer._click.termui", "confirm"): _read_confirm,
    ("click.termui", "confirm"): _read_confirm,
    ("rich.prompt", "__call__"): _read_rich,
}


def _read_choices(kind: Any) -> tuple[str, ...]:
    """Return the choices of a `click.Choice`, an Enum or a Literal; empty for other types."""
    members = getattr(kind, "__members__", None)
    if members is not None:
        return tuple([str(member.value) for member in members.values()])
    found = getattr(kind, "choices", None)
    if found is None and getattr(kind, "__origin__", None) is _literal():
        found = kind.__args__
    return tuple([str(getattr(choice, "value", choice)) for choice in found or ()])


def _literal() -> object:
    typing = sys.modules.get("typing")
    return getattr(typing, "Literal", AskedQuestion)  # nothing has AskedQuestion as its origin


def _clean(text: object) -> str:
    return str(text if text is not None else "").strip().rstrip(":").strip()
