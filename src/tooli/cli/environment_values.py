"""Values of parameters from environment variables: `envvar=` of an option or argument."""

from __future__ import annotations

import os

from tooli.core.tool import ListOf, PathShape, unwrap_optional
from tooli.schema import RawText

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tooli.cli.argv import ArgumentParser
    from tooli.core.tool import Param


def read_variables(
    parser: ArgumentParser,
    param: Param,
    names: Sequence[str],
    convert: Callable[[Param, RawText], object],
) -> None:
    """Set a parameter to the value of the first variable that is set and not empty.

    `convert` converts text that `tooli.schema` cannot convert.
    """
    for name in names:
        text = os.environ.get(name)
        if text:
            if param.is_multiple or param.nargs > 1:
                shape = unwrap_optional(param.shape)
                is_path_list = isinstance(shape, ListOf) and isinstance(shape.item, PathShape)
                texts = text.split(os.pathsep) if is_path_list else text.split()
            else:
                texts = [text]
            if param.is_multiple and not texts:
                parser.defer_to_typer(f"{name} has no values for {param.name}")
                return
            parser.line.arguments[param.name] = RawText(texts, convert, is_cli_text=False)
            return
