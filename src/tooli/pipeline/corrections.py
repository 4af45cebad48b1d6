"""Correct one part of an argument, so that a suggestion keeps the other parts.

--order '{"sku":"a","count":100}'     ──▶  --order '{"sku":"a","count":99}'
--order @order.json                   ──▶  --order @order.json --order.count '<count>'
{"tags": ["a", 5]}                    ──▶  {"tags": ["a", "<tags>"]}
"""

from __future__ import annotations

from json import dumps, loads

from tooli.core.tool import join_path
from tooli.pipeline.argv_builder import Placeholder, option_words, value_words
from tooli.pipeline.schema_descriptions import describe_json as describe_json
from tooli.pipeline.schema_descriptions import read_bounds as read_bounds
from tooli.pipeline.unknown_names import closest_flag, spelling_of
from tooli.schema import Converted, RawText
from tooli.schema.pydantic_messages import UnknownField
from tooli.text.jsonable import is_list, is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from tooli.core.call import Call, Problem
    from tooli.core.protocols import JsonObject
    from tooli.core.tool import Param


def correct_part(
    param_name: str, value: object, path: Sequence[str], suggested: object, is_missing: bool
) -> Any:
    """Return an argument with one part corrected; None if the part is not found.

    The part becomes the suggested value, or a placeholder. A field that does not exist gets its
    correct name or is left out. `is_missing` is True if the part is missing.
    """
    name = next((step for step in reversed(path) if not step.isdigit()), param_name)
    new = suggested if isinstance(suggested, (int, float, str)) else Placeholder(name).text
    if isinstance(value, RawText):
        return _correct_text(value, path, new, suggested, is_missing)
    copy: Any = _copy(value)
    return copy if _set_part(copy, path, new, suggested, is_missing) else None


def _correct_text(
    raw: RawText, path: Sequence[str], new: object, suggested: object, is_missing: bool
) -> RawText | None:
    """Return the text of an object on a command line with one part corrected."""
    name, dotted = ".".join(path), dict(raw.dotted or {})
    flag = _find_flag(name, dotted)
    if flag is not None:
        texts = dotted.pop(flag)
        if not isinstance(suggested, UnknownField):
            dotted[name] = [str(new)]
        elif suggested.closest is not None:
            dotted[".".join([*path[:-1], suggested.closest])] = texts
        return RawText(raw.texts, raw.fallback, dotted)
    if isinstance(suggested, UnknownField) and _find_inner_flags(name, dotted):
        return RawText(raw.texts, raw.fallback, _rename_inner_flags(path, suggested, dotted))
    assigned = [i for i, text in enumerate(raw.texts) if text.startswith(f"{name}=")]
    if assigned:
        return _correct_assignment(raw, assigned, name, new, suggested)
    position = 0
    if path[0].isdigit() and not (len(raw.texts) == 1 and raw.texts[0][:1] == "["):
        position, path = int(path[0]), path[1:]  # one text for each object of a list
    text = raw.texts[position] if position < len(raw.texts) else ""
    if path and text[:1] in ("{", "["):
        try:
            document: Any = loads(text)
        except ValueError:
            return None
        if not _set_part(document, path, new, suggested, is_missing):
            return None
        text = dumps(document, ensure_ascii=False, separators=(",", ":"))
        texts = [*raw.texts[:position], text, *raw.texts[position + 1 :]]
        return RawText(texts, raw.fallback, raw.dotted)
    if isinstance(suggested, UnknownField) or any([step.isdigit() for step in name.split(".")]):
        return None
    return RawText(raw.texts, raw.fallback, {**dotted, name: [str(new)]})


def _find_flag(name: str, dotted: Mapping[str, Sequence[str]]) -> str | None:
    """Return the dotted flag that gives a field. It may have hyphens in place of underscores."""
    spelled = name.replace("-", "_")
    candidates = [flag for flag in dotted if flag.replace("-", "_") == spelled]
    return name if name in dotted else next(iter(candidates), None)


def _find_inner_flags(name: str, dotted: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the dotted flags that give a part of a field."""
    spelled = f"{name.replace('-', '_')}."
    return [flag for flag in dotted if flag.replace("-", "_").startswith(spelled)]


def _rename_inner_flags(
    path: Sequence[str], field: UnknownField, dotted: Mapping[str, Sequence[str]]
) -> dict[str, Sequence[str]]:
    """Return the dotted flags with the name of a field corrected, or without its flags."""
    inner = _find_inner_flags(".".join(path), dotted)
    kept: dict[str, Sequence[str]] = {}
    for flag, texts in dotted.items():
        if flag not in inner:
            kept[flag] = texts
        elif field.closest is not None:
            steps = flag.split(".")
            kept[".".join([*path[:-1], field.closest, *steps[len(path) :]])] = texts
    return kept


def _correct_assignment(
    raw: RawText, positions: Sequence[int], name: str, new: object, suggested: object
) -> RawText:
    """Return the text of an object with one `name=value` corrected."""
    texts = list(raw.texts)
    if not isinstance(suggested, UnknownField):
        texts[positions[-1]] = f"{name}={new}"
    elif suggested.closest is not None:
        texts[positions[-1]] = f"{suggested.closest}{texts[positions[-1]].removeprefix(name)}"
    else:
        del texts[positions[-1]]
    return RawText(texts, raw.fallback, raw.dotted)


def correct_flag(call: Call, param: Param, arguments: dict[str, Any]) -> bool:
    """Correct a flag with a value, such as `--force=false`. Return True if the value is clear."""
    line = call.options.typed
    for word in () if line is None else line.typer_argv:
        name, equals, text = word.partition("=")
        value = _BOOL_TEXTS.get(text.lower())
        if equals and value is not None and name in (*param.flags, *param.negations):
            arguments[param.name] = value is (name in param.flags)
            return True
    return False  # it is left out


_BOOL_TEXTS = {
    **dict.fromkeys(("true", "yes", "on", "1"), True),
    **dict.fromkeys(("false", "no", "off", "0"), False),
}


# ------------------------------------------------------------------ lines that only Typer can read


def correct_words(
    call: Call, typed: Sequence[str], arguments: Mapping[str, Any]
) -> list[str] | None:
    """Return the typed words of a line that only Typer can read, with other arguments.

    Return None if the place of an argument in the line is not known.
    """
    tool = call.tool
    if any([problem.hides_value or _is_unplaced(problem) for problem in call.problems]):
        return None
    words = _correct_unknown_options(call, typed)
    before = tool.arguments_by_param(call.arguments)
    arguments_of_tool = [param for param in tool.command_params if param.kind == "argument"]
    for param in tool.command_params:
        old, new = (_unwrap(values.get(param.name)) for values in (before, arguments))
        if old is new or value_words(old) == value_words(new):
            continue
        texts = value_words(new) * (param.nargs if isinstance(new, Placeholder) else 1)
        if arguments_of_tool == [param] and not value_words(old):
            words += texts
            continue
        place = _find_value(param, words, value_words(old), len(texts))
        if place is not None:
            flag, equals, _ = "".join(words[place]).partition("=")
            has_flag = equals and flag in param.flags
            words[place] = [f"{flag}={texts[0]}"] if has_flag else texts
        elif param.kind == "option" and not value_words(old):
            words = [*option_words(param, new), *words]
        else:
            return None
    return words


def _is_unplaced(problem: Problem) -> bool:
    """True if a problem does not say which words of the line it is about."""
    return problem.code in ("E1004", "E1005") and not problem.field


def _unwrap(value: Any) -> Any:
    return value.value if isinstance(value, Converted) else value


def _find_value(
    param: Param, words: Sequence[str], texts: Sequence[str], count: int
) -> slice | None:
    """Return the place of a value among typed words, which `count` words replace."""
    end = words.index("--") if "--" in words else len(words)
    if count == param.nargs == 1:
        for i in range(end - 1, -1, -1):
            if words[i] in param.flags:
                return slice(i + 1, i + 2)  # it is empty if the value is missing
            if words[i].partition("=")[0] in param.flags:
                return slice(i, i + 1)
    size = len(texts)
    found = [i for i in range(len(words)) if [*words[i : i + size]] == [*texts]]
    return slice(found[0], found[0] + size) if size and len(found) == 1 else None


def _correct_unknown_options(call: Call, typed: Sequence[str]) -> list[str]:
    """Return typed words without the unknown options, or with the flags that are meant."""
    words = list(typed)
    known = {flag for param in call.tool.params for flag in (*param.flags, *param.negations)}
    for problem in call.problems:
        if problem.code != "E1004" or problem.field is None:
            continue
        end = words.index("--") if "--" in words else len(words)
        for i, word in enumerate(words[:end]):
            name, equals, text = word.partition("=")
            if word[:1] != "-" or name in known:
                continue
            if spelling_of(name) == problem.field:
                flag = closest_flag(name, call.tool.param(str(problem.suggested_value)))
                words[i : i + 1] = [f"{flag}{equals}{text}"] if flag else []
                break
    return words


def describe_option_advice(message: str) -> str:
    """Return what the message about an option advises, or else the message."""
    head, _, advice = message.partition("; ")
    if advice[:13] == "did you mean ":
        return f"Use {advice[13:].rstrip('?')}."
    return f"{advice[0].upper()}{advice[1:]}." if advice else f"{head}."


def describe_field_fix(problem: Problem) -> str:
    """Return how to correct a field that an object does not have."""
    field, closest = problem.field or "", problem.suggested_value.closest
    if closest is None:
        return f"Leave {field!r} out."
    return f"Use {join_path(field.rpartition('.')[0], closest)!r} instead of {field!r}."


def _set_part(
    holder: Any, path: Sequence[str], new: object, suggested: object, is_missing: bool
) -> bool:
    """Correct the part at a path of a JSON value; return False if it is not found."""
    for step in path[:-1]:
        holder = _get(holder, step)
    last = path[-1]
    if is_object(holder):
        if not (last in holder or is_missing):
            return False
    elif is_list(holder) and last.isdigit() and int(last) < len(holder):
        items: Any = holder
        items[int(last)] = new
        return True
    else:
        return False
    if isinstance(suggested, UnknownField):
        value = holder.pop(last)
        if suggested.closest is not None:
            holder.setdefault(suggested.closest, value)
    else:
        holder[last] = new
    return True


def _get(holder: object, step: str) -> object:
    if is_object(holder):
        return holder.get(step)
    if is_list(holder) and step.isdigit() and int(step) < len(holder):
        return holder[int(step)]
    return None


def _copy(value: object) -> object:
    """Return a copy of a JSON value that can be changed."""
    if is_object(value):
        copy: JsonObject = {str(name): _copy(item) for name, item in value.items()}
        return copy
    return [_copy(item) for item in value] if is_list(value) else value
