"""Documents and prompts that an app serves beside its tools.

    @app.resource("notes://{id}")          @app.prompt()
    def note(id: int) -> dict: …           def review(code: str) -> str: …

Each function becomes a Tool and runs through the pipeline like a command. What a client
gives arrives as text, and is fitted to the parameters like the words of a command line.
"""

from __future__ import annotations

from tooli.core.tool import GUARD_KEYWORDS, Behavior
from tooli.errors import DefinitionError, check_keywords, closest_match
from tooli.providers.mime_types import guess_mime_type, mime_type_of_annotation
from tooli.providers.uri_templates import UriTemplate
from tooli.schema.tool_reader import (
    missing_required_parameters,
    parameter_names,
    read_tool,
    return_annotation,
)

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any, TypeAlias, TypedDict, TypeVar

    from tooli.core.app_state import AppState
    from tooli.core.protocols import ToolSource
    from tooli.core.tool import Tool
    from tooli.providers.local import Registration

    F = TypeVar("F", bound=Callable[..., Any])
    Completions: TypeAlias = Mapping[str, Sequence[Any] | Callable[..., Any]]

    class PromptOptions(TypedDict, total=False):
        """What `@app.prompt(…)` takes beside a name."""

        title: str | None
        description: str | None
        complete: Completions | None
        auth: Sequence[str] | None

    class ResourceOptions(PromptOptions, total=False):
        """What `@app.resource(…)` takes beside a URI."""

        name: str | None
        mime_type: str | None
        size: int | None
        annotations: Mapping[str, Any] | None


PROMPT_KEYWORDS = frozenset(("title", "description", "complete", "auth"))
RESOURCE_KEYWORDS = PROMPT_KEYWORDS | {"name", "mime_type", "size", "annotations"}

_INHERITED_KEYWORDS = (*GUARD_KEYWORDS, "annotations", "timeout", "rate_limit", "version")


class ServedFunction:
    """A function that clients reach by another way than as a tool."""

    __slots__ = ("_registration", "_state", "_tools", "fn", "settings")

    def __init__(
        self, state: AppState, fn: Callable[..., Any], settings: Mapping[str, Any]
    ) -> None:
        self._state = state
        self._registration: Registration | None = None  # the command that it is, too
        self._tools: dict[str, Tool] = {}
        self.fn = fn
        self.settings = settings

    @property
    def name(self) -> str:
        """What clients call it."""
        return self.settings.get("name") or getattr(self.fn, "__name__", type(self.fn).__name__)

    @property
    def title(self) -> str:
        """What people call it."""
        words = self.name.replace("-", " ").replace("_", " ")
        return self.settings.get("title") or words[:1].upper() + words[1:]

    @property
    def description(self) -> str:
        """What it is, in words: the author's, or those of the docstring."""
        declared = self.settings.get("description")
        if declared:
            return declared
        doc = self.tool(self._state.root).doc
        return f"{doc.summary}\n\n{doc.description}".strip() or self.title

    @property
    def complete(self) -> Completions:
        """The completions that the author wrote, by parameter."""
        return self.settings.get("complete") or {}

    def tool(self, root: AppState) -> Tool:
        """The Tool that it is for an app; guarded like the command, where it is one, too."""
        found = self._tools.get(root.name)
        if found is None:
            found = self._tools[root.name] = self._build_tool(root)
        return found

    def _build_tool(self, root: AppState) -> Tool:
        settings: dict[str, Any] = {"annotations": Behavior(read_only=True)}
        command = self._registration or _find_command(self._state, self.fn)
        if command is not None:
            settings |= {
                keyword: command.settings[keyword]
                for keyword in _INHERITED_KEYWORDS
                if keyword in command.settings
            }
        if self.settings.get("auth") is not None:
            settings["auth"] = self.settings["auth"]
        path = (self.name,)
        found = read_tool(self.fn, app=root.name, path=path, kwargs=settings, version=root.version)
        if self._state.app_permissions:
            from tooli.core.declared_capabilities import apply_app_permissions

            found = apply_app_permissions(found, self._state.app_permissions)
        return found


class Resource(ServedFunction):
    """A document, or a kind of documents, at a URI."""

    __slots__ = ("template",)

    def __init__(
        self,
        state: AppState,
        template: UriTemplate,
        fn: Callable[..., Any],
        settings: Mapping[str, Any],
        registration: Registration | None = None,
    ) -> None:
        super().__init__(state, fn, settings)
        self.template = template
        self._registration = registration

    @property
    def uri(self) -> str:
        """Where it stands: a URI, or a template of many."""
        return self.template.text

    @property
    def mime_type(self) -> str | None:
        """What kind of document it is: as the author says, as its URI ends, as its type is."""
        declared = self.settings.get("mime_type") or guess_mime_type(self.uri)
        if declared is not None:
            return declared
        return mime_type_of_annotation(return_annotation(self.tool(self._state.root)))


class Prompt(ServedFunction):
    """A message, or several, that a client's person picks and fills in."""

    __slots__ = ()


# ------------------------------------------------------------------ registering


def resource_decorator(state: AppState, uri: str, settings: Mapping[str, Any]) -> Callable[[F], F]:
    """The decorator `@app.resource(…)`."""
    check_keywords("resource", settings, RESOURCE_KEYWORDS)
    if not isinstance(uri, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise DefinitionError("write @app.resource('scheme://…'): a resource has a URI")
    template = UriTemplate(uri)

    def register(fn: F) -> F:
        _add_resource(state, template, fn, settings)
        return fn

    return register


def expose_command(state: AppState, uri: str, registration: Registration) -> None:
    """Put a command into an app as a resource, too: `@app.command(resource=…)`."""
    behavior = registration.settings.get("annotations")
    if behavior is None or not behavior.read_only:
        raise DefinitionError(f"command(resource={uri!r}): only a ReadOnly command can be one")
    _add_resource(state, UriTemplate(uri), registration.fn, {}, registration)


def _add_resource(
    state: AppState,
    template: UriTemplate,
    fn: Callable[..., Any],
    settings: Mapping[str, Any],
    registration: Registration | None = None,
) -> None:
    where = f"resource({template.text!r})"
    _check_parameter_names(where, fn, (*template.names, *(settings.get("complete") or ())))
    missing = missing_required_parameters(fn, template.names)
    if missing:
        raise DefinitionError(f"{where}: nothing in the URI says what {missing[0]!r} is")
    _add_or_replace(state.resources, Resource(state, template, fn, settings, registration), "uri")
    state.invalidate("resources")


def prompt_decorator(
    state: AppState, name: str | None, settings: Mapping[str, Any]
) -> Callable[[F], F]:
    """The decorator `@app.prompt(…)`."""
    check_keywords("prompt", settings, PROMPT_KEYWORDS)
    if callable(name):
        raise DefinitionError("write @app.prompt() with parentheses")

    def register(fn: F) -> F:
        new = Prompt(state, fn, {**settings, "name": name})
        _check_parameter_names(f"prompt({new.name!r})", fn, tuple(settings.get("complete") or ()))
        _add_or_replace(state.prompts, new, "name")
        state.invalidate("prompts")
        return fn

    return register


def _add_or_replace(registered: list[Any], new: ServedFunction, by: str) -> None:
    for i, old in enumerate(registered):
        if getattr(old, by) == getattr(new, by):
            registered[i] = new
            return
    registered.append(new)


def _check_parameter_names(where: str, fn: Callable[..., Any], names: Sequence[str]) -> None:
    known = parameter_names(fn)
    for name in names:
        if name not in known:
            close = closest_match(name, known)
            hint = f"; did you mean {close!r}?" if close else ""
            raise DefinitionError(f"{where}: the function takes no {name!r}{hint}")


def _find_command(state: AppState, fn: Callable[..., Any]) -> Registration | None:
    for registration in state.commands:
        if registration.target is None and registration.fn is fn:
            return registration
    return None


# ------------------------------------------------------------------ finding


def iter_resources(app: ToolSource) -> Iterator[Resource]:
    """The resources of an app, then those of the apps below it."""
    for state in _iter_states(app._state):
        yield from state.resources


def collect_prompts(app: ToolSource) -> dict[str, Prompt]:
    """The prompts of an app and of the apps below it; of two with one name, one gets its app's."""
    found: dict[str, Prompt] = {}
    for state in _iter_states(app._state):
        for prompt in state.prompts:
            name = prompt.name if prompt.name not in found else f"{state.name}_{prompt.name}"
            found.setdefault(name, prompt)
    return found


def find_resource(
    resources: Sequence[Resource], uri: str
) -> tuple[Resource, dict[str, str]] | None:
    """The resource at a URI, and what stands in its places; the most precise one of several."""
    best: tuple[Resource, dict[str, str]] | None = None
    for resource in resources:
        values = resource.template.match(uri)
        if values is None:
            continue
        if best is None or resource.template.specificity > best[0].template.specificity:
            best = resource, values
    return best


def _iter_states(state: AppState) -> Iterator[AppState]:
    yield state
    for inner_app, _ in state.groups:
        inner_state = inner_app.__dict__.get("_state")
        if inner_state is not None:
            yield from _iter_states(inner_state)


def texts_to_arguments(tool: Tool, texts: Mapping[str, str]) -> dict[str, Any]:
    """Texts from a client, as arguments: words of a command line, but no file is read for them."""
    from tooli.core.tool import is_structured
    from tooli.schema.convert import RawText

    made: dict[str, Any] = {}
    for name, text in texts.items():
        param = tool.param(name)
        if param is not None and is_structured(param.shape):
            made[name] = _parse_json(text)
        else:
            made[name] = text if param is None else RawText([text])
    return made


def _parse_json(text: str) -> Any:
    from json import loads

    try:
        return loads(text)
    except (ValueError, RecursionError):
        return text  # pydantic says what is wrong with it
