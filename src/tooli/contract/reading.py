"""Read a function into a Tool, from its code object, without `inspect` or `typing`.

What an ordinary function needs is here; `shapes` and `info` are loaded where an
annotation is not plain.
"""

from __future__ import annotations

import sys

from tooli.contract.tool import (
    BEHAVIOR,
    GUARD,
    GUARDING,
    GUIDANCE,
    LIMITS,
    MISSING,
    PLAIN,
    Choice,
    Foreign,
    Guard,
    Guidance,
    Injected,
    ListOf,
    Param,
    Scalar,
    Text,
    Tool,
    handles_of,
    is_bool,
    plain,
)

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping
    from typing import Any

    from tooli.contract.handoffs import Handoff
    from tooli.contract.tool import Limits, Shape

_BY_WORD = {"str": str, "int": int, "float": float, "bool": bool, "None": None}
_LIMITING = {"timeout", "max_tokens", "cost_hint", "paginated", "rate_limit"}
_STREAM, _ASYNC_STREAM = 0x20, 0x200  # flags of a code object

COMMAND_KEYWORDS = frozenset(
    (
        *("annotations", "capabilities", "handoffs", "delegation_hint", "examples"),
        *("error_codes", "timeout", "cost_hint", "human_in_the_loop", "requires_approval"),
        *("danger_level", "auth", "max_tokens", "paginated", "version", "when_to_use"),
        *("task_group", "native", "input_model", "input_schema", "always_visible"),
        *("resource", "agent_auto_confirm", "isolation", "rate_limit"),
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
        from tooli.contract.models import spread

        params, model = spread(said["input_model"], params, fn)
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
    behavior = said.get("annotations") or BEHAVIOR
    guard = _read_guard(said, ".".join(path))
    onward = _may_return("handoffs", "Next", fn, returns)
    limits = _read_limits(said, ".".join(path), _may_return("pages", "Page", fn, returns))
    handles, kept = handles_of(params)
    sized = limits.paginated or limits.sourced or limits.max_tokens or limits.timeout
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
        behavior=behavior,
        guard=guard,
        guidance=_read_guidance(said, ".".join(path), onward),
        limits=limits,
        hidden=bool(said.get("hidden")),
        deprecated=said.get("deprecated") or False,
        help=doc if isinstance(doc, str) else None,
        fast=not steps_aside and all([p.fast for p in params]),
        model=model,
        schema=said.get("input_schema"),
        handles=handles,
        staged=bool(guard is not GUARD or behavior.destructive or onward or kept or sized),
    )


def _read_guard(said: Mapping[str, Any], name: str) -> Guard:
    if not any([said.get(word) is not None for word in GUARDING]):
        return GUARD
    from tooli.contract.guards import read_guard

    return read_guard(said, name)


def _may_return(home: str, name: str, fn: Any, returns: Any) -> bool:
    """Whether a function may return our `Next` or `Page`: it is annotated so, or names it."""
    module = sys.modules.get(f"tooli.contract.{home}")
    if module is None:  # nobody has imported it
        return False
    ours = getattr(module, name)
    if getattr(fn, "__globals__", {}).get(name, ours) is not ours:
        return False
    code = getattr(fn, "__code__", None)
    return name in repr(returns) or (code is not None and name in code.co_names)


def _read_guidance(said: Mapping[str, Any], name: str, onward: bool) -> Guidance:
    if not onward and not said.keys() & {
        *("examples", "when_to_use", "handoffs", "delegation_hint"),
        *("error_codes", "task_group", "always_visible"),
    }:
        return GUIDANCE
    handoffs: tuple[Handoff, ...] = ()
    if said.get("handoffs"):
        from tooli.contract.handoffs import read_handoffs

        handoffs = read_handoffs(said["handoffs"], name)
    return Guidance(
        examples=tuple(said.get("examples") or ()),
        when_to_use=said.get("when_to_use"),
        handoffs=handoffs,
        delegation_hint=said.get("delegation_hint"),
        error_codes=dict(said.get("error_codes") or {}),
        task_group=said.get("task_group"),
        always_visible=bool(said.get("always_visible")),
        onward=onward,
    )


def _read_limits(said: Mapping[str, Any], name: str, sourced: bool) -> Limits:
    if not sourced and not said.keys() & _LIMITING:
        return LIMITS
    from tooli.contract.limits import read_limits

    return read_limits(said, name, sourced)


def names_of(fn: Callable[..., Any]) -> tuple[str, ...]:
    """The names of a function's parameters, in order; no annotation is looked at."""
    return tuple([name for name, _, _ in _signature(fn)])


def needs_of(fn: Callable[..., Any], given: Collection[str]) -> tuple[str, ...]:
    """The parameters that callers must give beyond those; none is named while nobody can tell."""
    from tooli.errors import DefinitionError

    if all([name in given or default is not MISSING for name, _, default in _signature(fn)]):
        return ()
    try:
        wanted = [p.name for p in _read_params(fn) if p.required and p.kind != "injected"]
    except DefinitionError:  # an annotation names what is defined later
        return ()
    return tuple([name for name in wanted if name not in given])


def returns_of(tool: Tool) -> Any:
    """The annotation of the result, evaluated; MISSING when there is none."""
    annotation = _evaluate(tool.returns, _namespace(tool.fn), tool.fn)
    if tool.guidance.onward:
        from tooli.contract.handoffs import is_next

        if is_next(annotation):
            annotation = getattr(annotation, "__args__", (MISSING,))[0]
    if tool.limits.sourced:
        from tooli.contract.pages import without_page

        return without_page(annotation)
    return annotation


# ------------------------------------------------------------------ the signature


def _read_params(fn: Callable[..., Any]) -> Iterator[Param]:
    space = _namespace(fn)
    for name, annotation, default in _signature(fn):
        annotation = _evaluate(annotation, space, fn)
        if hasattr(annotation, "__args__") and "ForwardRef(" in repr(annotation):
            from tooli.contract.shapes import resolved

            annotation = resolved(_innermost(fn), name, annotation)
        yield read_param(name, annotation, default)


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


# ------------------------------------------------------------------ one parameter


def read_param(name: str, annotation: Any, default: Any) -> Param:
    """One parameter: what Typer's rules make of its annotation and default."""
    info = refined = None
    marks: tuple[Any, ...] = ()
    if hasattr(annotation, "__metadata__"):
        from tooli.contract.info import split

        annotation, info, refined, marks = split(annotation, name, default)
    if default is ...:
        default = MISSING
    if info is None and type(default).__name__ in ("Info", "OptionInfo", "ArgumentInfo"):
        from tooli.contract.info import as_info

        info = as_info(default)
        if info is not None:
            default = MISSING if info.default is ... else info.default
    kind = "argument" if default is MISSING else "option"
    decls: tuple[str, ...] = ()
    settings: Mapping[str, Any] = {}
    if info is not None:
        kind, decls, settings = info.kind, info.decls, info.settings
    shape = _guess(default) if annotation is MISSING else shape_of(annotation)
    if settings.keys() & {"resolve_path", "path_type", "allow_dash"} and _is_text(shape):
        shape = Foreign(annotation)  # Typer makes a path of it, whatever it is called
    if isinstance(shape, Injected):
        return Param(name, shape, annotation, "injected", False, fast=shape.what == "context")
    if annotation is MISSING and not isinstance(shape, Foreign):  # what Typer makes of a default
        annotation = getattr(shape, "type", str)
    fast = not isinstance(shape, Foreign) and not (info is not None and info.foreign)
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
        exact=_exact(shape, settings, refined or marks or None),
        settled=_settled(shape, settings, default, refined),
        marks=marks,
    )


def _is_text(shape: Shape) -> bool:
    shape = plain(shape)
    return isinstance(shape.item if isinstance(shape, ListOf) else shape, Text)


def _guess(default: Any) -> Shape:
    """The shape of a parameter without annotation: that of its default, as Typer does it."""
    if default is MISSING or default is None:
        return PLAIN[str]
    return PLAIN.get(type(default)) or Foreign(type(default))


def shape_of(annotation: Any) -> Shape:
    """The shape of an annotation; what is not plain goes to pydantic, as Text or Structured."""
    known = PLAIN.get(annotation) if annotation.__hash__ else None
    if known is not None:
        return known
    from tooli.contract.shapes import shape_of

    return shape_of(annotation)


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
