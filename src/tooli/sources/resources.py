"""Documents and prompts that an app serves beside its tools.

    @app.resource("notes://{id}")          @app.prompt()
    def note(id: int) -> dict: …           def review(code: str) -> str: …

Each function becomes a Tool and runs through the pipeline like a command. What a client
gives arrives as text, and is fitted to the parameters like the words of a command line.
"""

from __future__ import annotations

from tooli.contract.reading import names_of, needs_of, read_tool, returns_of
from tooli.contract.tool import GUARDING, Behavior
from tooli.errors import DefinitionError, check_keywords, nearest
from tooli.sources.kinds import kind_of, kind_of_result
from tooli.sources.uris import Template

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any, TypeAlias, TypedDict, TypeVar

    from tooli.contract.tool import Tool
    from tooli.sources.local import House, Registration

    F = TypeVar("F", bound=Callable[..., Any])
    Completions: TypeAlias = Mapping[str, Sequence[Any] | Callable[..., Any]]

    class PromptWords(TypedDict, total=False):
        """What `@app.prompt(…)` takes beside a name."""

        title: str | None
        description: str | None
        complete: Completions | None
        auth: Sequence[str] | None

    class ResourceWords(PromptWords, total=False):
        """What `@app.resource(…)` takes beside a URI."""

        name: str | None
        mime_type: str | None
        size: int | None
        annotations: Mapping[str, Any] | None


PROMPT_KEYWORDS = frozenset(("title", "description", "complete", "auth"))
RESOURCE_KEYWORDS = PROMPT_KEYWORDS | {"name", "mime_type", "size", "annotations"}

_GUARDING = (*GUARDING, "annotations", "timeout", "rate_limit", "version")


class Offer:
    """A function that clients reach by another way than as a tool."""

    __slots__ = ("_house", "_registration", "_tools", "fn", "said")

    def __init__(self, house: House, fn: Callable[..., Any], said: Mapping[str, Any]) -> None:
        self._house = house
        self._registration: Registration | None = None  # the command that it is, too
        self._tools: dict[str, Tool] = {}
        self.fn = fn
        self.said = said

    @property
    def name(self) -> str:
        """What clients call it."""
        return self.said.get("name") or getattr(self.fn, "__name__", type(self.fn).__name__)

    @property
    def title(self) -> str:
        """What people call it."""
        words = self.name.replace("-", " ").replace("_", " ")
        return self.said.get("title") or words[:1].upper() + words[1:]

    @property
    def description(self) -> str:
        """What it is, in words: the author's, or those of the docstring."""
        said = self.said.get("description")
        if said:
            return said
        doc = self.tool(self._house.root).doc
        return f"{doc.summary}\n\n{doc.description}".strip() or self.title

    @property
    def complete(self) -> Completions:
        """The completions that the author wrote, by parameter."""
        return self.said.get("complete") or {}

    def tool(self, root: House) -> Tool:
        """The Tool that it is for an app; guarded like the command, where it is one, too."""
        found = self._tools.get(root.name)
        if found is None:
            found = self._tools[root.name] = self._read(root)
        return found

    def _read(self, root: House) -> Tool:
        said: dict[str, Any] = {"annotations": Behavior(read_only=True)}
        command = self._registration or _command_of(self._house, self.fn)
        if command is not None:
            said |= {word: command.said[word] for word in _GUARDING if word in command.said}
        if self.said.get("auth") is not None:
            said["auth"] = self.said["auth"]
        path = (self.name,)
        found = read_tool(self.fn, app=root.name, path=path, said=said, version=root.version)
        if self._house.ceilings:
            from tooli.contract.capabilities import hold_to

            found = hold_to(found, self._house.ceilings)
        return found


class Resource(Offer):
    """A document, or a kind of documents, at a URI."""

    __slots__ = ("template",)

    def __init__(
        self,
        house: House,
        template: Template,
        fn: Callable[..., Any],
        said: Mapping[str, Any],
        registration: Registration | None = None,
    ) -> None:
        super().__init__(house, fn, said)
        self.template = template
        self._registration = registration

    @property
    def uri(self) -> str:
        """Where it stands: a URI, or a template of many."""
        return self.template.text

    @property
    def mime_type(self) -> str | None:
        """What kind of document it is: as the author says, as its URI ends, as its type is."""
        said = self.said.get("mime_type") or kind_of(self.uri)
        if said is not None:
            return said
        return kind_of_result(returns_of(self.tool(self._house.root)))


class Prompt(Offer):
    """A message, or several, that a client's person picks and fills in."""

    __slots__ = ()


# ------------------------------------------------------------------ registering


def resource(house: House, uri: str, said: Mapping[str, Any]) -> Callable[[F], F]:
    """The decorator `@app.resource(…)`."""
    check_keywords("resource", said, RESOURCE_KEYWORDS)
    if not isinstance(uri, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise DefinitionError("write @app.resource('scheme://…'): a resource has a URI")
    template = Template(uri)

    def register(fn: F) -> F:
        _add_resource(house, template, fn, said)
        return fn

    return register


def expose(house: House, uri: str, registration: Registration) -> None:
    """Put a command into an app as a resource, too: `@app.command(resource=…)`."""
    behavior = registration.said.get("annotations")
    if behavior is None or not behavior.read_only:
        raise DefinitionError(f"command(resource={uri!r}): only a ReadOnly command can be one")
    _add_resource(house, Template(uri), registration.fn, {}, registration)


def _add_resource(
    house: House,
    template: Template,
    fn: Callable[..., Any],
    said: Mapping[str, Any],
    registration: Registration | None = None,
) -> None:
    where = f"resource({template.text!r})"
    _check_names(where, fn, (*template.names, *(said.get("complete") or ())))
    unsaid = needs_of(fn, template.names)
    if unsaid:
        raise DefinitionError(f"{where}: nothing in the URI says what {unsaid[0]!r} is")
    _put(house.resources, Resource(house, template, fn, said, registration), "uri")
    house.forget("resources")


def prompt(house: House, name: str | None, said: Mapping[str, Any]) -> Callable[[F], F]:
    """The decorator `@app.prompt(…)`."""
    check_keywords("prompt", said, PROMPT_KEYWORDS)
    if callable(name):
        raise DefinitionError("write @app.prompt() with parentheses")

    def register(fn: F) -> F:
        made = Prompt(house, fn, {**said, "name": name})
        _check_names(f"prompt({made.name!r})", fn, tuple(said.get("complete") or ()))
        _put(house.prompts, made, "name")
        house.forget("prompts")
        return fn

    return register


def _put(among: list[Any], new: Offer, by: str) -> None:
    for i, old in enumerate(among):
        if getattr(old, by) == getattr(new, by):
            among[i] = new
            return
    among.append(new)


def _check_names(where: str, fn: Callable[..., Any], names: Sequence[str]) -> None:
    known = names_of(fn)
    for name in names:
        if name not in known:
            close = nearest(name, known)
            hint = f"; did you mean {close!r}?" if close else ""
            raise DefinitionError(f"{where}: the function takes no {name!r}{hint}")


def _command_of(house: House, fn: Callable[..., Any]) -> Registration | None:
    for registration in house.commands:
        if registration.target is None and registration.fn is fn:
            return registration
    return None


# ------------------------------------------------------------------ finding


def resources_of(app: Any) -> Iterator[Resource]:
    """The resources of an app, then those of the apps below it."""
    for house in _houses(app._house):
        yield from house.resources


def prompts_of(app: Any) -> dict[str, Prompt]:
    """The prompts of an app and of the apps below it; of two with one name, one gets its app's."""
    found: dict[str, Prompt] = {}
    for house in _houses(app._house):
        for prompt in house.prompts:
            name = prompt.name if prompt.name not in found else f"{house.name}_{prompt.name}"
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
        if best is None or resource.template.precision > best[0].template.precision:
            best = resource, values
    return best


def _houses(house: House) -> Iterator[House]:
    yield house
    for inner, _ in house.groups:
        below = inner.__dict__.get("_house")
        if below is not None:
            yield from _houses(below)


def as_arguments(tool: Tool, texts: Mapping[str, str]) -> dict[str, Any]:
    """Texts from a client, as arguments: words of a command line, but no file is read for them."""
    from tooli.contract.fit import Words
    from tooli.contract.tool import is_structured

    made: dict[str, Any] = {}
    for name, text in texts.items():
        param = tool.param(name)
        if param is not None and is_structured(param.shape):
            made[name] = _from_json(text)
        else:
            made[name] = text if param is None else Words([text])
    return made


def _from_json(text: str) -> Any:
    from json import loads

    try:
        return loads(text)
    except (ValueError, RecursionError):
        return text  # pydantic says what is wrong with it
