"""Framework options in the words of an interface: `--yes`, `?yes=true`, `"yes": true`, `yes=True`.

Messages and suggestions name options with these functions only, so that every caller can do what
they say.
"""

from __future__ import annotations

from tooli.core._hot_tables import CALL_OPTIONS, FLAGS, OPTION_ALIASES

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from tooli.core.call import Call, Caller
    from tooli.core.tool import Tool


class InterfaceWords:
    """How the callers of an interface write options and calls."""

    is_command_line = False
    sends_options_apart = False  # options are not sent with the arguments

    def __init__(self, surface: str) -> None:
        self._surface = surface

    def option(self, name: str, value: Any, call: Call) -> str:
        """Return an option with its value."""
        raise NotImplementedError

    def spellings(self) -> dict[str, tuple[str, Any]]:
        """Return each name that is accepted, with the option and the value it implies."""
        options = CALL_OPTIONS.items()
        return {name: (name, None) for name, (_, found) in options if self._surface in found}

    def call(
        self,
        path: Sequence[str],
        arguments: Mapping[str, Any],
        options: Mapping[str, Any],
        caller: Caller,
    ) -> str | None:
        """Return a call as one line of text; None if its arguments say it all.

        `options` are those that are not sent with the arguments.
        """
        return None


class _CommandLineWords(InterfaceWords):
    is_command_line = True

    def option(self, name: str, value: Any, call: Call) -> str:
        return " ".join(option_argv({name: value}, call.tool, call))

    def spellings(self) -> dict[str, tuple[str, Any]]:
        return {
            flag[2:].replace("-", "_"): (name, None if implied == "+" else implied)
            for flag, (name, _, implied) in FLAGS.items()
            if flag[:2] == "--"
        }


class _HttpWords(InterfaceWords):
    sends_options_apart = True

    def option(self, name: str, value: Any, call: Call) -> str:
        return f"?{name}={query_text(value)}"

    def call(
        self,
        path: Sequence[str],
        arguments: Mapping[str, Any],
        options: Mapping[str, Any],
        caller: Caller,
    ) -> str:
        query = "&".join([f"{name}={_quote(query_text(v))}" for name, v in options.items()])
        place = "orchestrate" if _runs_script(path, arguments) else f"tools/{'/'.join(path)}"
        line = f"POST {caller.url_prefix}/{place}{'?' if query else ''}{query}"
        if not arguments:
            return line
        return f"{line} {_to_json(arguments)}"


class _McpWords(InterfaceWords):
    def option(self, name: str, value: Any, call: Call) -> str:
        text = f'"{name}": {_to_json(value)}'
        return f'{text} in _meta["io.tooli/options"]' if name in call.tool.param_names else text


class _PythonWords(InterfaceWords):
    def option(self, name: str, value: Any, call: Call) -> str:
        text = f"{name}={value!r}"
        return f"app.options({text})" if name in call.tool.param_names else text

    def call(
        self,
        path: Sequence[str],
        arguments: Mapping[str, Any],
        options: Mapping[str, Any],
        caller: Caller,
    ) -> str:
        keywords = ", ".join([f"{name}={value!r}" for name, value in options.items()])
        owner = f"app.options({keywords})" if options else "app"
        if _runs_script(path, arguments):
            code, *words = [repr(arguments["code"])] + [
                f"{name}={value!r}" for name, value in arguments.items() if name != "code"
            ]
            return f"{owner}.orchestrate({', '.join([code, *words])})"
        words = [f"{name}={value!r}" for name, value in arguments.items()]
        return f"{owner}.call({', '.join([repr('.'.join(path)), *words])})"


def _runs_script(path: Sequence[str], arguments: Mapping[str, Any]) -> bool:
    """True for a call that runs a script: it has no path among the tools."""
    return tuple(path) == ("orchestrate", "run") and "code" in arguments


INTERFACE_WORDS: dict[str, InterfaceWords] = {
    "cli": _CommandLineWords("cli"),
    "http": _HttpWords("http"),
    "mcp": _McpWords("mcp"),
    "python": _PythonWords("python"),
}
"""The words of each interface, by the name of the surface."""


def words_of(call: Call) -> InterfaceWords:
    """Return the words of the interface of a call: those of MCP for other surfaces with JSON."""
    return INTERFACE_WORDS.get(call.caller.surface) or INTERFACE_WORDS["mcp"]


def spell_option(call: Call, name: str, value: Any = True) -> str:
    """Return an option with a value as the caller of a call writes it."""
    return words_of(call).option(name, value, call)


def option_flag(name: str, tool: Tool | None, value: Any = None, call: Call | None = None) -> str:
    """Return the flag of an option on the command line, such as `--limit`.

    It is `--tooli-limit` if `--limit` would not be read as this option: the tool or a callback on
    the line of the call has a flag of that name, or the tool takes arguments that it does not
    declare. A value may have a flag of its own, such as `--json`.
    """
    name = OPTION_ALIASES.get(name, name)
    flags = [flag for flag, (option, _, _) in FLAGS.items() if option == name and flag[:2] == "--"]
    shortcuts = [flag for flag in flags if FLAGS[flag][1] == 0 and FLAGS[flag][2] == value]
    flag = (shortcuts or flags)[0]
    line = None if call is None else call.options.typed
    is_taken = (line is not None and flag in line.parent_flags) or (
        tool is not None
        and (
            tool.passes_arguments
            or any([flag in (*param.flags, *param.negations) for param in tool.params])
        )
    )
    return f"--tooli-{flag[2:]}" if is_taken else flag


def option_argv(
    options: Mapping[str, Any], tool: Tool | None, call: Call | None = None
) -> list[str]:
    """Return options as words of a command line; `call` is the call that is corrected."""
    words: list[str] = []
    for name, value in options.items():
        if value is None or value is False:
            continue
        flag = option_flag(name, tool, value, call)
        _, arity, implied = FLAGS[f"--{flag.removeprefix('--').removeprefix('tooli-')}"]
        if implied == "+":
            words += [flag] * min(int(value), 9)
        elif arity == 0:
            words.append(flag)
        else:
            text = ",".join(map(str, value)) if isinstance(value, (list, tuple)) else _text(value)  # pyright: ignore
            words += [f"{flag}={text}"] if text[:1] == "-" else [flag, text]
    return words


def query_text(value: Any) -> str:
    """Return a value as the query of a URL contains it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return ",".join(map(str, value))  # pyright: ignore[reportUnknownArgumentType]
    return _text(value)


def _to_json(value: Any) -> str:
    from json import dumps

    return dumps(value, ensure_ascii=False, separators=(",", ":"))


def _quote(text: str) -> str:
    """Quote a text for a URL. `urllib` is slow to import."""
    return "".join([chr(b) if chr(b) in _URL_CHARS else f"%{b:02X}" for b in text.encode()])


_URL_CHARS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.~"


def _text(value: Any) -> str:
    """Return a value as text; a whole number of seconds without its fraction."""
    return f"{value:g}" if isinstance(value, float) and value.is_integer() else str(value)
