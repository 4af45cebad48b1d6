"""bubblewrap in Landlock's place: on a kernel that really lacks it, with a bwrap that is real."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.integration.outside import environment

from tooli.enforce.walls import look_for_means

HERE = Path(__file__).parent
CACHE = HERE.parents[1] / ".cache" / "bubblewrap"
LANDLOCK = "444,445,446"
MEANS = look_for_means()
pytestmark = pytest.mark.skipif(bool(MEANS.missing), reason="; ".join(MEANS.missing))

APP = '''
import os, socket, subprocess
from collections.abc import Iterator
from pathlib import Path
from tooli import Context, Tooli

app = Tooli("held")
HERE = Path(__file__).parent
WORDS = [f"fs:read:{HERE}/in", f"fs:write:{HERE}/in"]


def peek(number: int) -> list[str]:
    """What is behind descriptors of whoever is above us."""
    found = []
    for owner in ("self", "1", str(os.getppid())):
        try:
            place = os.open(f"/proc/{owner}/fd/{number}", os.O_RDONLY | os.O_NONBLOCK)
            text = os.read(place, 100).decode()
            found.append(text if "secret" in text else "")
        except (OSError, ValueError):
            pass
    return found


@app.command(isolation="required", capabilities=WORDS)
def attempt(port: int) -> dict[str, str]:
    """Try what is not declared."""
    out = HERE / "out" / "secret"
    tries = {
        "read": out.read_text,
        "stat": lambda: os.stat(out),
        "list": lambda: os.listdir(HERE / "out"),
        "write": lambda: out.write_text("changed"),
        "chmod": lambda: os.chmod(out, 0o777),
        "delete": out.unlink,
        "passwd": lambda: open("/etc/passwd").read(),
        "environment": lambda: os.environ["SECRET_OF_MINE"],
        "parent": lambda: open(f"/proc/{os.getppid()}/environ").read().index("SECRET_OF_MINE"),
        "network": lambda: socket.create_connection(("127.0.0.1", port), timeout=5),
        "datagram": lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM),
        "spawn": lambda: subprocess.run(["/bin/true"]),
        "fork": os.fork,
        "sibling": lambda: [one for one in os.listdir(HERE) if one == "out"][0],
        "open": lambda: [found for n in range(3, 20) for found in peek(n) if found][0],
    }
    found = {}
    for name, work in tries.items():
        try:
            found[name] = f"done: {work()}"
        except (OSError, LookupError, ValueError) as failure:
            found[name] = type(failure).__name__
    (HERE / "in" / "made").write_text((HERE / "in" / "own").read_text())
    return found


@app.command(isolation="required")
def count(items: int, ctx: Context) -> Iterator[dict[str, int]]:
    """Give items."""
    ctx.warn("careful")
    for number in range(items):
        yield {"number": number}


@app.command(isolation="required")
def fail() -> None:
    """Fail."""
    raise FileNotFoundError("none")


@app.command(isolation="required", timeout=2)
def hang() -> None:
    """Hang."""
    while True:
        pass


if __name__ == "__main__":
    app()
'''


def bubblewrap() -> str | None:
    """The folder of a bwrap: the machine's, or Debian's package, unpacked."""
    found = shutil.which("bwrap")
    if found is not None:
        return os.path.dirname(found)
    program = CACHE / "usr" / "bin" / "bwrap"
    if not program.exists() and shutil.which("apt-get") and shutil.which("dpkg-deb"):
        CACHE.mkdir(parents=True, exist_ok=True)
        try:
            fetch = ["apt-get", "download", "bubblewrap"]
            subprocess.run(fetch, cwd=CACHE, check=True, capture_output=True, timeout=60)
            for package in CACHE.glob("*.deb"):
                subprocess.run(["dpkg-deb", "-x", str(package), str(CACHE)], check=True, timeout=60)
        except (OSError, subprocess.SubprocessError):
            return None
    return str(program.parent) if program.exists() else None


@pytest.fixture(scope="module")
def path() -> str:
    """A PATH with bwrap in it."""
    folder = bubblewrap()
    if folder is None:
        pytest.skip("there is no bubblewrap to be had")
    whole = f"{folder}:{os.environ['PATH']}"
    words = [f"{folder}/bwrap", "--ro-bind", "/", "/", "--unshare-all", "--", "/bin/true"]
    if subprocess.run(words, capture_output=True, timeout=60).returncode:
        pytest.skip("bubblewrap does not work here")
    return whole


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """The app in a file, beside what it may read and what it may not."""
    for name in ("in", "out"):
        (tmp_path / name).mkdir()
    (tmp_path / "in/own").write_text("own")
    (tmp_path / "out/secret").write_text("secret")
    file = tmp_path / "held.py"
    file.write_text(APP)
    return file


def run(script: Path, path: str, *words: str) -> tuple[int, bytes]:
    """Run the app where the kernel has no Landlock."""
    program = [sys.executable, str(HERE / "hiding.py"), LANDLOCK, str(script), *words]
    state = str(script.parent / "state")
    env = environment(PATH=path, TOOLI_STATE_DIR=state, SECRET_OF_MINE="told")
    with open(script.parent / "out/secret") as inherited:
        more: Any = {"env": env, "cwd": script.parent, "pass_fds": [inherited.fileno()]}
        done = subprocess.run(program, capture_output=True, timeout=120, **more)
    return done.returncode, done.stdout


def test_nothing_outside_is_there(script: Path, path: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
        code, out = run(script, path, "attempt", port, "--json")
    answer: dict[str, Any] = json.loads(out)
    assert code == 0, answer
    assert answer["meta"]["enforcement"] == "bwrap"
    assert not {name: said for name, said in answer["result"].items() if said.startswith("done")}
    assert len(answer["result"]) == 15
    assert (script.parent / "out/secret").read_text() == "secret"
    assert (script.parent / "out/secret").stat().st_mode & 0o777 != 0o777
    assert (script.parent / "in/made").read_text() == "own"


def test_items_and_warnings_come_out(script: Path, path: str) -> None:
    code, out = run(script, path, "count", "2", "--json")
    answer = json.loads(out)
    assert (code, answer["result"]) == (0, [{"number": 0}, {"number": 1}])
    assert answer["meta"]["warnings"] == ["careful"]
    code, out = run(script, path, "count", "2", "--jsonl")
    assert (code, out) == (0, b'{"number":0}\n{"number":1}\n')


def test_a_failure_is_the_same_failure(script: Path, path: str) -> None:
    code, out = run(script, path, "fail", "--json")
    assert (code, json.loads(out)["error"]["code"]) == (10, "E3010")


def test_a_deadline_ends_it(script: Path, path: str) -> None:
    code, out = run(script, path, "hang", "--json")
    assert (code, json.loads(out)["error"]["code"]) == (50, "E4050")


def test_an_app_that_cannot_be_loaded_again_is_refused(script: Path, path: str) -> None:
    text = APP.replace('app = Tooli("held")', 'hidden = [Tooli("held")]')
    text = text.replace("@app.", "@hidden[0].").replace("    app()", "    hidden[0]()")
    script.write_text(text)
    code, out = run(script, path, "fail", "--json")
    assert (code, json.loads(out)["error"]["code"]) == (30, "E2006")
