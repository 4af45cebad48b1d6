"""Write Markdown: blocks, code, lists and tables."""

from __future__ import annotations

from tooli.core.docstring import sanitize_doc_text

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def join_blocks(*blocks: str | Iterable[str]) -> str:
    """Join blocks with blank lines between them; empty blocks are left out."""
    flattened: list[str] = []
    for block in blocks:
        flattened += [block] if isinstance(block, str) else block
    cleaned = [sanitize_doc_text(block).strip("\n") for block in flattened]
    return "\n\n".join([_close_fence(block) for block in cleaned if block.strip()]) + "\n"


def _close_fence(block: str) -> str:
    """Close an open code fence, so that the next block is not part of the code."""
    if "```" not in block and "~~~" not in block:
        return block
    fence = ""
    for line in block.split("\n"):
        stripped = line.strip(" ")
        run = stripped[: len(stripped) - len(stripped.lstrip(stripped[:1] or " "))]
        if len(run) < 3 or run[0] not in "`~" or line[:4] == "    ":
            continue
        if not fence and not (run[0] == "`" and "`" in stripped[len(run) :]):
            fence = run
        elif fence and run.startswith(fence) and run == stripped:
            fence = ""
    return f"{block}\n{fence}" if fence else block


def single_line(text: str) -> str:
    """Return the text on one line."""
    return " ".join(sanitize_doc_text(text).split())


def sentence(text: str) -> str:
    """Return the text on one line, ended with a full stop."""
    line = single_line(text)
    return line if not line or line[-1] in ".!?…:" else f"{line}."


def code(text: str) -> str:
    """Return the text as inline code. It may contain backquotes."""
    line = single_line(text)
    ticks = "`"
    while ticks in line:
        ticks += "`"
    pad = " " if line[:1] == "`" or line[-1:] == "`" else ""
    return f"{ticks}{pad}{line}{pad}{ticks}"


def fence(lines: Iterable[str], language: str = "") -> str:
    """Return lines as a code block. The fence is longer than any run of backquotes in them."""
    body = "\n".join(lines)
    ticks = "```"
    while ticks in body:
        ticks += "`"
    return f"{ticks}{language}\n{body}\n{ticks}"


def bullets(items: Iterable[str]) -> str:
    """Return a bullet list."""
    return "\n".join([f"- {item}" for item in items])


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; pipe characters in cells are escaped."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(
        [f"| {' | '.join([cell.replace('|', chr(92) + '|') for cell in line])} |" for line in lines]
    )


def link(text: str, target: str) -> str:
    """Return a link."""
    return f"[{text}]({target})"
