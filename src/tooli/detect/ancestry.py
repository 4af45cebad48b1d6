"""Who is calling, looked for outside the environment: processes above this one, files around it.

Only `detect-context --deep` and `detect_execution_context(deep=True)` come here: it opens files,
and where there is no /proc it starts `ps`.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterator

PROGRAMS: dict[str, str] = {
    "claude": "claude-code",
    "codex": "codex",
    "gemini": "gemini-cli",
    "qwen": "qwen-code",
    "copilot": "copilot-cli",
    "opencode": "opencode",
    "cursor-agent": "cursor",
    "amp": "amp",
    "goose": "goose",
    "goosed": "goose",
    "crush": "crush",
    "auggie": "auggie",
    "kilo": "kilo",
    "kimi": "kimi-code",
    "aider": "aider",
    "cline": "cline",
    "openhands": "openhands",
}
"""Agents by the name of their process, or of the script that an interpreter runs."""

PACKAGES: dict[str, str] = {
    "@anthropic-ai/claude-code": "claude-code",
    "@openai/codex": "codex",
    "@google/gemini-cli": "gemini-cli",
    "@qwen-code/qwen-code": "qwen-code",
    "@github/copilot": "copilot-cli",
    "opencode-ai": "opencode",
    "@sourcegraph/amp": "amp",
    "@augmentcode/auggie": "auggie",
}
"""Agents by the package that their script comes from."""

FILES: tuple[tuple[str, str], ...] = (("docker", ".dockerenv"), ("podman", "run/.containerenv"))
GROUPS: tuple[tuple[str, str], ...] = (
    ("kubernetes", "kubepods"),
    ("docker", "docker"),
    ("containerd", "containerd"),
    ("podman", "libpod"),
    ("lxc", "/lxc"),
)
"""Containers by the control group of the first process."""

HIGHEST = 32
"""How many processes above this one are looked at."""


def agents(root: str = "/", pid: int | None = None) -> list[tuple[str, str]]:
    """Agents among the processes above this one, and those that live in a machine of their own."""
    found: list[tuple[str, str]] = []
    for number, words in lineage(root, os.getppid() if pid is None else pid):
        name = agent_of(words)
        if name is not None and name not in [one for one, _ in found]:
            found.append((name, f"process {number} is {os.path.basename(words[0])}"))
    if os.path.exists(os.path.join(root, "opt", ".devin")):
        found.append(("devin", "there is /opt/.devin"))
    return found


def containers(root: str = "/") -> list[tuple[str, str]]:
    """Containers, by the files that they leave in every file system of theirs."""
    found = [
        (name, f"there is /{path}")
        for name, path in FILES
        if os.path.exists(os.path.join(root, *path.split("/")))
    ]
    group = _text(os.path.join(root, "proc", "1", "cgroup"))
    found += [(name, f"/proc/1/cgroup names {word}") for name, word in GROUPS if word in group]
    return found


def agent_of(words: list[str]) -> str | None:
    """The agent that a process is, by the first words of its command line."""
    for word in words[:2]:  # the program, and the script where the program is an interpreter
        path = word.replace("\\", "/")
        name = path.rpartition("/")[2].lower()
        for ending in (".exe", ".js", ".mjs", ".py"):
            name = name.removesuffix(ending)
        if name in PROGRAMS:
            return PROGRAMS[name]
        for package, agent in PACKAGES.items():
            if f"/{package}/" in path:
                return agent
    return None


def lineage(root: str, pid: int) -> Iterator[tuple[int, list[str]]]:
    """The processes from a number upwards: each with the words of its command line."""
    table = None if os.path.isdir(os.path.join(root, "proc", str(pid))) else _listed()
    seen: set[int] = set()
    while pid > 0 and pid not in seen and len(seen) < HIGHEST:
        seen.add(pid)
        above, words = _by_proc(root, pid) if table is None else table.get(pid, (0, []))
        if words:
            yield pid, words
        pid = above


def _by_proc(root: str, pid: int) -> tuple[int, list[str]]:
    place = os.path.join(root, "proc", str(pid))
    status = _text(os.path.join(place, "stat"))
    head, _, rest = status.rpartition(")")  # the name in the middle may hold anything
    words = [word for word in _text(os.path.join(place, "cmdline")).split("\0") if word]
    fields = rest.split()
    above = int(fields[1]) if len(fields) > 1 and fields[1].isdigit() else 0
    return above, words or [word for word in (head.partition("(")[2],) if word]


def _listed() -> dict[int, tuple[int, list[str]]]:
    """Every process as `ps` lists it; nothing where there is no `ps`."""
    import subprocess

    words = ["ps", "-A", "-o", "pid=,ppid=,command="]
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=5, check=False)
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return {}
    found: dict[int, tuple[int, list[str]]] = {}
    for line in done.stdout.splitlines():
        pid, above, *command = line.split()
        if pid.isdigit() and above.isdigit():
            found[int(pid)] = (int(above), command)
    return found


def _text(path: str) -> str:
    """A small file's text; nothing where it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(65536)
    except OSError:
        return ""
