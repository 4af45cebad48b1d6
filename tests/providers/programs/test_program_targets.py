from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.providers.programs.sample_programs import write

from tooli.errors import DefinitionError
from tooli.providers.programs.program_targets import find_target

pytestmark = pytest.mark.skipif(os.name == "nt", reason="scripts of POSIX")


def test_scripts(tmp_path: Path) -> None:
    script = write(tmp_path / "tool", f"#!{sys.executable} -E -s\nprint(1)")
    target = find_target("tool", str(tmp_path), None)
    assert target.argv == (sys.executable, "-E", "-s", str(script))
    assert (target.prog, target.request["kind"]) == ("tool", "script")
    plain = write(tmp_path / "plain.py", "print(1)")
    assert find_target(str(plain), "/", None).argv == (sys.executable, str(plain))
    assert find_target("plain.py", str(tmp_path), None).prog == "plain"


def test_first_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    python = tmp_path / "bin" / "python3"
    python.symlink_to(sys.executable)
    monkeypatch.setenv("PATH", f"relative{os.pathsep}{tmp_path / 'bin'}")
    for line in ("#!/usr/bin/env python3", "#!/usr/bin/env -S A=1 python3 -s"):
        write(tmp_path / "tool", f"{line}\n")
        assert find_target("tool", str(tmp_path), None).python == str(python)
    wrapper = f"#!/bin/sh\n'''exec' \"{python}\" \"$0\" \"$@\"\n' '''\nimport sys"
    write(tmp_path / "tool", wrapper)
    assert find_target("tool", str(tmp_path), None).python == str(python)
    write(tmp_path / "tool", f"#!{tmp_path}/gone/python3\n")
    with pytest.raises(DefinitionError, match=r"does not exist: .*gone/python3"):
        find_target("tool", str(tmp_path), None)
    for text in ("#!/bin/sh\necho", "\x7fELF", "", "#!\n"):
        write(tmp_path / "tool", text)
        with pytest.raises(DefinitionError, match="is not a Python program"):
            find_target("tool", str(tmp_path), None)


def test_installed_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = write(tmp_path / "desk-tool", f"#!{sys.executable}\n")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_target("exe:desk-tool", "/", None).argv[-1] == str(script)
    assert find_target(f"exe:{script}", "/", None).argv[-1] == str(script)
    own = find_target("exe:pytest", "/", None)  # beside this interpreter
    assert os.path.dirname(own.argv[-1]) == os.path.dirname(sys.executable)
    for name in ("no-such-program", ""):
        with pytest.raises(DefinitionError, match="there is no program"):
            find_target(f"exe:{name}", "/", None)


def test_objects_of_modules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "shopping").mkdir()
    write(tmp_path / "shopping" / "__init__.py", "")
    write(tmp_path / "shopping" / "cli.py", "import sys\nclass A:\n  run = lambda: sys.argv[1:]")
    monkeypatch.syspath_prepend(str(tmp_path))
    target = find_target("shopping.cli:A.run", "/", None)
    assert target.prog == "shopping" and str(tmp_path) in target.folders
    done = subprocess.run([*target.argv, "a", "-b"], capture_output=True, text=True)
    assert done.stderr == "['a', '-b']\n"  # sys.exit() prints what the function returns


def test_windows_programs(tmp_path: Path) -> None:
    program = tmp_path / "tool.exe"
    program.write_bytes(b"MZ\x90")
    with pytest.raises(DefinitionError, match=r"no python\.exe beside it"):
        find_target("tool.exe", str(tmp_path), None)
    (tmp_path / "python.exe").touch()
    target = find_target("tool.exe", str(tmp_path), None)
    assert target.python == str(tmp_path / "python.exe")
    assert target.argv == (str(program),)
    assert target.request == {"kind": "entry_point", "name": "tool", "prog": "tool"}


def test_what_is_not_a_program(tmp_path: Path) -> None:
    for name in ("nope.py", "a b:c", "mod:", ":app"):
        with pytest.raises(DefinitionError, match="is not a program: there is no file"):
            find_target(name, str(tmp_path), None)
    with pytest.raises(DefinitionError, match="is named by"):
        find_target("", str(tmp_path), None)
