"""file-tools: a small app that uses most of what tooli has.

    find-files   returns a list of records, warns, and raises an error with a suggestion
    search       a stream: yields each match as soon as it is found
    checksum     async, with a progress bar
    rename       has a pydantic model as a parameter, and is loaded only when it is called
    delete       destructive: needs --yes, and --dry-run returns a plan

Run it: python examples/file_tools/app.py --help
"""

import os
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Literal, TypedDict

from tooli import (
    Annotated,
    Argument,
    Context,
    NotFoundError,
    Option,
    Suggestion,
    Tooli,
    dry_run_support,
    record_dry_action,
)
from tooli.annotations import Destructive, Idempotent, ReadOnly

app = Tooli("file-tools", description="Find, read and tidy files.", version="1.0.0")

Folder = Annotated[Path, Option(exists=True, file_okay=False)]
Files = Annotated[list[Path], Argument(exists=True, dir_okay=False)]


class File(TypedDict):
    """A file and how many bytes it has."""

    path: str
    size: int


class Match(TypedDict):
    """A line that contains the text."""

    path: str
    line: int
    text: str


class Checksum(TypedDict):
    """A file and its digest."""

    path: str
    digest: str


@app.command(
    annotations=ReadOnly | Idempotent,
    examples=[{"args": ["*.py", "--root", "src"], "description": "Every Python file below src"}],
    error_codes={"E3001": "no file matches the pattern"},
    capabilities=["fs:read"],
    handoffs=[
        {"command": "checksum", "when": "to compare files"},
        {"command": "delete", "when": "to delete the files that were found"},
    ],
)
def find_files(
    ctx: Context,
    pattern: str,
    root: Folder = Path("."),
    max_depth: Annotated[int, Option(min=1, max=100)] = 10,
    include_hidden: bool = False,
) -> list[File]:
    """Find files by name in a folder and its subfolders.

    Args:
        pattern: Glob for the file's name, such as '*.py'.
        root: Folder to start in.
        max_depth: Levels of folders to search; 1 searches the root only.
        include_hidden: Include files and folders whose names start with a dot.

    Raises:
        NotFoundError: No file matches.
    """
    found: list[File] = []
    endings: dict[str, int] = {}
    for path in walk(ctx, root, max_depth, include_hidden):
        endings[path.suffix] = endings.get(path.suffix, 0) + 1
        if fnmatch(path.name, pattern):
            found.append({"path": path.as_posix(), "size": path.stat().st_size})
    if not found:
        raise nothing_matched(ctx, pattern, root, endings)
    return found


@app.command(
    annotations=ReadOnly | Idempotent,
    examples=[{"args": ["TODO", "--pattern", "*.py"], "description": "Open tasks in Python code"}],
    capabilities=["fs:read"],
)
def search(
    ctx: Context,
    text: str,
    pattern: str = "*",
    root: Folder = Path("."),
    ignore_case: bool = False,
) -> Iterator[Match]:
    """Find lines that contain a text.

    Args:
        text: Text to search for.
        pattern: Glob for the names of the files to read.
        root: Folder to start in.
        ignore_case: Ignore the difference between upper and lower case.
    """
    wanted = text.casefold() if ignore_case else text
    for path in walk(ctx, root):
        if not fnmatch(path.name, pattern):
            continue
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except UnicodeDecodeError:
            ctx.log(f"{path.as_posix()} is not text")
            continue
        for number, line in enumerate(lines, 1):
            if wanted in (line.casefold() if ignore_case else line):
                yield {"path": path.as_posix(), "line": number, "text": line.strip()}


@app.command(
    annotations=ReadOnly | Idempotent,
    examples=[{"args": ["app.py", "data.csv"], "description": "The digests of two files"}],
    capabilities=["fs:read"],
)
async def checksum(
    ctx: Context,
    files: Files,
    algorithm: Literal["sha256", "sha1", "md5", "blake2b"] = "sha256",
) -> list[Checksum]:
    """Compute the digests of files.

    Args:
        files: The files to read.
        algorithm: Hash algorithm.
    """
    import asyncio
    from hashlib import new

    def digest(path: Path) -> Checksum:
        return {"path": path.as_posix(), "digest": new(algorithm, path.read_bytes()).hexdigest()}

    jobs = [asyncio.create_task(asyncio.to_thread(digest, path)) for path in files]
    for job in ctx.progress(asyncio.as_completed(jobs), total=len(jobs), label="reading"):
        await job
    return [job.result() for job in jobs]


# rename needs pydantic, which takes longer to load than the rest of the app takes to run.
# The prefix depends on how the app is started: as a package or as a script.
app.lazy_command(
    f"{__package__}.renaming:rename" if __package__ else "renaming:rename",
    examples=[
        {
            "args": ["--rule.match", "*.txt", "--rule.ending", ".md"],
            "description": "Turn .txt files into .md files",
        },
        {"args": ["--rule", "@rule.json"], "description": "Take the rule from a file"},
    ],
    error_codes={"E3001": "no file matches the rule", "E3020": "a new name is taken"},
    capabilities=["fs:read", "fs:write", "fs:delete"],
)


@app.command(
    annotations=Destructive,
    examples=[{"args": ["old.log", "--yes"], "description": "Delete one file"}],
    capabilities=["fs:read", "fs:delete"],
)
@dry_run_support
def delete(files: Files) -> list[File]:
    """Delete files and return what was deleted.

    Args:
        files: The files to delete. If one of them is missing, none is deleted.
    """
    gone: list[File] = [{"path": path.as_posix(), "size": path.stat().st_size} for path in files]
    for path, file in zip(files, gone, strict=True):
        if not record_dry_action("delete", path, details={"size": file["size"]}, state=path):
            path.unlink()
    return gone


def walk(
    ctx: Context, root: Path, max_depth: int = 100, include_hidden: bool = False
) -> Iterator[Path]:
    """Yield the files below a folder in order; warn of folders that cannot be read."""
    for place, folders, names in os.walk(root, onerror=lambda fault: ctx.warn(str(fault))):
        here = Path(place)
        if not include_hidden:
            folders[:] = [name for name in folders if not name.startswith(".")]
            names = [name for name in names if not name.startswith(".")]
        folders.sort()
        if folders and len(here.relative_to(root).parts) + 1 >= max_depth:
            ctx.warn(f"Folders below {here.as_posix()} were not searched (--max-depth {max_depth})")
            folders.clear()
        yield from (here / name for name in sorted(names))


def nothing_matched(
    ctx: Context, pattern: str, root: Path, endings: dict[str, int]
) -> NotFoundError:
    """Return the error for an empty result, with a pattern that finds files."""
    suggestion = None
    common = sorted(filter(None, endings), key=lambda ending: (-endings[ending], ending))
    if common:
        better = f"*{common[0]}"
        program = ctx.caller.prog or ("file-tools",)
        suggestion = Suggestion(
            "retry_with_modified_input",
            f"There are {', '.join(common[:5])} files. Try {better!r}.",
            argv=[*program, "find-files", better, "--root", root.as_posix()],
        )
    return NotFoundError(
        f"No file in {root.as_posix()} matches {pattern!r}.",
        code="E3001",
        field="pattern",
        suggestion=suggestion,
        is_retryable=True,
        details={"pattern": pattern, "root": root.as_posix(), "endings": common},
    )


if __name__ == "__main__":
    app()
