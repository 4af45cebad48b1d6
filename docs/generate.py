"""Write what is generated in the documents: run `make docs`, or `python -m docs.generate`.

docs/errors.md, docs/callers.md, docs/safety.md, the table of options in README.md and
src/tooli/core/_hot_tables.py come from tables in the source, docs/evasions.md
from attempts that are made while it is written (on Linux; it takes a minute). The console blocks
of README.md and of some of the pages are played, and their output is put in place. Tests check
that all of it is current.
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from docs.evading import PAGE as EVASIONS
from docs.evading import evasions_page
from docs.hot_tables import hot_tables_source
from docs.option_table import with_option_table
from docs.safety import safety_page
from docs.surroundings import callers_page
from docs.transcript import play

from tooli import errors
from tooli.core.output_modes import MODE_TABLE

ROOT = Path(__file__).resolve().parent.parent
ERRORS = ROOT / "docs" / "errors.md"
CALLERS = ROOT / "docs" / "callers.md"
SAFETY = ROOT / "docs" / "safety.md"
HOT_TABLES = ROOT / "src" / "tooli" / "core" / "_hot_tables.py"
_PAGES = (
    *("typer.md", "serving.md", "installing.md", "output.md", "inputs.md", "budget.md"),
    *("deadlines.md", "plans.md", "auth.md", "stages.md"),
)
README = ROOT / "README.md"
PLAYED = (
    README,
    *(ROOT / "docs" / name for name in _PAGES),
)

_PAGE = """\
# Errors and exit codes

Generated from `tooli.errors` by `make docs`; do not edit.

An error has a code, and the code decides the exit code of the process. In `json` and `jsonl`
mode the error is also on stdout, as the `error` of the envelope; in the text modes it is on
stderr.

## The tree

Raise one of these in a tool, or catch them around `unwrap()`. The columns are the default
code, the category, the exit code and what it means.

```text
{tree}
```

`DefinitionError` is a `TypeError` outside the tree. It tells a developer that an app or one of
its commands is defined incorrectly, and names the file and line.

## Exit codes

| exit code | meaning |
| --- | --- |
{exits}

A command that ends itself (`typer.Exit(3)`, `sys.exit(3)`) keeps its own exit code. A closed
pipe, as in `| head -1`, ends a program quietly.

## Codes

The class is the one to catch. Whether a retry makes sense is not in the table, as an error says
so itself: `is_retryable`.

| code | class | exit code | HTTP status | meaning |
| --- | --- | --- | --- | --- |
{codes}

## Codes of your own

Any other code is yours. It takes category and exit code from the class that it is raised with:

```python
raise NotFoundError(
    "No file matches '*.rs'.",
    code="E3001",
    field="pattern",
    suggestion=Suggestion(
        "retry_with_modified_input",
        "There are .py files. Try '*.py'.",
        argv=["file-tools", "find-files", "*.py"],
    ),
    details={{"pattern": "*.rs"}},
)
```

Announce it with `@app.command(error_codes={{"E3001": "no file matches"}})`, so that it stands in
`--schema` and `--help-agent`. The first digit names the family: 1 input, 2 permission, 3 state,
4 running, 5 a bug.

A suggestion says what to do about it:

- `action`: one of {actions};
- `fix`: the same in words;
- `argv`: the whole command that would work, as a list of words, where one can be named;
- `example`: the same as one line;
- `applicability`: how far it can be trusted, one of {applicability}.

## Exceptions that are not errors of the tree

In the machine modes, in `plain` mode and in Python, they become one. In `text` mode, which is
also what a person at a terminal gets, they are shown as Typer shows them: with a traceback and
exit code 1.

| raised in a tool | becomes |
| --- | --- |
| `FileNotFoundError` | `NotFoundError` |
| `FileExistsError` | `ConflictError` |
| `PermissionError` | `AuthError`, E2030 |
| `TimeoutError` | `TimeoutExceeded` |
| `ConnectionError` | `DependencyError` |
| `typer.BadParameter` and other usage errors | `InputError`, E1003 |
| `typer.Exit(n)`, `sys.exit(n)`, `typer.Abort` | E4001 with that exit code; 0 is a success |
| anything else | `InternalError`, E5000 |
"""


def errors_page() -> str:
    """docs/errors.md, from the tables."""
    drawing = (errors.__doc__ or "").partition("\n\n")[2].partition("\n\n")[0]
    tree = "\n".join(line[4:] for line in drawing.splitlines())
    exits = [f"| {code} | {meaning} |" for code, meaning in errors.EXIT_CODES.items()]
    codes = [
        f"| {code} | `{class_of_code(code).__name__}` | {exit_code} | {status} | {meaning} |"
        for code, (meaning, exit_code, status) in errors.ERROR_CODES.items()
    ]
    return _PAGE.format(
        tree=tree,
        exits="\n".join(exits),
        codes="\n".join(codes),
        actions=", ".join(f"`{action}`" for action in errors.SUGGESTION_ACTIONS),
        applicability=", ".join(f"`{word}`" for word in errors.APPLICABILITY_LEVELS),
    )


def class_of_code(code: str) -> type[errors.ToolError]:
    """The class that has the code as its own, or else the head of its family."""
    known: list[type[errors.ToolError]] = errors.ToolError.__subclasses__()
    for kind in known:
        known.extend(kind.__subclasses__())
    own = {kind.default_code: kind for kind in reversed(known)}
    return own.get(code) or own[f"{code[:2]}000"]


def played(page: Path) -> str:
    """A page with the current tables and the current output of its commands."""
    text = with_output_modes(page.read_text(encoding="utf-8"))
    with TemporaryDirectory() as folder:
        return play(text, Path(folder).resolve())


_MODES_BEGIN = "<!-- output modes: written by make docs -->\n"
_MODES_END = "<!-- end of output modes -->\n"


def with_output_modes(text: str) -> str:
    """Return a page with the table of output modes between its markers, if it has any."""
    before, begin, rest = text.partition(_MODES_BEGIN)
    _, end, after = rest.partition(_MODES_END)
    return f"{before}{begin}{output_modes_table()}{end}{after}" if end else text


def output_modes_table() -> str:
    """Return `tooli.core.output_modes` as a Markdown table."""
    rows = ["| mode | flag | description |", "| --- | --- | --- |"]
    for mode in MODE_TABLE:
        flag = f"`{mode.flag}`" if mode.renderer else ""
        rows.append(f"| `{mode.name}` | {flag} | {mode.summary} |".replace("|  |", "| |"))
    return "\n".join(rows) + "\n"


def main() -> int:
    """Write everything."""
    HOT_TABLES.write_text(hot_tables_source(), encoding="utf-8")
    ERRORS.write_text(errors_page(), encoding="utf-8")
    CALLERS.write_text(callers_page(), encoding="utf-8")
    if sys.platform == "linux":
        EVASIONS.write_text(evasions_page(), encoding="utf-8")
    SAFETY.write_text(safety_page(), encoding="utf-8")
    README.write_text(with_option_table(README.read_text(encoding="utf-8")), encoding="utf-8")
    for page in PLAYED:
        page.write_text(played(page), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
