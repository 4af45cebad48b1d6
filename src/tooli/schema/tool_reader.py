"""Build a Tool from a function.

Every ordinary call loads this module. It reads the code object of a function, because `inspect` and
`typing` take longer to import than the call takes. `shapes` and `param_info` are loaded only for
annotations that are not plain types.
"""

from __future__ import annotations

import sys

from tooli.core import TYPER_COMMAND_KEYWORDS, find_loaded
from tooli.core.tool import (
    DEFAULT_BEHAVIOR,
    DEFAULT_GUARD,
    DEFAULT_GUIDANCE,
    DEFAULT_LIMITS,
    MISSING,
    SCALAR_SHAPES,
    Choice,
    Injected,
    ListOf,
    Param,
    ParsedText,
    PathShape,
    Scalar,
    Structured,
    Tool,
    TyperOnly,
    has_handle,
    is_bool,
    item_shape,
    unwrap_optional,
)

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from typing import Any

    from tooli.core.protocols import CommandOptions
    from tooli.core.tool import Guard, Guidance, Limits, Shape

_BUILTIN_TYPES = {"str": str, "int": int, "float": float, "bool": bool, "None": None}
_COMMON_KEYWORDS = TYPER_COMMAND_KEYWORDS | {"annotations"}
"""Keywords that are read here. `core.definitions` reads all others."""
_PLAIN_SHAPES = (Scalar, PathShape, Choice, Injected)
"""Shapes that contain no secrets."""
_CO_GENERATOR, _CO_ASYNC_GENERATOR = 0x20, 0x200  # flags of a code object


def read_tool(
    fn: Callable[..., Any],
    *,
    app: str,
    path: tuple[str, ...],
    kwargs: CommandOptions,
    version: str | None = None,
    cli_path: tuple[str, ...] | None = None,
) -> Tool:
    """Build a Tool from a function. `kwargs` are the checked keywords of its decorator."""
    params = tuple(_read_params(fn))
    model = None
    input_model = kwargs.get("input_model")
    if input_model is not None:
        params, model = _expand_input_model(input_model, params, fn)
    code = getattr(fn, "__code__", None)
    flags = code.co_flags if code is not None else 0
    returns = _raw_annotations(fn).get("return", MISSING)
    needs_typer = bool(
        kwargs.get("cls")
        or kwargs.get("context_settings")
        or kwargs.get("no_args_is_help")
        or kwargs.get("native") is False
        or (code is not None and "get_current_context" in code.co_names)
    )
    doc = kwargs.get("help")
    dependencies = _dependencies(params)
    guard, guidance, limits = _read_keywords(kwargs, fn, returns)
    return Tool(
        app=app,
        path=path,
        id=".".join((app, *path)),
        cli_path=path if cli_path is None else cli_path,
        fn=fn,
        params=params,
        param_names=frozenset([p.name for p in params if p.kind != "injected"]),
        returns=returns,
        is_streaming=bool(flags & (_CO_GENERATOR | _CO_ASYNC_GENERATOR)),
        returns_printed_text=not flags & (_CO_GENERATOR | _CO_ASYNC_GENERATOR)
        and guidance.output_schema is None
        and _is_undeclared(returns, fn),
        version=kwargs.get("version") or version,
        behavior=kwargs.get("annotations") or DEFAULT_BEHAVIOR,
        guard=guard,
        guidance=guidance,
        limits=limits,
        hidden=bool(kwargs.get("hidden")),
        deprecated=kwargs.get("deprecated") or False,
        help=doc if isinstance(doc, str) else None,
        epilog=kwargs.get("epilog"),
        is_fast_path=not needs_typer and all([p.is_fast_path for p in params]),
        passes_arguments=needs_typer and passes_arguments(kwargs.get("context_settings")),
        input_model=model,
        schema=kwargs.get("input_schema"),
        has_handles=has_handle(params),
        has_dependencies=bool(dependencies),
        needs_loop=any([param.annotation.is_async for param in dependencies]),
        may_have_secrets=may_have_secrets(params),
        **_read_own_checks(kwargs, params, model, fn),
    )


def _read_own_checks(
    kwargs: CommandOptions, params: Sequence[Param], model: Any, fn: object
) -> dict[str, Any]:
    """Return the fields of a Tool for its own checks: `pre_validate=`, and methods of models."""
    may_have_methods = any([type(item_shape(param.shape)) is Structured for param in params])
    if not may_have_methods and model is None and kwargs.get("pre_validate") is None:
        return {}
    from tooli.schema.own_checks import read_own_checks

    return read_own_checks(kwargs.get("pre_validate"), params, model, fn)


def _dependencies(params: Sequence[Param]) -> list[Param]:
    if not find_loaded("tooli.core.depends", "Depends"):
        return []
    return [param for param in params if param.shape == Injected("dependency")]


def passes_arguments(context_settings: Mapping[str, Any] | None) -> bool:
    """True if a command with these settings takes arguments and options that it does not declare.

    The framework's flags are then arguments of the command as well, except `--tooli-NAME`.
    """
    settings = context_settings or {}
    return bool(
        settings.get("allow_extra_args")
        or settings.get("ignore_unknown_options")
        or not settings.get("allow_interspersed_args", True)
    )


_UNDECLARED_RESULTS = frozenset(("None", "Any", "object", "NoReturn", "Never", "NoneType"))
"""Names of annotations that say nothing about a result."""


def declares_result(fn: Callable[..., Any] | None) -> bool:
    """True if the annotation of a function says what it returns, or if it yields its result.

    True for None, which stands for a lazy command that is not imported.

    A function that declares nothing, `None`, `Any`, `object` or `NoReturn` is a command that
    prints, as every command of Typer is.
    """
    flags = getattr(getattr(fn, "__code__", None), "co_flags", 0)
    if flags & (_CO_GENERATOR | _CO_ASYNC_GENERATOR):
        return True
    return fn is None or not _is_undeclared(_raw_annotations(fn).get("return", MISSING), fn)


def _is_undeclared(returns: Any, fn: Callable[..., Any]) -> bool:
    if returns is MISSING or returns is None:
        return True
    if type(returns) is str:
        if returns.strip("\"'").rpartition(".")[2] not in _UNDECLARED_RESULTS:
            return False
        try:
            returns = _evaluate(returns, _namespace(fn), fn)
        except TypeError:  # a DefinitionError: it is imported for type checkers only
            return True
    name = getattr(returns, "__name__", None) or getattr(returns, "_name", None)
    return returns is None or (
        name in _UNDECLARED_RESULTS
        and returns.__module__ in ("builtins", "typing", "typing_extensions", "types")
    )


def may_have_secrets(params: tuple[Param, ...]) -> bool:
    """True if an argument may be a secret or contain one."""
    if "tooli.inputs.secret" not in sys.modules and "pydantic.types" not in sys.modules:
        return False  # no type of secrets is loaded
    if all([isinstance(item_shape(param.shape), _PLAIN_SHAPES) for param in params]):
        return False
    from tooli.core.secret_fields import may_contain_secret

    return any([may_contain_secret(param) for param in params])


def _expand_input_model(
    model: type, params: tuple[Param, ...], fn: object
) -> tuple[tuple[Param, ...], tuple[str, type]]:
    """Return the fields of `input_model=` as parameters, and the parameter that takes the model."""
    from tooli.schema.pydantic_bridge import iter_model_fields

    model_params = [p for p in params if p.kind != "injected"]
    if len(model_params) != 1 or not hasattr(model, "model_fields"):
        from tooli.errors import DefinitionError

        name = getattr(fn, "__name__", repr(fn))
        raise DefinitionError(
            f"{name}: input_model= needs a pydantic model and a function with one parameter for it"
        )
    expanded = [read_param(*field) for field in iter_model_fields(model)]
    injected = [p for p in params if p.kind == "injected"]
    return (*expanded, *injected), (model_params[0].name, model)


def _read_keywords(
    kwargs: CommandOptions, fn: object, returns: object
) -> tuple[Guard, Guidance, Limits]:
    may_return_next = _may_return("Next", fn, returns)
    returns_page = _may_return("Page", fn, returns)
    returns_partial = _may_return("Partial", fn, returns)
    stops_itself = hasattr(fn, "tooli_stops_itself")
    is_plain = not (may_return_next or returns_page or returns_partial or stops_itself)
    if is_plain and kwargs.keys() <= _COMMON_KEYWORDS:
        return DEFAULT_GUARD, DEFAULT_GUIDANCE, DEFAULT_LIMITS
    from tooli.core.definitions import read_guard, read_guidance, read_limits

    limits = read_limits(kwargs, returns_page)
    return (
        read_guard(kwargs),
        read_guidance(kwargs, may_return_next, returns_partial),
        limits.replace(stops_itself=True) if stops_itself else limits,
    )


def _may_return(name: str, fn: object, returns: object) -> bool:
    """True if the annotation or the code of a function contains a name such as `Next`."""
    result_class = find_loaded("tooli.core.result_types", name)
    if result_class is None:  # not imported, so not used
        return False
    if getattr(fn, "__globals__", {}).get(name, result_class) is not result_class:
        return False
    code = getattr(fn, "__code__", None)
    return name in repr(returns) or (code is not None and name in code.co_names)


def parameter_names(fn: Callable[..., Any]) -> tuple[str, ...]:
    """Return the names of a function's parameters, in order. Annotations are not evaluated."""
    return tuple([name for name, _, _ in _signature(fn)])


def required_parameters(fn: Callable[..., Any]) -> tuple[str, ...]:
    """Return the names of the parameters that a caller must give, in order."""
    return tuple([p.name for p in _read_params(fn) if p.required and p.kind != "injected"])


def missing_required_parameters(
    fn: Callable[..., Any], provided: Collection[str]
) -> tuple[str, ...]:
    """Return the required parameters that are not provided.

    Returns an empty tuple if an annotation cannot be evaluated yet.
    """
    from tooli.errors import DefinitionError

    if all([name in provided or default is not MISSING for name, _, default in _signature(fn)]):
        return ()
    try:
        required = required_parameters(fn)
    except DefinitionError:  # an annotation names a type that is defined later
        return ()
    return tuple([name for name in required if name not in provided])


def return_annotation(tool: Tool) -> Any:
    """Return the evaluated annotation of a tool's result, or MISSING.

    It is MISSING as well if the annotation cannot be evaluated, such as a name that is imported
    for type checkers only: the command works without it. `Next[T]`, `Page[T]` and `Partial[T]` are
    replaced by the type that callers get.
    """
    from tooli.errors import DefinitionError

    try:
        annotation = _evaluate(tool.returns, _namespace(tool.fn), tool.fn)
    except DefinitionError:
        return MISSING
    if tool.returns_printed_text and getattr(annotation, "__name__", "") in ("NoReturn", "Never"):
        return None  # nothing to return, and pydantic has no schema for it
    guidance = tool.guidance
    if guidance.may_return_next or tool.limits.returns_page or guidance.may_return_partial:
        from tooli.core.result_types import unwrap_next, unwrap_page, unwrap_partial

        return unwrap_partial(unwrap_page(unwrap_next(annotation)))
    return annotation


def varies_between_typer_versions(param: Param, tool: Tool) -> bool:
    """True if versions of Typer parse the parameter differently, or only Typer knows its type.

    Some versions read a list of bools as flags, others as values. Some treat a parameter without
    an annotation as text.
    """
    shape = unwrap_optional(param.shape)
    if isinstance(shape, Scalar):
        annotations = getattr(tool.fn, "__annotations__", None)
        return (
            bool(annotations)
            and param.name not in annotations
            and shape.type is not str
            and not (tool.input_model or param.schema)
        )
    return isinstance(shape, TyperOnly) or (isinstance(shape, ListOf) and is_bool(shape.item))


# ------------------------------------------------------------------ the signature


def _read_params(fn: Callable[..., Any]) -> Iterator[Param]:
    namespace = _namespace(fn)
    for name, annotation, default in _signature(fn):
        annotation = _evaluate(annotation, namespace, fn)
        if hasattr(annotation, "__args__") and "ForwardRef(" in repr(annotation):
            from tooli.schema.shapes import resolve_forward_references

            annotation = resolve_forward_references(_unwrap_function(fn), name, annotation)
        found = None
        if find_loaded("tooli.core.depends", "Depends") or "fastapi" in sys.modules:
            from tooli.schema.dependencies import read_dependency_param

            found = read_dependency_param(name, annotation, default, read_params)
        yield found or read_param(name, annotation, default)


def _signature(fn: Any) -> Iterator[tuple[str, Any, Any]]:
    """Iterate over name, annotation and default of each parameter, without `*args`, `**kwargs`."""
    code = getattr(fn, "__code__", None)
    if code is None or hasattr(fn, "__wrapped__") or hasattr(fn, "__signature__"):
        yield from _inspect_signature(fn)
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


def _inspect_signature(fn: Any) -> Iterator[tuple[str, Any, Any]]:
    """Iterate over the parameters of partials, wrapped functions and objects with `__call__`."""
    import inspect

    for p in inspect.signature(fn).parameters.values():
        if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            annotation = MISSING if p.annotation is p.empty else p.annotation
            yield p.name, annotation, MISSING if p.default is p.empty else p.default


def _unwrap_function(fn: object) -> object:
    """Return the function inside decorators, partials and objects with `__call__`."""
    while (inner := getattr(fn, "__wrapped__", None) or getattr(fn, "func", None)) is not None:
        fn = inner
    return fn if hasattr(fn, "__code__") else fn.__class__.__call__


def _raw_annotations(fn: object) -> Mapping[str, object]:
    return getattr(_unwrap_function(fn), "__annotations__", None) or {}


def _namespace(fn: object) -> dict[str, object]:
    return getattr(_unwrap_function(fn), "__globals__", {})


def _evaluate(annotation: object, namespace: dict[str, object], fn: object) -> object:
    if type(annotation) is not str:
        return annotation
    builtin_type = _BUILTIN_TYPES.get(annotation, MISSING)
    if builtin_type is not MISSING and annotation not in namespace:
        return builtin_type
    try:
        evaluated = eval(annotation, namespace)
        # With `from __future__ import annotations`, a quoted annotation is quoted twice.
        return eval(evaluated, namespace) if type(evaluated) is str else evaluated
    except Exception as failure:
        from tooli.errors import DefinitionError

        name = getattr(fn, "__name__", repr(fn))
        raise DefinitionError(
            f"{name}: the annotation {annotation!r} cannot be evaluated ({failure}). "
            "Import its names at module level, outside `if TYPE_CHECKING`."
        ) from failure


# ------------------------------------------------------------------ one parameter


def read_params(fn: Callable[..., Any]) -> tuple[Param, ...]:
    """Return the parameters of a function."""
    return tuple(_read_params(fn))


def read_param(name: str, annotation: object, default: object) -> Param:
    """Read one parameter by Typer's rules for its annotation and default."""
    info = refined = None
    constraints: tuple[Any, ...] = ()
    field_keywords: Mapping[str, Any] = {}
    if type(default).__name__ == "FieldInfo":
        from tooli.schema.param_info import split_field_default

        annotation, default, field_keywords = split_field_default(annotation, default)
    if hasattr(annotation, "__metadata__"):
        from tooli.schema.param_info import field_help, split_annotated

        field_keywords = {**field_help(annotation), **field_keywords}
        annotation, info, refined, constraints = split_annotated(annotation, name, default)
    if default is ...:
        default = MISSING
    if info is None and type(default).__name__ in ("ParamInfo", "OptionInfo", "ArgumentInfo"):
        from tooli.schema.param_info import to_param_info

        info = to_param_info(default)
        if info is not None:
            default = MISSING if info.default is ... else info.default
    kind = "argument" if _is_required(default, "argument", field_keywords) else "option"
    decls: tuple[str, ...] = ()
    keywords: Mapping[str, Any] = field_keywords
    if info is not None:
        kind, decls = info.kind, info.decls
        keywords = {**keywords, **info.option_kwargs} if keywords else info.option_kwargs
    shape = _shape_of_default(default) if annotation is MISSING else infer_shape(annotation)
    is_parsed_text = isinstance(item_shape(shape), ParsedText)
    if is_parsed_text and keywords.keys() & {"resolve_path", "path_type", "allow_dash"}:
        shape = TyperOnly(annotation)  # Typer treats it as a path
    if isinstance(shape, Injected):
        return Param(
            name, shape, annotation, "injected", False, is_fast_path=shape.kind == "context"
        )
    if annotation is MISSING and not isinstance(shape, TyperOnly):  # Typer does the same
        annotation = getattr(shape, "type", str)
    is_fast_path = not isinstance(shape, TyperOnly) and not (info is not None and info.needs_typer)
    flags, negations = _option_flags(name, shape, decls, keywords) if kind == "option" else ((), ())
    if kind == "option" and (not flags or (decls and any([d.isidentifier() for d in decls]))):
        is_fast_path = False
    required = _is_required(default, kind, keywords)
    return Param(
        name=name,
        shape=shape,
        annotation=refined if refined is not None else annotation,
        kind=kind,
        required=required,
        default=default,
        flags=flags,
        negations=negations,
        decls=decls,
        has_tooli_info=info is not None and info.is_tooli_info,
        option_kwargs=keywords,
        is_fast_path=is_fast_path,
        exact_type=_exact_type(shape, keywords, refined or constraints or None),
        has_valid_default=not required and _is_valid_default(shape, keywords, default, refined),
        constraints=constraints,
    )


def _is_required(default: object, kind: str, keywords: Mapping[str, Any]) -> bool:
    """True if a call must give the value: it has no default, or Typer asks for it.

    The default of a question is what a person may accept. It is never taken without an answer.
    """
    if kind == "option" and keywords.get("prompt") and keywords.get("prompt_required", True):
        return True
    return default is MISSING and "default_factory" not in keywords


def _shape_of_default(default: object) -> Shape:
    """Infer, as Typer does, the shape of an unannotated parameter from its default."""
    if default is MISSING or default is None:
        return SCALAR_SHAPES[str]
    return SCALAR_SHAPES.get(type(default)) or TyperOnly(type(default))


def infer_shape(annotation: Any) -> Shape:
    """Return the shape of an annotation."""
    known = SCALAR_SHAPES.get(annotation) if annotation.__hash__ else None
    if known is not None:
        return known
    from tooli.schema.shapes import infer_complex_shape

    return infer_complex_shape(annotation)


def _option_flags(
    name: str, shape: Shape, decls: tuple[str, ...], keywords: Mapping[str, object]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the flags that set an option, and those that unset it."""
    is_flag = is_bool(shape) and not keywords.get("count")
    if not decls:
        flag_name = name.replace("_", "-")
        return (f"--{flag_name}",), ((f"--no-{flag_name}",) if is_flag else ())
    positive: list[str] = []
    negative: list[str] = []
    for decl in decls:
        separator = ";" if decl[:1] == "/" else "/"
        first, found, second = decl.partition(separator)
        if decl.isidentifier():
            continue
        if first.strip():
            positive.append(first.rstrip())
        if found and second.strip():
            negative.append(second.lstrip())
    return tuple(positive), tuple(negative)


def _exact_type(shape: Shape, keywords: Mapping[str, object], metadata: object) -> type | None:
    if isinstance(shape, Scalar) and metadata is None and not _has_value_checks(keywords):
        return shape.type
    return None


def _has_value_checks(keywords: Mapping[str, object]) -> bool:
    return not keywords.keys().isdisjoint(("min", "max", "parser", "callback"))


def _is_valid_default(
    shape: Shape, keywords: Mapping[str, object], default: object, metadata: object
) -> bool:
    """True if the default needs no conversion: its type is right, and no check applies to it."""
    if default is MISSING or metadata is not None or _has_value_checks(keywords):
        return False
    inner_shape = unwrap_optional(shape)
    if default is None:
        return not isinstance(inner_shape, ListOf)
    if isinstance(inner_shape, Scalar):
        return type(default) is inner_shape.type
    if not isinstance(inner_shape, Choice):
        return False
    if inner_shape.enum is not None:
        return isinstance(default, inner_shape.enum)
    return any([type(default) is type(v) and default == v for v in inner_shape.values])
