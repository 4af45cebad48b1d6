"""`python -m coverage run FILE …` and `python -m coverage run -m MODULE …`."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from types import ModuleType


def main(argv: list[str]) -> None:
    """Run a program as `__main__`, with its own arguments in `sys.argv`."""
    if argv[:1] != ["run"]:
        raise SystemExit(f"only `coverage run` is supported, not {argv}")
    argv = argv[1:]
    module = ModuleType("__main__")
    if argv[0] == "-m":
        spec = find_spec(argv[1])
        if spec is not None and spec.submodule_search_locations is not None:
            spec = find_spec(f"{argv[1]}.__main__")
        if spec is None or spec.origin is None:
            raise SystemExit(f"there is no module {argv[1]}")
        path, argv = spec.origin, argv[2:]
        module.__spec__, module.__package__ = spec, spec.parent
        sys.path[0] = os.getcwd()
    else:
        path, argv = argv[0], argv[1:]
        sys.path[0] = os.path.dirname(os.path.abspath(path))
    module.__file__ = path
    module.__builtins__ = __builtins__
    sys.modules["__main__"] = module
    sys.argv = [path, *argv]
    with open(path, "rb") as file:
        code = compile(file.read(), path, "exec", dont_inherit=True)
    exec(code, module.__dict__)


main(sys.argv[1:])
