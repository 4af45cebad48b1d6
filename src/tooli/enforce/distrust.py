"""What comes out from behind walls: read as data, never as instructions.

A pickle can name anything to be called by whoever reads it. The process behind walls is not
trusted, so of what its frames name only values are let in; all else crosses as JSON has it.
"""

from __future__ import annotations

from _io import BytesIO

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

try:
    from _pickle import Unpickler, UnpicklingError  # pyright: ignore  as in frames
except ImportError:
    from pickle import Unpickler, UnpicklingError

_PATHS = ("PosixPath", "PurePosixPath")
LET_IN: dict[str, tuple[str, ...]] = {
    "builtins": ("set", "frozenset", "bytearray", "complex"),
    "datetime": ("date", "time", "datetime", "timedelta", "timezone"),
    "decimal": ("Decimal",),
    "uuid": ("UUID",),
    "pathlib": _PATHS,
    "pathlib._local": _PATHS,
    "tooli.contract.pages": ("Page",),
    "tooli.contract.handoffs": ("Next", "Step"),
    "tooli.contract.content": ("Image", "Audio", "Embedded", "Link", "Message"),
    "tooli.call.peer": ("Elicit", "Sample", "Roots"),
}
"""What a frame may name: to make one of these does nothing else."""


class _Wary(Unpickler):
    def find_class(self, module_name: str, global_name: str, /) -> Any:
        if global_name not in LET_IN.get(module_name, ()):
            raise UnpicklingError(f"{module_name}.{global_name} does not come out of there")
        return super().find_class(module_name, global_name)


def loads(data: bytes) -> Any:
    """The value of a frame that names nothing but values; raises UnpicklingError.

    It must be pickled: whatever is marshalled can crash whoever reads it.
    """
    if data[:1] != b"p":
        raise UnpicklingError("what comes out of there is pickled")
    return _Wary(BytesIO(data[1:])).load()
