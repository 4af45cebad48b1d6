"""Exports: an app's tools as code for agent frameworks, and as Python functions.

    export(portrait, "openai", "subprocess")  ─▶  {"file_tools_openai.py": "…"}

One module for each target. They share what runs a tool (`runner`), what puts a module together
(`module`) and what writes Python (`code`).
"""

from __future__ import annotations

from tooli.errors import InputError, Suggestion

TYPE_CHECKING = False

if TYPE_CHECKING:
    from tooli.views.portrait import Portrait

CALLERS = {
    "openai": "openai-agents",
    "langchain": "langchain",
    "adk": "google-adk",
    "claude": "claude-agent-sdk",
    "copilot": "copilot-sdk",
    "pydantic-ai": "pydantic-ai",
    "python": "python",
}
"""The targets, and what each of them is called where an app tells its callers apart."""


def export(
    portrait: Portrait,
    target: str,
    mode: str = "subprocess",
    *,
    command: str | None = None,
    app: str | None = None,
    model: str | None = None,
    with_tests: bool = False,
) -> dict[str, str]:
    """The files of an export, by their paths."""
    from tooli.views.export.order import Order

    if not portrait.tools:
        raise InputError(f"{portrait.name} has no commands that could be exported.")
    order = Order(
        portrait,
        target,
        mode,
        _words(portrait, command),
        _home(portrait, app) if mode == "import" else ("", ""),
        CALLERS[target],
        _again(portrait, target, mode, command, app, model, with_tests),
        model,
    )
    room = target.replace("-", "_")
    module = __import__(f"tooli.views.export.{room}", fromlist=("render",))
    files: dict[str, str] = module.render(order)
    if with_tests:
        from tooli.views.export.trial import render

        files.update(render(order))
    return dict(sorted(files.items()))


def _words(portrait: Portrait, command: str | None) -> tuple[str, ...]:
    """The words that start the program."""
    from shlex import split

    return tuple(split(command)) if command else (portrait.name,)


def _home(portrait: Portrait, app: str | None) -> tuple[str, str]:
    """The module that has the app, and its name there."""
    module, _, name = (app or portrait.home or "").partition(":")
    if name.isidentifier() and all([part.isidentifier() for part in module.split(".")]):
        return module, name
    raise InputError(
        f"{app!r} does not say where the app is: 'package.module:name'"
        if app
        else "Nobody can tell from which module the app is to be imported.",
        field="app",
        suggestion=Suggestion("fix", "Say it: --app package.module:name"),
    )


def _again(
    portrait: Portrait,
    target: str,
    mode: str,
    command: str | None,
    app: str | None,
    model: str | None,
    with_tests: bool,
) -> str:
    """The command that makes the same files."""
    from shlex import join

    said = {"--command": command, "--app": app, "--model": model}
    words = [portrait.name, "export", "--target", target, "--mode", mode]
    words += [word for flag, value in said.items() if value for word in (flag, value)]
    return join([*words, "--with-tests"] if with_tests else words)
