"""Start a new Python interpreter in a folder that is not trusted.

With `python -c` and `python -m`, the current folder is the first entry of `sys.path`, so a file
`tooli.py` in a cloned repository would be imported instead of tooli. Option `-P` does not exist in
Python 3.10.
"""

from __future__ import annotations

import os
import sys

_PACKAGE_PARENT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def isolated_argv(code: str) -> list[str]:
    """Return a command line that runs `code`, which can import tooli and what tooli needs.

    The interpreter ignores `PYTHON…` variables. Its modules come from its own installation, from
    the folder that contains this tooli, and then from the other folders of `sys.path` without the
    current one.
    """
    current = os.path.realpath(os.curdir)
    others = [
        entry for entry in sys.path if os.path.isabs(entry) and os.path.realpath(entry) != current
    ]
    set_path = (
        f"import sys; first = {_PACKAGE_PARENT!r}; "
        "sys.path[:0] = [] if first in sys.path else [first]; "
        f"sys.path += [entry for entry in {others!r} if entry not in sys.path]; "
    )
    utf8 = ["-X", "utf8"] if sys.flags.utf8_mode else []
    return [sys.executable, "-I", *utf8, "-c", set_path + code]


def module_argv(module: str, folder: str | None = None) -> tuple[str, ...]:
    """Return a command line that runs a module like `python -m`, without the current folder.

    `folder` contains the module. It is None if the interpreter finds the module by itself.
    """
    if folder is None and sys.version_info >= (3, 11):
        return (sys.executable, "-P", "-m", module)
    first = [] if folder is None else [folder]
    code = (
        f"import sys; sys.path[:] = {first!r} + [entry for entry in sys.path if entry]; "
        f"import runpy; runpy.run_module({module!r}, run_name='__main__', alter_sys=True)"
    )
    return (sys.executable, "-c", code)
