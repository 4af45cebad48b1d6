"""Import the function of a lazy command, when it is first needed."""

from __future__ import annotations

from importlib import import_module

from tooli.errors import DefinitionError

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable


def load_function(target: str) -> Callable[..., object]:
    """Import the function that `package.module:function` names."""
    module, _, name = target.partition(":")
    try:
        return getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as failure:
        raise DefinitionError(f"lazy_command({target!r}) cannot be loaded: {failure}") from failure
