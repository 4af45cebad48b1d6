"""Option and Argument, without loading Typer.

They take the arguments of `typer.Option` and `typer.Argument`. If Typer runs the command, they are
converted to Typer's objects.
"""

from __future__ import annotations

from tooli.core.tool import MISSING
from tooli.errors import DefinitionError, check_keywords

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

ARGUMENT_DEFAULTS: dict[str, Any] = {
    **dict.fromkeys(("callback", "metavar", "envvar", "shell_complete", "autocompletion"), None),
    **dict.fromkeys(("default_factory", "parser", "click_type", "help", "min", "max"), None),
    **dict.fromkeys(("formats", "mode", "encoding", "lazy", "path_type"), None),
    **dict.fromkeys(("rich_help_panel",), None),
    **dict.fromkeys(("expose_value", "show_default", "show_choices", "show_envvar"), True),
    **dict.fromkeys(("case_sensitive", "file_okay", "dir_okay", "readable"), True),
    **dict.fromkeys(("is_eager", "hidden", "clamp", "atomic", "exists", "writable"), False),
    **dict.fromkeys(("resolve_path", "allow_dash"), False),
    "errors": "strict",
}
OPTION_DEFAULTS: dict[str, Any] = {
    **ARGUMENT_DEFAULTS,
    **dict.fromkeys(("is_flag", "flag_value"), None),
    **dict.fromkeys(("prompt_required", "allow_from_autoenv"), True),
    **dict.fromkeys(("prompt", "confirmation_prompt", "hide_input", "count"), False),
}
"""Every keyword of Typer's Option and Argument, with its default."""

TYPER_ONLY_KEYWORDS = frozenset(
    (
        *("callback", "parser", "click_type", "prompt", "is_eager", "expose_value"),
        *("path_type", "is_flag", "flag_value"),
    )
)
"""Keywords that only Typer supports on a command line."""


class ParamInfo:
    """The arguments of Option(…) or Argument(…): a default, names and keywords."""

    __slots__ = ("decls", "default", "is_tooli_info", "kind", "option_kwargs")

    def __init__(
        self,
        kind: str,
        default: Any,
        decls: tuple[str, ...],
        kwargs: dict[str, Any],
        is_tooli_info: bool = True,
    ) -> None:
        known = OPTION_DEFAULTS if kind == "option" else ARGUMENT_DEFAULTS
        check_keywords(kind.capitalize(), kwargs, known)
        self.kind = kind
        self.default = default
        self.decls = decls
        self.is_tooli_info = is_tooli_info
        self.option_kwargs = {k: v for k, v in kwargs.items() if v is not known[k]}

    @property
    def needs_typer(self) -> bool:
        """True if one of its keywords needs Typer."""
        return not TYPER_ONLY_KEYWORDS.isdisjoint(self.option_kwargs)

    def __repr__(self) -> str:
        return (
            f"{self.kind.capitalize()}({self.default!r}, *{self.decls!r}, **{self.option_kwargs!r})"
        )


def Option(default: Any = ..., *param_decls: str, **kwargs: Any) -> Any:  # noqa: N802
    """Declare a parameter as an option. Takes the arguments of `typer.Option`."""
    return ParamInfo("option", default, param_decls, kwargs)


def Argument(default: Any = ..., **kwargs: Any) -> Any:  # noqa: N802
    """Declare a parameter as an argument. Takes the arguments of `typer.Argument`."""
    return ParamInfo("argument", default, (), kwargs)


def to_param_info(value: object) -> ParamInfo | None:
    """Return a ParamInfo for tooli's or Typer's Option or Argument; None for other values."""
    if isinstance(value, ParamInfo):
        return value
    for cls in type(value).__mro__:
        if cls.__module__ == "typer.models" and cls.__name__ in ("OptionInfo", "ArgumentInfo"):
            return _from_typer(value, "option" if cls.__name__ == "OptionInfo" else "argument")
    return None


def _from_typer(info: Any, kind: str) -> ParamInfo:
    known = OPTION_DEFAULTS if kind == "option" else ARGUMENT_DEFAULTS
    kwargs = {
        name: value
        for name, default in known.items()
        if (value := getattr(info, name, default)) is not default
    }
    return ParamInfo(kind, info.default, tuple(info.param_decls or ()), kwargs, is_tooli_info=False)


def _is_constraint(extra: Any) -> bool:
    return hasattr(extra, "tooli_check")


def split_annotated(
    annotation: Any, name: str, default: Any
) -> tuple[Any, ParamInfo | None, Any, tuple[Any, ...]]:
    """Split `Annotated[…]` into type, ParamInfo, refined type and constraints.

    The refined type is the type with the metadata for pydantic; None if there is no such metadata.
    """
    metadata: tuple[Any, ...] = annotation.__metadata__
    infos = [info for extra in metadata if (info := to_param_info(extra)) is not None]
    constraints = tuple(filter(_is_constraint, metadata))
    other_metadata = [
        extra
        for extra in metadata
        if not isinstance(extra, str) and to_param_info(extra) is None and not _is_constraint(extra)
    ]
    if len(infos) > 1:
        raise DefinitionError(f"{name!r} has more than one Option or Argument in Annotated")
    base = annotation.__origin__
    if other_metadata and hasattr(getattr(base, "__origin__", base), "tooli_shape"):
        raise DefinitionError(
            f"{name!r}: annotate the inner type instead: StdinOr[Annotated[…, {other_metadata[0]}]]"
        )
    refined = type(annotation)(base, tuple(other_metadata)) if other_metadata else None
    if not infos:
        return base, None, refined, constraints
    if to_param_info(default) is not None:
        raise DefinitionError(f"{name!r} has an Option or Argument in Annotated and as its default")
    info = infos[0]
    if info.default is not ...:  # in Annotated the first argument is a name, not a default
        if info.kind == "argument":
            raise DefinitionError(
                f"{name!r}: write the default after `=`, not in Annotated[…, Argument(…)]"
            )
        info = ParamInfo(
            "option", ..., (info.default, *info.decls), dict(info.option_kwargs), info.is_tooli_info
        )
    return base, info, refined, constraints


# ------------------------------------------------------------------ pydantic's Field


def split_field_default(annotation: Any, field: Any) -> tuple[Any, Any, dict[str, Any]]:
    """Split a default that is pydantic's `Field(…)` into annotation, default and keywords.

    `n: int = Field(5, ge=1)` means `n: Annotated[int, Field(ge=1)] = 5`.
    """
    from typing import Annotated

    keywords = {} if field.default_factory is None else {"default_factory": field.default_factory}
    is_undefined = type(field.default).__name__ == "PydanticUndefinedType"
    default = MISSING if is_undefined or keywords else field.default
    if annotation is MISSING and default is not MISSING:
        annotation = type(default)  # pyright: ignore[reportUnknownVariableType]
    return Annotated[annotation, field], default, keywords


def field_help(annotation: Any) -> dict[str, str]:
    """Return the description of `Annotated[…, Field(description=…)]` as a keyword of Option."""
    texts = [getattr(extra, "description", None) for extra in annotation.__metadata__]
    texts = [text for text in texts if isinstance(text, str) and text]
    return {"help": texts[-1]} if texts else {}
