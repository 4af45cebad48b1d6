"""Find a program: its interpreter, how it is run, and how the reader runs it.

"pkg.mod:app"    an object of a module, in this interpreter
"exe:black"      a console script, by name
"tools/sync.py"  a script
"""

from __future__ import annotations

import os
import re
import shutil
import sys

from tooli.core import Record
from tooli.errors import DefinitionError

TYPE_CHECKING = False

if TYPE_CHECKING:
    from tooli.core.protocols import JsonObject

_OBJECT = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
_PYTHON_NAME = re.compile(r"(python|pypy)[\d.]*w?(\.exe)?$", re.IGNORECASE)
_SHELL_WRAPPER = re.compile(r"'''exec' (\"[^\"]+\"|\S+) ")
_HEAD_BYTES = 1024


class ProgramTarget(Record):
    """A program that can be read and run."""

    label: str  # how the author of the app names it
    prog: str  # the name of its tool
    python: str  # its interpreter
    options: tuple[str, ...]  # of the interpreter
    argv: tuple[str, ...]  # starts the program; its arguments follow
    request: JsonObject  # for the reader
    folders: tuple[str, ...]  # folders with its code
    files: tuple[str, ...]  # a description is out of date when one of them changes


def find_target(
    target: str, base: str, cwd: str | None, *, any_language: bool = False
) -> ProgramTarget:
    """Return the program that a target names; raise DefinitionError if there is none.

    A relative path starts at the folder `base`. `any_language` allows programs that are not in
    Python, which have no parser that can be read.
    """
    if not target:
        raise DefinitionError('a program is named by "pkg.mod:app", "exe:NAME" or a path')
    kind, colon, rest = target.partition(":")
    if colon and kind == "exe":
        return _find_script(_find_program(rest), target, any_language)
    if _OBJECT.fullmatch(target) and not os.path.exists(os.path.join(base, target)):
        return _module_target(target, cwd)
    path = os.path.join(base, os.path.expanduser(target))
    if not os.path.isfile(path):
        raise DefinitionError(
            f"{target!r} is not a program: there is no file {path}. Name an object of a module "
            'as "pkg.mod:app", an installed program as "exe:NAME", or a script by its path'
        )
    return _find_script(os.path.abspath(path), target, any_language)


def _find_program(name: str) -> str:
    """Return the path of an installed program: in the folder of this interpreter, or on PATH."""
    if os.path.dirname(name) and os.path.isfile(name):
        return os.path.abspath(name)
    entries = os.environ.get("PATH", "").split(os.pathsep)
    folders = [os.path.dirname(sys.executable), *[e for e in entries if os.path.isabs(e)]]
    found = shutil.which(name, path=os.pathsep.join(folders)) if name else None
    if found is None:
        raise DefinitionError(
            f"there is no program {name!r} in {folders[0]} or on PATH: install it, or give its path"
        )
    return os.path.abspath(found)


def _find_script(path: str, name: str, any_language: bool) -> ProgramTarget:
    """Return a script, whose first line names its interpreter, or another program."""
    try:
        with open(path, "rb") as file:
            head = file.read(_HEAD_BYTES)
    except OSError as failure:
        raise DefinitionError(f"{path} cannot be read: {failure.strerror}") from None
    prog = os.path.basename(path).removesuffix(".py").removesuffix(".exe")
    if head.startswith(b"MZ"):
        return _windows_program(path, prog, name)
    python, options = _interpreter_of(head.decode("utf-8", "replace"), path)
    if python is None and any_language and os.access(path, os.X_OK):
        return ProgramTarget(
            label=name,
            prog=prog,
            python="",
            options=(),
            argv=(path,),
            request={"kind": "other", "prog": prog},
            folders=(),
            files=(path,),
        )
    if python is None:
        raise DefinitionError(
            f"{name!r} is not a Python program: {path} does not start with the line of a Python "
            "interpreter. Only programs in Python can be read; with raw=True, one tool takes the "
            "words of the command line of a program in any language"
        )
    return ProgramTarget(
        label=name,
        prog=prog,
        python=python,
        options=tuple(options),
        argv=(python, *options, path),
        request={"kind": "script", "path": path, "prog": prog},
        folders=(os.path.dirname(path),),
        files=(path,),
    )


def _interpreter_of(head: str, path: str) -> tuple[str | None, list[str]]:
    """Return the interpreter that the first line of a script names, and its options."""
    first, _, rest = head.partition("\n")
    if not first.startswith("#!"):
        return (sys.executable, []) if path.endswith((".py", ".pyw")) else (None, [])
    words = first[2:].split()
    if words and os.path.basename(words[0]) == "env":
        words = [word for word in words[1:] if word != "-S" and "=" not in word]
        if words and not os.path.isabs(words[0]):
            words[0] = shutil.which(words[0]) or words[0]
    if words and os.path.basename(words[0]) == "sh":  # the path is too long for the first line
        wrapper = _SHELL_WRAPPER.match(rest)
        words = [wrapper[1].strip('"')] if wrapper else words
    if not words or not _PYTHON_NAME.match(os.path.basename(words[0])):
        return None, []
    if not os.path.isfile(words[0]):
        raise DefinitionError(
            f"the interpreter of {path} does not exist: {words[0]}. Install the program again"
        )
    return words[0], words[1:]


def _windows_program(path: str, prog: str, name: str) -> ProgramTarget:
    """Return an .exe file that pip has made. Its package names the function that it calls."""
    folder = os.path.dirname(path)
    candidates = [
        os.path.join(parent, "python.exe") for parent in (folder, os.path.dirname(folder))
    ]
    found = [candidate for candidate in candidates if os.path.isfile(candidate)]
    if not found:
        raise DefinitionError(f"{path} is not a Python program: there is no python.exe beside it")
    return ProgramTarget(
        label=name,
        prog=prog,
        python=found[0],
        options=(),
        argv=(path,),
        request={"kind": "entry_point", "name": prog, "prog": prog},
        folders=(),
        files=(path,),
    )


def _module_target(target: str, cwd: str | None) -> ProgramTarget:
    """Return an object of a module, which this interpreter can import."""
    module, _, attribute = target.partition(":")
    entries = [os.path.abspath(entry or cwd or os.curdir) for entry in sys.path]
    folders = list(dict.fromkeys([entry for entry in entries if os.path.exists(entry)]))
    prog = module.rpartition(".")[2].strip("_") or module
    if prog in ("main", "cli", "app") and "." in module:
        prog = module.split(".")[-2]
    code = (
        f"import sys; sys.argv[0] = {prog!r}; sys.path[:1] = []; "
        f"sys.path[:0] = [entry for entry in {folders!r} if entry not in sys.path]; "
        f"from importlib import import_module; from operator import attrgetter; "
        f"sys.exit(attrgetter({attribute!r})(import_module({module!r}))())"
    )
    return ProgramTarget(
        label=target,
        prog=prog,
        python=sys.executable,
        options=(),
        argv=(sys.executable, "-c", code),
        request={
            "kind": "module",
            "module": module,
            "attribute": attribute,
            "prog": prog,
            "sys_path": folders,
        },
        folders=tuple(folders),
        files=(),
    )
