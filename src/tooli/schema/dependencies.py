"""Read dependencies: the parameters of the functions that `Depends` names.

    Annotated[Db, Depends(get_db)] ─▶ Dependency(get_db, params) ─▶ dependencies of get_db …
    Settings, of `Tooli(settings=Settings)` ─▶ Dependency(Settings)

They are read with the command, so that a mistake is a DefinitionError.
"""

from __future__ import annotations

from tooli.core.depends import Dependency, find_depends, settings_classes
from tooli.core.tool import Injected, Param
from tooli.errors import DefinitionError

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    ReadParams = Callable[[Callable[..., Any]], Iterable[Param]]

_ASYNC_FLAGS = 0x80 | 0x200  # of the code of coroutine functions and async generator functions
_reading: list[object] = []
"""The functions whose parameters are being read, to find a cycle."""


def read_dependency_param(
    name: str, annotation: Any, default: object, read_params: ReadParams
) -> Param | None:
    """Return the parameter of a dependency, or None if it is another parameter."""
    marker = find_depends(annotation, default)
    annotated = annotation.__origin__ if hasattr(annotation, "__metadata__") else annotation
    is_settings = isinstance(annotated, type) and annotated in settings_classes
    if is_settings and getattr(marker, "dependency", None) in (None, annotated):
        dependency = Dependency(annotated, (), is_settings=True)
        return Param(name, Injected("dependency"), dependency, "injected", False)
    if marker is None:
        return None
    fn = marker.dependency
    if fn is None:  # as in FastAPI: the annotated class
        fn = getattr(annotation, "__origin__", annotation)
    dependency = read_dependency(fn, read_params, use_cache=bool(marker.use_cache))
    return Param(name, Injected("dependency"), dependency, "injected", False, is_fast_path=True)


def read_dependency(fn: Any, read_params: ReadParams, *, use_cache: bool = True) -> Dependency:
    """Return the description of a dependency; raise a DefinitionError if it cannot be called."""
    label = getattr(fn, "__name__", repr(fn))
    if not callable(fn):
        raise DefinitionError(f"Depends({label}): must be a function or a class")
    if fn in _reading:
        raise DefinitionError(f"Depends({label}): depends on itself")
    _reading.append(fn)
    try:
        is_class = isinstance(fn, type)
        found = read_params(fn.__init__ if is_class else fn)
        params = tuple(found)[1:] if is_class else tuple(found)
    finally:
        _reading.remove(fn)
    for param in params:
        if param.kind != "injected" and param.required:
            raise DefinitionError(
                f"Depends({label}): the parameter {param.name!r} needs a default, a Context or "
                "Depends(…), because the caller cannot give it"
            )
    code = getattr(fn, "__code__", None) or getattr(type(fn).__call__, "__code__", None)
    is_async = bool(code is not None and code.co_flags & _ASYNC_FLAGS)
    inner = [param.annotation for param in params if param.shape == Injected("dependency")]
    is_async = is_async or any([dependency.is_async for dependency in inner])
    return Dependency(fn, params, use_cache, is_async)
