"""Attempts of a script to reach something other than its tools.

Each runs twice: as any script, and without the checks that come first, so that the sandbox alone
has to hold. An attempt may fail or return anything, but it must not reach the canaries.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tooli import Tooli
from tooli.annotations import ReadOnly
from tooli.orchestrate import run_tool, script_check
from tooli.orchestrate.sandbox import SandboxLimits

pytest.importorskip("pydantic_monty", reason="pydantic-monty has no wheel for this platform")

CANARY = "c4n4ry-91f2"

ATTEMPTS = {
    # the interpreter
    "bases": "().__class__.__bases__[0].__subclasses__()",
    "mro": "[].__class__.__mro__[1].__subclasses__()",
    "type of type": "type(type(1)).__subclasses__(type)",
    "globals of a tool": "allowed.__globals__",
    "code of a tool": "allowed.__code__.co_consts",
    "closure of a tool": "allowed.__closure__[0].cell_contents",
    "wrapped tool": "allowed.__wrapped__",
    "self of a tool": "allowed.__self__",
    "globals of a function": "def f(): pass\nf.__globals__['__builtins__']",
    "frame of an exception": (
        "try:\n    1 / 0\nexcept Exception as e:\n    f = e.__traceback__.tb_frame\n"
        "f.f_back.f_globals"
    ),
    "generator frame": "(x for x in [1]).gi_frame.f_back.f_globals",
    "coroutine frame": "c = allowed()\nc.cr_frame.f_globals",
    "builtins name": "__builtins__['open']('{canary}').read()",
    "builtins module": "import builtins\nbuiltins.open('{canary}').read()",
    "loader": "__loader__.load_module('os').system('cat {canary}')",
    "spec": "__spec__.loader",
    "import function": "__import__('os').system('touch {planted}')",
    "getattr": "getattr(getattr((), '__class__'), '__base__')",
    "format string": "'{0.__class__.__mro__}'.format(1)",
    "format of a tool": "'{0.__globals__}'.format(allowed)",
    "f-string": "f'{allowed.__globals__}'",
    "percent format": "'%(x)s' % {'x': allowed.__globals__}",
    "eval": "eval(\"__import__('os').listdir('/')\")",
    "exec": "exec(\"import os\\nx = os.listdir('{folder}')\")\nx",
    "eval calls a tool": "await eval('outside()')",
    "exec calls a tool": "exec('outside()')",
    "compile": "eval(compile('1', 'x', 'eval'))",
    "globals": "globals()['outside']()",
    "locals": "locals()['outside']()",
    "vars": "vars(allowed)",
    "breakpoint": "breakpoint()",
    "help": "help('modules')",
    "class dict": "class A:\n    pass\nA.__dict__",
    "class with a base": "class A(object):\n    def __reduce__(self):\n        return eval\nA()",
    "metaclass": "class A(metaclass=type):\n    pass\nA",
    "decorator": "@eval\ndef f():\n    return 'outside()'\nf",
    # modules
    "os.system": "import os\nos.system('touch {planted}')",
    "os.popen": "import os\nos.popen('cat {canary}').read()",
    "os.environ": "import os\nstr(dict(os.environ))",
    "os.getenv": "import os\nos.getenv('CANARY')",
    "os.fork": "import os\nos.fork()",
    "os.open": "import os\nos.open('{canary}', 0)",
    "os.listdir": "import os\nos.listdir('{folder}')",
    "os.scandir": "import os\n[e.name for e in os.scandir('{folder}')]",
    "os.path.exists": "import os\nassert not os.path.exists('{canary}')",
    "os.remove": "import os\nos.remove('{canary}')",
    "os.mkdir": "import os\nos.mkdir('{planted}')",
    "os.path.os": "import os\nos.path.os.system('id')",
    "subprocess": "import subprocess\nsubprocess.run(['touch', '{planted}'])",
    "socket": "import socket\nsocket.create_connection(('127.0.0.1', 1))",
    "urllib": "import urllib.request\nurllib.request.urlopen('file://{canary}').read()",
    "ctypes": "import ctypes\nctypes.CDLL(None).system(b'touch {planted}')",
    "sys.modules": "import sys\nsys.modules['os'].listdir('/')",
    "sys._getframe": "import sys\nsys._getframe(1).f_globals",
    "sys.stdin": "import sys\nsys.stdin.read()",
    "importlib": "import importlib\nimportlib.import_module('os').listdir('/')",
    "pickle": "import pickle\npickle.loads(b'cos\\nsystem\\n(S\"touch {planted}\"\\ntR.')",
    "marshal": "import marshal\nmarshal.loads(b'')",
    "inspect": "import inspect\ninspect.currentframe().f_back.f_globals",
    "gc": "import gc\ngc.get_objects()",
    "threading": "import threading\nthreading.main_thread()",
    "multiprocessing": "import multiprocessing\nmultiprocessing.Process().start()",
    "pydantic_monty": "import pydantic_monty\npydantic_monty.Monty()",
    "tooli": "import tooli\ntooli.Tooli('x')",
    "app module": "import __main__\n__main__.app",
    "asyncio process": "import asyncio\nawait asyncio.create_subprocess_shell('touch {planted}')",
    "asyncio loop": "import asyncio\nasyncio.get_event_loop()._selector",
    "random state": "import random\nrandom._os.system('touch {planted}')",
    "json module": "import json\njson.decoder.scanner.re.sys.modules['os']",
    "collections module": "import collections\ncollections._sys.modules['os'].listdir('/')",
    "typing module": "import typing\ntyping.sys.modules['os'].listdir('/')",
    "dataclasses": (
        "from dataclasses import make_dataclass\n"
        "make_dataclass('A', ['x=__import__(\"os\").system(\"touch {planted}\")'])"
    ),
    "re": "import re\nre.sub('a', '\\\\g<0>' * 9, 'a' * 99)",
    # files
    "open": "open('{canary}').read()",
    "open for writing": "open('{planted}', 'w').write('x')",
    "open of a descriptor": "open(0).read()",
    "pathlib": "from pathlib import Path\nPath('{canary}').read_text()",
    "pathlib write": "from pathlib import Path\nPath('{planted}').write_text('x')",
    "pathlib glob": "from pathlib import Path\n[str(p) for p in Path('{folder}').iterdir()]",
    "pathlib symlink": "from pathlib import Path\nPath('{planted}').symlink_to('{canary}')",
    "proc environ": "open('/proc/self/environ').read()",
    "proc parent": "import os\nopen('/proc/' + str(os.getppid()) + '/environ').read()",
    "relative path": "open('../../../../../../{canary}').read()",
    "tomllib": "import tomllib\ntomllib.load(open('{canary}', 'rb'))",
    "csv": "import csv\nlist(csv.reader(open('{canary}')))",
    "chdir": "import os\nos.chdir('{folder}')\nopen('canary.txt').read()",
    # tools
    "tool outside of the list": "await outside()",
    "tool by attribute": "await allowed.outside()",
    "name of the barrier": "tool_x = tooli_start_\ntool_x()\nawait outside()",
    "renamed function": "def outside2():\n    return outside\nawait outside2()()",
    "renamed tool": "allowed.__name__ = 'outside'\nawait allowed()",
    "name with a null": "await allowed(**{'name\\x00': 'x'})",
    "option as an argument": "await allowed(yes=True, dry_run=False, caller='x')",
    "unpacked option": "o: dict = {'tooli_yes': True}\nawait allowed(**o)",
    "secret file": "await allowed(name='@{canary}')",
    "secret of the environment": "await allowed(name='env:CANARY')",
    "nested script": "await orchestrate_run(file='-')",
    "built-in command": "await audit()",
    "os function name": "await import_stubs()",
    # values
    "awaitable object": "class A:\n    def __await__(self):\n        return outside\nawait A()",
    "string subclass": "class S(str):\n    pass\nawait allowed(name=S('x'))",
    "hostile keys": "{'__class__': 1, '__proto__': 2, 'constructor': 3}",
    "lone surrogate": "'\\ud800'",
    "many nulls": "'\\x00' * 1000",
    "class proxy": "class A:\n    pass\nx: list = [A()]\nawait allowed(name=x)",
}


@pytest.fixture
def outside_ran() -> list[str]:
    return []


@pytest.fixture
def app(outside_ran: list[str]) -> Tooli:
    app = Tooli("guarded")

    @app.command(annotations=ReadOnly)
    def allowed(name: str = "") -> str:
        """The only tool of the script."""
        return f"called with {name}"

    @app.command(annotations=ReadOnly)
    def outside() -> str:
        """A tool that the script may not call."""
        outside_ran.append("outside")
        return CANARY

    return app


@pytest.fixture(params=["checked", "unchecked"])
def is_checked(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    if request.param == "unchecked":
        monkeypatch.setattr(script_check, "read_diagnostics", lambda *_: [])
        monkeypatch.setattr(script_check, "find_unsupported", lambda *_: [])
    return request.param == "checked"


@pytest.mark.parametrize("name", ATTEMPTS)
@pytest.mark.usefixtures("is_checked")
def test_script_reaches_only_its_tools(
    name: str,
    app: Tooli,
    outside_ran: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    canary, planted = tmp_path / "canary.txt", tmp_path / "planted"
    canary.write_text(CANARY)
    monkeypatch.setenv("CANARY", CANARY)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(run_tool, "DEFAULT_LIMITS", SandboxLimits(seconds=2, turn_seconds=1))
    source = ATTEMPTS[name]
    for mark, value in (("canary", canary), ("planted", planted), ("folder", tmp_path)):
        source = source.replace(f"{{{mark}}}", str(value))
    before = dict(os.environ)
    done = app.orchestrate(source, tools=["allowed"])
    answer = done.model_dump_json()
    assert CANARY not in answer
    assert "planted" not in [path.name for path in tmp_path.iterdir()]
    assert canary.read_text() == CANARY
    assert outside_ran == []
    assert dict(os.environ) == before
    assert "Traceback (most recent" not in answer
    assert done.error is None or done.error.category != "internal", answer


def test_there_are_enough_attempts() -> None:
    assert len(ATTEMPTS) >= 100
