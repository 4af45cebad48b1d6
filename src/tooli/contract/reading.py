"""Read a function into a Tool, from its code object, without `inspect` or `typing`.

An annotation from `typing` can only be here if somebody imported `typing`, an Enum
only if somebody imported `enum`: so their classes are looked up in `sys.modules`,
never imported.
"""

from __future__ import annotations

import sys

from tooli.contract.tool import (
    BEHAVIOR,
    GUARD,
    GUIDANCE,
    LIMITS,
    MISSING,
    Choice,
    Foreign,
    Guard,
    Guidance,
    Injected,
    Limits,
    ListOf,
    Maybe,
    Param,
    PathShape,
    Scalar,
    Structured,
    Text,
    Tool,
    TupleOf,
    is_bool,
    plain,
)

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

    from tooli.contract.info import Info
    from tooli.contract.tool import Shape

_PLAIN: dict[Any, Scalar] = {t: Scalar(t) for t in (str, int, float, bool)}
_BY_WORD = {"str": str, "int": int, "float": float, "bool": bool, "None": None}
_COLLECTIONS = {
    **{t: t for t in (list, set, frozenset)},
    "collections.abc.Sequence": list,
    "collections.abc.Iterable": list,
    "collections.abc.Set": set,
}
_STREAM, _ASYNC_STREAM = 0x20, 0x200  # flags of a code object

COMMAND_KEYWORDS = frozenset(
    (
        *("annotations", "capabilities", "handoffs", "delegation_hint", "examples"),
        *("error_codes", "timeout", "cost_hint", "human_in_the_loop", "requires_approval"),
        *("danger_level", "auth", "max_tokens", "paginated", "version", "when_to_use"),
        *("task_group", "native", "input_model"),
    )
)
"""What `@app.command(…)` takes beyond what Typer's takes."""


def read_tool(
    fn: Callable[..., Any],
    *,
    app: str,
    path: tuple[str, ...],
    said: Mapping[str, Any],
    version: str | None = None,
    words: tuple[str, ...] | None = None,
) -> Tool:
    """The Tool of a function; `said` is what its decorator was given."""
    params = tuple(_read_params(fn))
    model = None
    if said.get("input_model") is not None:
        params, model = _spread(said["input_model"], params, fn)
    code = getattr(fn, "__code__", None)
    flags = code.co_flags if code is not None else 0
    returns = _raw_annotations(fn).get("return", MISSING)
    steps_aside = (
        said.get("cls")
        or said.get("context_settings")
        or said.get("no_args_is_help")
        or said.get("native") is False
        or (code is not None and "get_current_context" in code.co_names)
    )
    doc = said.get("help")
    return Tool(
        app=app,
        path=path,
        id=".".join((app, *path)),
        words=path if words is None else words,
        fn=fn,
        params=params,
        names=frozenset([p.name for p in params if p.kind != "injected"]),
        returns=returns,
        streams=bool(flags & (_STREAM | _ASYNC_STREAM)),
        prints=returns in (MISSING, None, "None") and not flags & (_STREAM | _ASYNC_STREAM),
        version=said.get("version") or version,
        behavior=said.get("annotations") or BEHAVIOR,
        guard=_read_guard(said),
        guidance=_read_guidance(said),
        limits=_read_limits(said),
        hidden=bool(said.get("hidden")),
        deprecated=said.get("deprecated") or False,
        help=doc if isinstance(doc, str) else None,
        fast=not steps_aside and all([p.fast for p in params]),
        model=model,
    )


def _read_guard(said: Mapping[str, Any]) -> Guard:
    auth, capabilities = said.get("auth"), said.get("capabilities")
    approval, human = said.get("requires_approval"), said.get("human_in_the_loop")
    danger = said.get("danger_level")
    if auth is None and not (capabilities or approval or human or danger):
        return GUARD
    scopes = None if auth is None else tuple(auth)
    return Guard(scopes, tuple(capabilities or ()), bool(approval), bool(human), danger)


def _read_guidance(said: Mapping[str, Any]) -> Guidance:
    if not said.keys() & {
        *("examples", "when_to_use", "handoffs", "delegation_hint"),
        *("error_codes", "task_group"),
    }:
        return GUIDANCE
    return Guidance(
        examples=tuple(said.get("examples") or ()),
        when_to_use=said.get("when_to_use"),
        handoffs=tuple(said.get("handoffs") or ()),
        delegation_hint=said.get("delegation_hint"),
        error_codes=dict(said.get("error_codes") or {}),
        task_group=said.get("task_group"),
    )


def _read_limits(said: Mapping[str, Any]) -> Limits:
    if not said.keys() & {"timeout", "max_tokens", "cost_hint", "paginated"}:
        return LIMITS
    return Limits(
        timeout=said.get("timeout"),
        max_tokens=said.get("max_tokens"),
        cost=said.get("cost_hint"),
        paginated=bool(said.get("paginated")),
    )


def returns_of(tool: Tool) -> Any:
    """The return annotation, evaluated; MISSING when there is none."""
    return _evaluate(tool.returns, _namespace(tool.fn), tool.fn)


# ------------------------------------------------------------------ the signature


def _read_params(fn: Callable[..., Any]) -> Iterator[Param]:
    space = _namespace(fn)
    for name, annotation, default in _signature(fn):
        yield read_param(name, _evaluate(annotation, space, fn), default)


def _signature(fn: Any) -> Iterator[tuple[str, Any, Any]]:
    """Name, annotation and default of each parameter; `*args` and `**kwargs` have no flag."""
    code = getattr(fn, "__code__", None)
    if code is None or hasattr(fn, "__wrapped__") or hasattr(fn, "__signature__"):
        yield from _slow_signature(fn)
        return
    annotations = fn.__annotations__
    defaults = fn.__defaults__ or ()
    positional = code.co_argcount
    first_default = positional - len(defaults)
    names = code.co_varnames
    for i in range(getattr(fn, "__self__", None) is not None, positional):
        default = defaults[i - first_default] if i >= first_default else MISSING
        yield names[i], annotations.get(names[i], MISSING), default
    keyword_defaults: dict[str, Any] = fn.__kwdefaults__ or {}
    for name in names[positional : positional + code.co_kwonlyargcount]:
        yield name, annotations.get(name, MISSING), keyword_defaults.get(name, MISSING)


def _slow_signature(fn: Any) -> Iterator[tuple[str, Any, Any]]:
    """The same for partials, wrapped functions and objects with `__call__`."""
    import inspect

    for p in inspect.signature(fn).parameters.values():
        if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            annotation = MISSING if p.annotation is p.empty else p.annotation
            yield p.name, annotation, MISSING if p.default is p.empty else p.default


def _innermost(fn: Any) -> Any:
    """The function below decorators, partials and objects with `__call__`."""
    while (inner := getattr(fn, "__wrapped__", None) or getattr(fn, "func", None)) is not None:
        fn = inner
    return fn if hasattr(fn, "__code__") else fn.__class__.__call__


def _raw_annotations(fn: Any) -> Mapping[str, Any]:
    return getattr(_innermost(fn), "__annotations__", None) or {}


def _namespace(fn: Any) -> dict[str, Any]:
    return getattr(_innermost(fn), "__globals__", {})


def _evaluate(annotation: Any, space: dict[str, Any], fn: Any) -> Any:
    if type(annotation) is not str:
        return annotation
    word = _BY_WORD.get(annotation, MISSING)
    if word is not MISSING and annotation not in space:
        return word
    try:
        return eval(annotation, space)
    except Exception as failure:
        from tooli.errors import DefinitionError

        name = getattr(fn, "__name__", repr(fn))
        raise DefinitionError(
            f"{name}: the annotation {annotation!r} cannot be read ({failure}). "
            "Import what it names at module level, outside `if TYPE_CHECKING`."
        ) from failure


def _spread(
    model: Any, params: tuple[Param, ...], fn: Any
) -> tuple[tuple[Param, ...], tuple[str, Any]]:
    """`input_model=`: the fields of a model as parameters, for a function that takes the model."""
    from tooli.contract.info import Info
    from tooli.errors import DefinitionError

    takers = [p for p in params if p.kind != "injected"]
    if len(takers) != 1 or not hasattr(model, "model_fields"):
        name = getattr(fn, "__name__", repr(fn))
        raise DefinitionError(
            f"{name}: input_model= needs a pydantic model, and a function with one parameter for it"
        )
    annotated = sys.modules["typing"].Annotated
    spread: list[Param] = []
    for name, field in model.model_fields.items():
        said = {"help": field.description} if field.description else {}
        extras = (*field.metadata, Info("option", ..., (), said))
        annotation = annotated.__class_getitem__((field.annotation, *extras))
        default = MISSING if field.is_required() else field.get_default(call_default_factory=True)
        spread.append(read_param(name, annotation, default))
    injected = [p for p in params if p.kind == "injected"]
    return (*spread, *injected), (takers[0].name, model)


# ------------------------------------------------------------------ one parameter


def read_param(name: str, annotation: Any, default: Any) -> Param:
    """One parameter: what Typer's rules make of its annotation and default."""
    annotation, info, refined = _split(annotation, name)
    if default is ...:
        default = MISSING
    if info is None and default is not MISSING and type(default) not in _PLAIN:
        info, default = _info_as_default(default)
    kind = "argument" if default is MISSING else "option"
    decls: tuple[str, ...] = ()
    settings: Mapping[str, Any] = {}
    if info is not None:
        kind, decls, settings = info.kind, info.decls, info.settings
    shape = shape_of(annotation) if annotation is not MISSING else _guess(default)
    if settings.keys() & {"resolve_path", "path_type", "allow_dash"} and _is_text(shape):
        shape = Foreign(annotation)  # Typer makes a path of it, whatever it is called
    if isinstance(shape, Injected):
        return Param(name, shape, annotation, "injected", False, fast=shape.what == "context")
    if annotation is MISSING:
        annotation = getattr(shape, "type", str)
    fast = not _foreign(settings) and not isinstance(shape, Foreign)
    flags, negations = _flags(name, shape, decls, settings) if kind == "option" else ((), ())
    if kind == "option" and (not flags or (decls and any([d.isidentifier() for d in decls]))):
        fast = False
    return Param(
        name=name,
        shape=shape,
        annotation=refined if refined is not None else annotation,
        kind=kind,
        required=default is MISSING and "default_factory" not in settings,
        default=default,
        flags=flags,
        negations=negations,
        decls=decls,
        light_info=info is not None and info.light,
        settings=settings,
        fast=fast,
        exact=_exact(shape, settings, refined),
        settled=_settled(shape, settings, default, refined),
    )


def _is_text(shape: Shape) -> bool:
    shape = plain(shape)
    return isinstance(shape.item if isinstance(shape, ListOf) else shape, Text)


def _foreign(settings: Mapping[str, Any]) -> bool:
    if not settings:
        return False
    from tooli.contract.info import FOREIGN

    return not FOREIGN.isdisjoint(settings)


def _info_as_default(default: Any) -> tuple[Info | None, Any]:
    """`x: str = Option("a")`: the info, and the default that stands inside it."""
    if not type(default).__name__.endswith("Info") and type(default).__name__ != "Info":
        return None, default
    from tooli.contract.info import as_info

    info = as_info(default)
    if info is None:
        return None, default
    return info, (MISSING if info.default is ... else info.default)


def _split(annotation: Any, name: str) -> tuple[Any, Info | None, Any]:
    """Annotated[…] taken apart: the bare type, our info, and the whole when others refine it."""
    metadata = getattr(annotation, "__metadata__", None)
    if metadata is None:
        return annotation, None, None
    from tooli.contract.info import Info, as_info
    from tooli.errors import DefinitionError

    infos = [info for extra in metadata if (info := as_info(extra)) is not None]
    others = [extra for extra in metadata if as_info(extra) is None and not isinstance(extra, str)]
    if len(infos) > 1:
        raise DefinitionError(f"{name!r} has more than one Option or Argument in Annotated")
    base = annotation.__origin__
    refined = None
    if others:
        refined = sys.modules["typing"].Annotated.__class_getitem__((base, *others))
    if not infos:
        return base, None, refined
    info = infos[0]
    if info.default is not ...:  # inside Annotated the first word is a name, not a default
        if info.kind == "argument":
            raise DefinitionError(
                f"{name!r}: write the default after `=`, not in Annotated[…, Argument(…)]"
            )
        info = Info(
            "option", ..., (info.default, *info.decls), dict(info.settings), info.light
        )
    return base, info, refined


def _guess(default: Any) -> Shape:
    """The shape of a parameter without annotation: that of its default, as Typer does it."""
    if default is MISSING or default is None:
        return _PLAIN[str]
    return _PLAIN.get(type(default)) or Foreign(type(default))


def _flags(
    name: str, shape: Shape, decls: tuple[str, ...], settings: Mapping[str, Any]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The words that set an option, and the words that unset it."""
    is_flag = is_bool(shape) and not settings.get("count")
    if not decls:
        word = name.replace("_", "-")
        return (f"--{word}",), ((f"--no-{word}",) if is_flag else ())
    yes: list[str] = []
    no: list[str] = []
    for decl in decls:
        split = ";" if decl[:1] == "/" else "/"
        first, found, second = decl.partition(split)
        if decl.isidentifier():
            continue
        if first.strip():
            yes.append(first.rstrip())
        if found and second.strip():
            no.append(second.lstrip())
    return tuple(yes), tuple(no)


def _exact(shape: Shape, settings: Mapping[str, Any], refined: Any) -> type | None:
    if isinstance(shape, Scalar) and refined is None and not _bounded(settings):
        return shape.type
    return None


def _bounded(settings: Mapping[str, Any]) -> bool:
    return not settings.keys().isdisjoint(("min", "max", "parser", "callback"))


def _settled(shape: Shape, settings: Mapping[str, Any], default: Any, refined: Any) -> bool:
    """Whether the default needs no look: of the right class, and nothing to check."""
    if default is MISSING or refined is not None or _bounded(settings):
        return False
    bare = plain(shape)
    if default is None:
        return not isinstance(bare, ListOf)
    if isinstance(bare, Scalar):
        return type(default) is bare.type
    if not isinstance(bare, Choice):
        return False
    if bare.enum is not None:
        return isinstance(default, bare.enum)
    return any([type(default) is type(v) and default == v for v in bare.values])


# ------------------------------------------------------------------ shapes


def shape_of(annotation: Any) -> Shape:
    """The shape of an annotation; what is not plain goes to pydantic, as Text or Structured."""
    known = _PLAIN.get(annotation) if annotation.__hash__ else None
    if known is not None:
        return known
    if hasattr(annotation, "__metadata__"):
        inner = shape_of(annotation.__origin__)
        return Structured(annotation) if isinstance(inner, Structured) else Text(annotation)
    origin = getattr(annotation, "__origin__", None)
    if type(annotation).__name__ == "UnionType" or _is_typing(origin, "Union"):
        return _union(annotation)
    if origin is not None:
        return _generic(annotation, origin, annotation.__args__)
    if hasattr(annotation, "__supertype__"):
        return shape_of(annotation.__supertype__)
    if isinstance(annotation, type):
        return _class(annotation)
    return Text(annotation)


def _is_typing(thing: Any, name: str) -> bool:
    typing = sys.modules.get("typing")
    return thing is not None and typing is not None and thing is getattr(typing, name)


def _union(annotation: Any) -> Shape:
    members = [arg for arg in annotation.__args__ if arg is not type(None)]
    if len(members) == 1 and len(annotation.__args__) == 2:
        inner = shape_of(members[0])
        return inner if isinstance(inner, (Injected, Foreign)) else Maybe(inner)
    shapes = [shape_of(member) for member in members]
    if any([isinstance(s, (Structured, ListOf, TupleOf)) for s in shapes]):
        return Structured(annotation)
    return Text(annotation)


def _generic(annotation: Any, origin: Any, args: tuple[Any, ...]) -> Shape:
    if _is_typing(origin, "Literal"):
        simple = all([type(a) in (str, int) for a in args])
        return Choice(args) if simple else Text(annotation)
    if origin is tuple:
        if len(args) == 2 and args[1] is ...:
            return _list_of(args[0], tuple)
        shapes = tuple([shape_of(arg) for arg in args])
        if any([isinstance(s, Foreign) for s in shapes]):
            return Foreign(annotation)
        simple = all([isinstance(s, (Scalar, PathShape, Choice, Text)) for s in shapes])
        return TupleOf(shapes) if simple and shapes else Structured(annotation)
    into = _COLLECTIONS.get(origin) or _COLLECTIONS.get(f"{origin.__module__}.{origin.__name__}")
    if into is not None:
        return _list_of(args[0], into)
    inner = getattr(origin, "__tooli_shape__", None)
    if inner is not None:
        return inner(annotation)
    return Structured(annotation)


def _list_of(item: Any, into: type) -> Shape:
    shape = shape_of(item)
    if isinstance(shape, (ListOf, TupleOf, Maybe)):
        shape = Structured(item)
    return shape if isinstance(shape, Foreign) else ListOf(shape, into)


def _class(cls: type) -> Shape:
    enum = sys.modules.get("enum")
    if enum is not None and issubclass(cls, enum.Enum):
        members: Any = cls
        return Choice(tuple(members), cls)
    pathlib = sys.modules.get("pathlib")
    if pathlib is not None and issubclass(cls, pathlib.Path):
        return PathShape(cls)
    into = _COLLECTIONS.get(cls)
    if into is not None or cls is tuple:
        return ListOf(_PLAIN[str], into or tuple)
    if (
        cls is dict
        or hasattr(cls, "__dataclass_fields__")
        or hasattr(cls, "__pydantic_fields__")
        or hasattr(cls, "__required_keys__")
        or (hasattr(cls, "_fields") and issubclass(cls, tuple))
    ):
        return Structured(cls)
    for base in cls.__mro__:
        house = base.__module__.partition(".")[0]
        if base.__name__ == "Context" and house in ("tooli", "typer", "click"):
            return Injected("context" if house == "tooli" else "typer")
        if base.__module__ == "typer.models" and base.__name__.startswith("File"):
            return Foreign(cls)
    return Text(cls)
