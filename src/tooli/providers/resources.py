"""Resources and prompts: documents and message templates that an app serves to MCP clients.

    @app.resource("notes://{id}")          @app.prompt()
    def note(id: int) -> dict: …           def review(code: str) -> str: …

Each function becomes a Tool and runs through the pipeline like a command. A client's values arrive
as text and are converted to the types of the parameters, like arguments on a command line.

A URI template has `{name}` for one path segment and `{name*}` for the rest of a path. Values are
percent-decoded. A URI does not match if a value has `..` as a path segment. The time of a match is
proportional to the length of the URI.

An app with resources loads this module when it starts, so json and urllib are imported where
they are used.
"""

from __future__ import annotations

from tooli.core.definitions import (
    auth_problem,
    require,
    shorten,
    text_problem,
)
from tooli.core.tool import (
    is_handle,
    is_structured,
)
from tooli.errors import DefinitionError, check_keywords, function_location
from tooli.providers import apply_rules_of_apps, custom_stages_of
from tooli.providers.app_levels import iter_levels
from tooli.providers.registration_origins import origin_of
from tooli.providers.served_rules import (
    combine_behaviors,
    combine_guards,
    combine_limits,
    find_changed_tools,
    find_command_tools,
    find_commands,
    find_levels,
    has_transforms,
    is_left_out,
    with_arguments_of,
)
from tooli.schema import RawText
from tooli.schema.tool_reader import (
    missing_required_parameters,
    parameter_names,
    read_tool,
    required_parameters,
    return_annotation,
)
from tooli.similar_names import did_you_mean
from tooli.text.jsonable import is_object

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any, TypeVar

    from tooli.core import AppState
    from tooli.core.protocols import (
        CommandOptions,
        Completions,
        PromptOptions,
        ResourceOptions,
        ToolSource,
    )
    from tooli.core.tool import Tool
    from tooli.providers import Levels, Registration

    F = TypeVar("F", bound=Callable[..., object])
    S = TypeVar("S", bound="ServedFunction")

TEXT_MIME, BYTES_MIME, JSON_MIME = "text/plain", "application/octet-stream", "application/json"
_MIME_BY_EXTENSION = {
    # `mimetypes` is not used, because its table differs between machines.
    **dict.fromkeys(("md", "markdown"), "text/markdown"),
    **dict.fromkeys(("txt", "log"), TEXT_MIME),
    **dict.fromkeys(("htm", "html"), "text/html"),
    **dict.fromkeys(("yaml", "yml"), "application/yaml"),
    **dict.fromkeys(("jpg", "jpeg"), "image/jpeg"),
    **{ending: f"text/{ending}" for ending in ("csv", "css", "xml")},
    **{ending: f"image/{ending}" for ending in ("png", "gif", "webp")},
    **{ending: f"application/{ending}" for ending in ("json", "pdf", "toml", "zip")},
    "py": "text/x-python",
    "js": "text/javascript",
    "svg": "image/svg+xml",
    "mp3": "audio/mpeg",
    "wav": "audio/wav",
    "mp4": "video/mp4",
}


class ServedFunction:
    """A function that clients reach as a resource or a prompt."""

    __slots__ = ("_registration", "_state", "_tools", "fn", "kwargs")

    def __init__(
        self,
        state: AppState,
        fn: Callable[..., object],
        kwargs: ResourceOptions,
        registration: Registration | None = None,
    ) -> None:
        self._state = state
        self._registration = registration  # set if the function is a command as well
        self._tools: dict[AppState, tuple[int, Tool]] = {}
        self.fn = fn
        self.kwargs = kwargs

    @property
    def name(self) -> str:
        """The name that clients use."""
        return self.kwargs.get("name") or getattr(self.fn, "__name__", type(self.fn).__name__)

    @property
    def title(self) -> str:
        """The name that people see."""
        text = self.name.replace("-", " ").replace("_", " ")
        return self.kwargs.get("title") or text[:1].upper() + text[1:]

    @property
    def description(self) -> str:
        """The author's description, or the docstring."""
        declared = self.kwargs.get("description")
        if declared:
            return declared
        doc = self.tool(self._state.root).doc
        return f"{doc.summary}\n\n{doc.description}".strip() or self.title

    @property
    def complete(self) -> Completions:
        """The author's completions, by parameter."""
        return self.kwargs.get("complete") or {}

    def tool(self, root: AppState) -> Tool:
        """Return the Tool. If the function is also a command, the command's rules apply to it."""
        revision = sum([state.revision for state in root.self_and_ancestors()])
        if self._tools.get(root, (None,))[0] != revision:
            self._tools[root] = (revision, self._build_tool(root))
        return self._tools[root][1]

    @property
    def needed_names(self) -> tuple[str, ...]:
        """The parameters that its clients fill in by name."""
        return ()

    def is_left_out(self, root: AppState) -> bool:
        """True if transforms leave out its command, or arguments that its clients fill in."""
        if not has_transforms(root):
            return False
        registrations = self._find_registrations(find_commands(root, self.fn))
        return is_left_out(root, self.fn, registrations, self.needed_names)

    def _find_registrations(
        self, commands: Sequence[tuple[Registration, Levels]]
    ) -> list[Registration]:
        registrations = [registration for registration, _ in commands]
        if self._registration is not None and self._registration not in registrations:
            registrations.append(self._registration)
        return registrations

    def _build_tool(self, root: AppState) -> Tool:
        commands = find_commands(root, self.fn)
        registrations = self._find_registrations(commands)
        changed, with_arguments = find_changed_tools(root, self.fn)
        guard = combine_guards(registrations, self.kwargs.get("auth"), changed)
        options: CommandOptions = {"annotations": combine_behaviors(registrations, guard)}
        versions = [registration.kwargs.get("version") for registration in registrations]
        options["version"] = next(filter(None, versions), None)
        levels = find_levels(root, self._state)
        of_commands = [level for _, found in commands for level in found]
        try:
            tool = read_tool(
                self.fn, app=root.name, path=(self.name,), kwargs=options, version=root.version
            )
            tool = tool.replace(guard=guard, limits=combine_limits(registrations, tool.limits))
            tool = apply_rules_of_apps(tool, tuple(dict.fromkeys([*levels, *of_commands])))
        except DefinitionError as error:
            location = function_location(self.fn)
            raise (error.at(location) if location else error) from error.__cause__
        tool = tool.replace(custom_stages=custom_stages_of(levels))
        if with_arguments:
            return with_arguments_of(tool, with_arguments[0])
        return self._add_route(tool, root, registrations)

    def _add_route(self, tool: Tool, root: AppState, registrations: Sequence[Registration]) -> Tool:
        """Return the tool; if Typer runs a command of its function, Typer runs the tool as well."""
        tools = find_command_tools(root, self.fn)
        found = {origin_of(registration): command for registration, command in tools}
        routed = [command for command in found.values() if command.route is not None]
        own = found.get(self._registration) if self._registration is not None else None
        if own is not None and own.route is not None:
            routed = [own]
        unreachable = [registration for registration in registrations if registration not in found]
        if len(routed) > 1 or any([registration.has_callback for registration in unreachable]):
            raise DefinitionError(
                f"{self.name}: the function is a command behind several callbacks, so it cannot be "
                "served as a resource or a prompt. Use a function of its own."
            )
        if not routed:
            return tool
        return with_arguments_of(tool, routed[0])


class Resource(ServedFunction):
    """A document at a URI, or documents at the URIs of a template."""

    __slots__ = ("template",)

    def __init__(
        self,
        state: AppState,
        template: UriTemplate,
        fn: Callable[..., object],
        kwargs: ResourceOptions,
        registration: Registration | None = None,
    ) -> None:
        super().__init__(state, fn, kwargs, registration)
        self.template = template

    @property
    def needed_names(self) -> tuple[str, ...]:
        """The parameters in its URI."""
        return self.template.names

    @property
    def uri(self) -> str:
        """The URI or URI template."""
        return self.template.text

    @property
    def mime_type(self) -> str | None:
        """The declared MIME type, or one guessed from the URI or from the return annotation."""
        declared = self.kwargs.get("mime_type") or guess_mime_type(self.uri)
        if declared is not None:
            return declared
        return mime_type_of_annotation(return_annotation(self.tool(self._state.root)))


class Prompt(ServedFunction):
    """A template of one or more messages, which the user of a client selects and fills in."""

    __slots__ = ()


# ------------------------------------------------------------------ registering


def resource_decorator(
    state: AppState, uri: str | None, kwargs: ResourceOptions
) -> Callable[[F], F]:
    """Return the decorator `@app.resource(…)`."""
    check_keywords("resource", kwargs, RESOURCE_KEYWORDS)
    if uri is not None and not isinstance(uri, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise DefinitionError("write @app.resource('scheme://…'), or @app.resource()")
    template = None if uri is None else UriTemplate(uri)
    _check_values(f"resource({uri!r})" if uri is not None else "resource()", kwargs)

    def register(fn: F) -> F:
        _add_resource(state, template or default_template(state.name, fn), fn, kwargs)
        return fn

    return register


def default_template(app_name: str, fn: Callable[..., object]) -> UriTemplate:
    """Return the URI template of a resource without one: `app-name://function-name/{parameter}`."""
    scheme = "".join([c if c.isascii() and c.isalnum() else "-" for c in app_name.lower()])
    name = getattr(fn, "__name__", type(fn).__name__).strip("_").replace("_", "-")
    parameters = [f"{{{parameter}}}" for parameter in required_parameters(fn)]
    return UriTemplate("/".join([f"{scheme.strip('-') or 'app'}://{name}", *parameters]))


def expose_command(state: AppState, uri: str, registration: Registration) -> None:
    """Register a command as a resource as well: `@app.command(resource=…)`."""
    _add_resource(state, UriTemplate(uri), registration.fn, {}, registration)


def _add_resource(
    state: AppState,
    template: UriTemplate,
    fn: Callable[..., object],
    kwargs: ResourceOptions,
    registration: Registration | None = None,
) -> None:
    label = f"resource({template.text!r})"
    _check_parameter_names(label, fn, (*template.names, *(kwargs.get("complete") or ())))
    missing = missing_required_parameters(fn, template.names)
    if missing:
        raise DefinitionError(f"{label}: the URI has no {{{missing[0]}}} for the parameter")
    _add_or_replace(
        state.resources, Resource(state, template, fn, kwargs, registration), lambda r: r.uri
    )
    state.invalidate("resources")


def prompt_decorator(state: AppState, name: str | None, kwargs: PromptOptions) -> Callable[[F], F]:
    """Return the decorator `@app.prompt(…)`."""
    check_keywords("prompt", kwargs, PROMPT_KEYWORDS)
    if callable(name):
        raise DefinitionError("write @app.prompt() with parentheses")
    _check_values("prompt()", kwargs)

    def register(fn: F) -> F:
        prompt = Prompt(state, fn, {**kwargs, "name": name})
        _check_parameter_names(f"prompt({prompt.name!r})", fn, tuple(kwargs.get("complete") or ()))
        _add_or_replace(state.prompts, prompt, lambda p: p.name)
        state.invalidate("prompts")
        return fn

    return register


def _add_or_replace(registered: list[S], new: S, key: Callable[[S], str]) -> None:
    for i, old in enumerate(registered):
        if key(old) == key(new):
            registered[i] = new
            return
    registered.append(new)


def _check_values(label: str, kwargs: Mapping[str, object]) -> None:
    for keyword, value in kwargs.items():
        problem = None if value is None else _VALIDATORS[keyword](value)
        if problem is not None:
            raise DefinitionError(f"{label}: {keyword}={shorten(value)} {problem}")


def _complete_problem(value: object) -> str | None:
    if not is_object(value):
        return "must be a dict of parameters and their values, such as {'language': ['py', 'js']}"
    for name, values in value.items():
        if not callable(values) and (isinstance(values, str) or not hasattr(values, "__iter__")):
            return f"the values of {name!r} must be a list or a function"
    return None


_VALIDATORS: dict[str, Callable[[object], str | None]] = {
    **dict.fromkeys(("title", "description", "name", "mime_type"), text_problem),
    "auth": auth_problem,
    "complete": _complete_problem,
    "size": require(
        lambda value: isinstance(value, int) and not isinstance(value, bool) and value >= 0,
        "a number of bytes",
    ),
    "annotations": require(is_object, "a dict, such as {'audience': ['user']}"),
}
RESOURCE_KEYWORDS = frozenset(_VALIDATORS)
PROMPT_KEYWORDS = RESOURCE_KEYWORDS - {"name", "mime_type", "size", "annotations"}


def _check_parameter_names(label: str, fn: Callable[..., object], names: Sequence[str]) -> None:
    known = parameter_names(fn)
    for name in names:
        if name not in known:
            hint = did_you_mean(name, known)
            raise DefinitionError(f"{label}: the function has no parameter {name!r}{hint}")


# ------------------------------------------------------------------ finding


def iter_resources(app: ToolSource) -> Iterator[Resource]:
    """Iterate over the resources of an app, then over those of the apps below it.

    The resource of a command that a transform leaves out is left out.
    """
    root = app._state
    for state in _iter_states(root):
        yield from [resource for resource in state.resources if not resource.is_left_out(root)]


def collect_prompts(app: ToolSource) -> dict[str, Prompt]:
    """Return the prompts of an app and of the apps below it, by name.

    If two have the same name, the second gets the name of its app as a prefix.
    """
    found: dict[str, Prompt] = {}
    for state in _iter_states(app._state):
        for prompt in state.prompts:
            if prompt.is_left_out(app._state):
                continue
            name = prompt.name if prompt.name not in found else f"{state.name}_{prompt.name}"
            found.setdefault(name, prompt)
    return found


def find_resource(
    resources: Sequence[Resource], uri: str
) -> tuple[Resource, dict[str, str]] | None:
    """Return the resource at a URI and the values of its parameters.

    If several templates match, the most specific one is chosen.
    """
    best: tuple[Resource, dict[str, str]] | None = None
    for resource in resources:
        values = resource.template.match(uri)
        if values is None:
            continue
        if best is None or resource.template.specificity > best[0].template.specificity:
            best = resource, values
    return best


def _iter_states(state: AppState) -> Iterator[AppState]:
    """Iterate over an app and the apps below it, each once."""
    yield from dict.fromkeys([levels[-1] for levels in iter_levels(state)])


def texts_to_arguments(tool: Tool, texts: Mapping[str, str]) -> dict[str, object]:
    """Convert a client's texts to arguments of a tool.

    They are converted like text on a command line, except that no file, variable or stream of the
    server is read: for an object, only JSON is accepted, and `@file` for a secret is its value.
    """
    arguments: dict[str, Any] = {}
    for name, text in texts.items():
        param = tool.param(name)
        if param is not None and is_structured(param.shape):
            arguments[name] = _parse_json(text)
        else:
            is_value = param is None or is_handle(param.shape)
            arguments[name] = text if is_value else RawText([text])
    return arguments


def _parse_json(text: str) -> object:
    from json import loads

    try:
        return loads(text)
    except (ValueError, RecursionError):
        return text  # pydantic reports what is wrong with it


# ------------------------------------------------------------------ URI templates


class UriTemplate:
    """A URI with parameters, or the URI of a single document."""

    __slots__ = ("_parts", "names", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self._parts = tuple(_parse_template(text))
        self.names = tuple([part[1] for part in self._parts if part[0]])
        self._check()

    @property
    def is_static(self) -> bool:
        """True if it has no parameters."""
        return not self.names

    @property
    def specificity(self) -> tuple[int, int, int]:
        """Sort key. A more specific template has a greater key."""
        literal_chars = sum([len(part[1]) for part in self._parts if not part[0]])
        wildcards = len([part for part in self._parts if part[0] == "*"])
        return literal_chars, -len(self.names), -wildcards

    def match(self, uri: str) -> dict[str, str] | None:
        """Return the values of the parameters, or None if the URI does not match."""
        if not self.names:
            return {} if uri == self.text else None
        kind, prefix = self._parts[0]
        if not kind and not uri.startswith(prefix):
            return None
        found = _match_parts(self._parts, uri)
        if found is None:
            return None
        from urllib.parse import unquote

        try:
            values = [unquote(value, errors="strict") for value in found]
        except UnicodeDecodeError:
            return None
        if any([_leaves_folder(value) for value in values]):
            return None
        return dict(zip(self.names, values, strict=True))

    def _check(self) -> None:
        scheme, found, rest = self.text.partition(":")
        if not found or not rest or not scheme.replace("+", "a").replace("-", "a").isalnum():
            raise DefinitionError(f"resource({self.text!r}): a URI starts with a scheme: 'x://…'")
        if len(set(self.names)) != len(self.names):
            raise DefinitionError(f"resource({self.text!r}): a parameter occurs twice")
        for one, other in zip(self._parts, self._parts[1:], strict=False):
            if one[0] and other[0]:
                raise DefinitionError(
                    f"resource({self.text!r}): {{{one[1]}}} and {{{other[1]}}} need a separator "
                    "between them"
                )


def _parse_template(text: str) -> Iterator[tuple[str, str]]:
    """Split a template into ("", literal text), ("=", segment name) and ("*", rest name)."""
    rest = text
    while rest:
        literal, opened, after = rest.partition("{")
        if "}" in literal:
            raise DefinitionError(f"resource({text!r}): '}}' without a '{{' before it")
        if literal:
            yield "", literal
        if not opened:
            return
        inside, closed, rest = after.partition("}")
        is_rest = inside[-1:] == "*" or inside[:1] == "+"
        name = inside.removesuffix("*").removeprefix("+")
        if not closed or not name.isidentifier():
            raise DefinitionError(
                f"resource({text!r}): {{{inside}}} is not a parameter; write {{name}}, "
                "or {name*} for the rest of a path"
            )
        yield "*" if is_rest else "=", name


_ENDS_OF_VALUE = {"=": "/?#", "*": "\n"}
"""Characters that a value of each kind of parameter cannot contain."""


def _match_parts(parts: tuple[tuple[str, str], ...], uri: str) -> list[str] | None:
    """Return the values of the parameters, each as long as possible, or None.

    The parts are matched from the last to the first. `ends` has, for each part, the position after
    the part by the position where it starts. The time is proportional to parts × characters.
    """
    last = len(uri)
    ends: list[dict[int, int]] = []
    starts = {last: last}  # positions from which the parts after this one match
    for kind, text in reversed(parts):
        found = _value_ends(uri, kind, starts) if kind else _literal_ends(uri, text, starts)
        if not found:
            return None
        ends.append(found)
        starts = found
    values: list[str] = []
    at = 0
    for (kind, _), found in zip(parts, reversed(ends), strict=True):
        if at not in found:
            return None
        if kind:
            values.append(uri[at : found[at]])
        at = found[at]
    return values


def _literal_ends(uri: str, text: str, next_starts: dict[int, int]) -> dict[int, int]:
    size = len(text)
    starts = [end - size for end in next_starts if end >= size]
    return {start: start + size for start in starts if uri.startswith(text, start)}


def _value_ends(uri: str, kind: str, next_starts: dict[int, int]) -> dict[int, int]:
    """Return the end of the longest value at each position; a value has one character or more."""
    excluded = _ENDS_OF_VALUE[kind]
    found: dict[int, int] = {}
    end: int | None = None
    for at in range(len(uri) - 1, -1, -1):
        if uri[at] in excluded:
            end = None
            continue
        if end is None and at + 1 in next_starts:
            end = at + 1
        if end is not None:
            found[at] = end
    return found


def _leaves_folder(value: str) -> bool:
    return "\0" in value or ".." in value.replace("\\", "/").split("/")


# ------------------------------------------------------------------ MIME types


def guess_mime_type(uri: str) -> str | None:
    """Return the MIME type for the extension of a URI, or None."""
    last = uri.partition("?")[0].rpartition("/")[2]
    return _MIME_BY_EXTENSION.get(last.rpartition(".")[2].lower()) if "." in last else None


def mime_type_of_annotation(annotation: object) -> str | None:
    """Return the MIME type for a return annotation, or None if the annotation is too general."""
    if annotation is str:
        return TEXT_MIME
    if annotation is bytes:
        return BYTES_MIME
    outer = getattr(annotation, "__origin__", annotation)
    is_data = outer in (dict, list, tuple, set, int, float, bool)
    return JSON_MIME if is_data or hasattr(outer, "model_fields") else None
