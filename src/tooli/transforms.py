"""Change which tools an app shows, and how: names, help, arguments, visibility.

    from tooli.transforms import Arg, Namespace, ToolTransform, Visibility

    app.add_transform(Visibility(exclude_tags={"admin"}))
    app.add_provider(github, namespace="gh", transforms=[
        ToolTransform("create-issue", name="report", args={"owner": Arg(value="me", hide=True)}),
    ])

A transform is a function that takes a `Tool` and returns it, a changed copy, or None to leave it
out. The classes here make such functions. Every interface and every document has the changed tools.
"""

from __future__ import annotations

from tooli.core import Record
from tooli.core.tool import DEFAULT_GUIDANCE, MISSING, Tool, is_bool
from tooli.core.versions import compare_key, split_version
from tooli.errors import DefinitionError
from tooli.pipeline.drivers import CO_ASYNC_GENERATOR, CO_COROUTINE, code_flags
from tooli.schema.tool_reader import return_annotation
from tooli.similar_names import did_you_mean

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from typing import Any, TypeAlias

    from tooli.core.protocols import JsonObject
    from tooli.core.tool import Param

    Transform: TypeAlias = Callable[[Tool], "Tool | None"]
    """A transform: it returns the tool, a changed copy, or None to leave the tool out."""

_CO_GENERATOR = 0x20


class Namespace:
    """Puts all tools into a group: `Namespace("gh")` makes `create-issue` `gh create-issue`."""

    def __init__(self, name: str) -> None:
        self.words = tuple(name.split("."))
        if not all([_is_command_word(word) for word in self.words]):
            raise DefinitionError(f"Namespace({name!r}): must consist of letters, digits, `-`, `_`")

    def __call__(self, tool: Tool) -> Tool:
        return tool.replace(path=(*self.words, *tool.path))


class Visibility:
    """Leaves tools out by their tags.

    Args:
        include_tags: Only tools with one of these tags are shown.
        exclude_tags: Tools with one of these tags are left out.
        include_hidden: False leaves out tools that are `hidden=True` as well.
        roles: Callers with one of these scopes have the tools that are left out for others.
    """

    def __init__(
        self,
        include_tags: Collection[str] | None = None,
        exclude_tags: Collection[str] | None = None,
        *,
        include_hidden: bool = True,
        roles: Collection[str] = (),
    ) -> None:
        for name, tags in (
            *(("include_tags", include_tags), ("exclude_tags", exclude_tags), ("roles", roles)),
        ):
            if isinstance(tags, str):
                raise DefinitionError(f"Visibility({name}={tags!r}): must be a set or a list")
        self._included = None if include_tags is None else frozenset(include_tags)
        self._excluded = frozenset(exclude_tags or ())
        self._include_hidden = include_hidden
        self._roles = tuple(sorted(roles))

    def __call__(self, tool: Tool) -> Tool | None:
        if self._is_shown(tool):
            return tool
        if not self._roles:
            return None
        audience = tool.guard.audience
        roles = self._roles if not audience else tuple([r for r in audience if r in self._roles])
        if not roles:
            return None  # no role may see what several transforms leave out
        return tool.replace(hidden=True, guard=tool.guard.replace(audience=roles))

    def _is_shown(self, tool: Tool) -> bool:
        tags = tool.guidance.tags
        if self._included is not None and self._included.isdisjoint(tags):
            return False
        if not self._excluded.isdisjoint(tags):
            return False
        return self._include_hidden or not tool.hidden


class VersionFilter:
    """Leaves out versions of commands: `VersionFilter(version_gte="1.0", version_lt="2.0")`.

    `version_lt="2.0"` also leaves out `2.0rc1`, unless `include_prereleases=True`. Tools without a
    version are kept.
    """

    def __init__(
        self,
        version_gte: str | None = None,
        version_lt: str | None = None,
        *,
        include_prereleases: bool = False,
    ) -> None:
        self._minimum = None if version_gte is None else compare_key(version_gte)
        self._below = None if version_lt is None else compare_key(version_lt)
        self._include_prereleases = include_prereleases

    def __call__(self, tool: Tool) -> Tool | None:
        if tool.version is None:
            return tool
        key = compare_key(tool.version)
        for bound in (self._minimum, self._below):
            if bound is not None and bound[0] != key[0]:  # a date and a number
                return None
        if self._minimum is not None and key < self._minimum:
            return None
        if self._below is not None and (
            key >= self._below or (key[1] == self._below[1] and not self._include_prereleases)
        ):
            return None
        return tool


# ------------------------------------------------------------------ one tool


class Arg(Record):
    """A change of one argument.

    `value` is what the function gets if the caller may not choose; it needs `hide=True`. `default`
    makes the argument optional. `name` and `help` are what callers see.
    """

    value: Any = MISSING
    hide: bool = False
    name: str | None = None
    default: Any = MISSING
    help: str | None = None


class ToolTransform:
    """Changes one tool: its name, its help and its arguments.

    Args:
        tool: The key of the tool, such as `gh.create-issue`, where the transform is added.
        name: A new name, within the same group.
        help: A new description.
        args: Changes of arguments, by name.
    """

    def __init__(
        self,
        tool: str,
        *,
        name: str | None = None,
        help: str | None = None,
        args: Mapping[str, Arg] | None = None,
    ) -> None:
        self._key = _fold(tool)
        self._name, self._help, self._args = name, help, dict(args or {})
        if name is not None and not _is_command_word(name):
            raise DefinitionError(f"ToolTransform(name={name!r}): must be a word, without dots")
        for argument, change in self._args.items():
            if change.hide and change.value is MISSING and change.default is MISSING:
                continue  # the function has a default of its own
            if change.value is not MISSING and not change.hide:
                raise DefinitionError(
                    f"ToolTransform(args={{{argument!r}: Arg(value=…)}}): add hide=True, "
                    "or write default= for a value that callers can change"
                )

    def __call__(self, tool: Tool) -> Tool:
        name, version = split_version(tool.name)
        if _fold(".".join((*tool.path[:-1], name))) != self._key:
            return tool
        if self._args:
            tool = _change_arguments(tool, self._args)
        if self._help is not None:
            guidance = tool.guidance.replace(doc=None, summary=None)
            tool = tool.replace(help=self._help, guidance=guidance)
        if self._name is None:
            return tool
        new_name = self._name if version is None else f"{self._name}@{version}"
        return tool.replace(path=(*tool.path[:-1], new_name))


def _fold(key: str) -> str:
    return key.replace("/", ".").replace(" ", ".").replace("_", "-").lower()


def _is_command_word(word: str) -> bool:
    return bool(word) and word.isascii() and word.replace("-", "a").replace("_", "a").isalnum()


def _change_arguments(tool: Tool, changes: Mapping[str, Arg]) -> Tool:
    """Return a tool whose callers see changed arguments, and whose function gets the old ones."""
    known = [param.name for param in tool.public_params]
    for name, change in changes.items():
        if name not in known:
            hint = did_you_mean(name, known)
            raise DefinitionError(f"{tool.key}: there is no argument {name!r} to change{hint}")
        param = tool.param(name)
        has_value = change.value is not MISSING or change.default is not MISSING
        if change.hide and param is not None and param.required and not has_value:
            raise DefinitionError(f"{tool.key}: {name!r} is required: Arg(hide=True) needs value=")
        if change.name is not None and change.name in known:
            raise DefinitionError(f"{tool.key}: there is an argument {change.name!r} already")
    if tool.input_model is not None:
        raise DefinitionError(f"{tool.key}: the arguments of a command with input_model= are fixed")
    hidden = {n: c.default if c.value is MISSING else c.value for n, c in changes.items() if c.hide}
    fixed = {name: value for name, value in hidden.items() if value is not MISSING}
    renamed = {c.name: n for n, c in changes.items() if c.name is not None and not c.hide}
    docs = tool.doc.params
    params = tuple(
        [_change_param(p, changes.get(p.name), docs) for p in tool.params if p.name not in hidden]
    )
    return tool.replace(
        fn=_wrap(tool, fixed, renamed),
        params=params,
        param_names=frozenset([p.name for p in params if p.kind != "injected"]),
        schema=None if tool.schema is None else _change_schema(dict(tool.schema), changes, fixed),
        argument_check=None
        if tool.argument_check is None
        else tool.argument_check.with_names(renamed, fixed, hidden),
        returns=_evaluated_result(tool),
    )


def _evaluated_result(tool: Tool) -> Any:
    """Return the annotation of the result: its names belong to the module of the first function."""
    if isinstance(tool.returns, str):
        return return_annotation(tool.replace(guidance=DEFAULT_GUIDANCE))
    return tool.returns


def _change_param(param: Param, change: Arg | None, docs: Mapping[str, str]) -> Param:
    if change is None:
        return param
    keywords = {**param.option_kwargs}
    help_text = change.help or (docs.get(param.name) if change.name else None)
    if help_text is not None and (change.help or not keywords.get("help")):
        keywords["help"] = help_text
    changed = param.replace(option_kwargs=keywords)
    if param.schema is not None and change.help is not None:
        changed = changed.replace(schema={**param.schema, "description": change.help})
    if change.default is not MISSING:
        changed = changed.replace(
            required=False,
            default=change.default,
            is_omittable=False,
            has_valid_default=param.exact_type is type(change.default),
        )
        if param.schema is not None:
            schema = {**(changed.schema or {}), "default": change.default}
            changed = changed.replace(schema=schema, has_valid_default=True)
    if change.name is not None:
        flag = f"--{change.name.replace('_', '-')}"
        negations = (f"--no-{flag[2:]}",) if param.kind == "option" and is_bool(param.shape) else ()
        flags = (flag,) if param.kind == "option" else ()
        decls = ("/".join((*flags, *negations)),) if flags else ()
        changed = changed.replace(name=change.name, flags=flags, negations=negations, decls=decls)
    return changed


def _change_schema(
    schema: JsonObject, changes: Mapping[str, Arg], fixed: Mapping[str, object]
) -> JsonObject:
    """Return the input schema of a described tool with changed properties."""
    properties: JsonObject = {}
    required: list[str] = []
    for name, part in schema.get("properties", {}).items():
        change = changes.get(name) or Arg()
        if change.hide:
            continue
        new_name = change.name or name
        if change.help is not None:
            part = {**part, "description": change.help}
        if change.default is not MISSING:
            part = {**part, "default": change.default}
        elif name in schema.get("required", ()):
            required.append(new_name)
        properties[new_name] = part
    changed: JsonObject = {**schema, "properties": properties}
    changed.pop("required", None)
    return {**changed, "required": required} if required else changed


def _wrap(tool: Tool, fixed: Mapping[str, Any], renamed: Mapping[str, str]) -> Callable[..., Any]:
    """Return a function that takes the changed arguments, and calls the one of the tool."""
    fn: Any = tool.fn

    def arguments(given: dict[str, Any]) -> dict[str, Any]:
        return {**{renamed.get(name, name): value for name, value in given.items()}, **fixed}

    def run(**given: Any) -> Any:
        return fn(**arguments(given))

    async def arun(**given: Any) -> Any:
        return await fn(**arguments(given))

    def stream(**given: Any) -> Any:
        yield from fn(**arguments(given))

    async def astream(**given: Any) -> Any:
        async for item in fn(**arguments(given)):
            yield item

    flags = code_flags(fn)
    wrapper: Any = run
    if flags & CO_ASYNC_GENERATOR:
        wrapper = astream
    elif flags & CO_COROUTINE:
        wrapper = arun
    elif flags & _CO_GENERATOR:
        wrapper = stream
    for name in ("__name__", "__qualname__", "__module__", "__doc__"):
        setattr(wrapper, name, getattr(fn, name, None))
    wrapper.__annotations__ = {"return": tool.returns}
    marks: Mapping[str, object] = getattr(fn, "__dict__", {})
    for name in marks:
        if name.startswith("tooli_"):
            setattr(wrapper, name, marks[name])
    return wrapper


# The names that tooli 6 has for these classes.
NamespaceTransform = Namespace
VisibilityTransform = Visibility
ToolTransformConfig = ToolTransform
ArgTransform = ArgTransformConfig = Arg
