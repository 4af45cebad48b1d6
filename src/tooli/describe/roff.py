"""Write roff for man pages, so that groff and mandoc show every character of the text.

The output is plain ASCII. Non-ASCII characters and characters with a meaning in roff are escaped.
"""

from __future__ import annotations

from tooli.core.docstring import sanitize_doc_text

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_MAX_WORD_LENGTH = 24  # longer words can be broken, for windows of 40 columns
_MAX_NAME_WORD_LENGTH = 60  # in NAME, which whatis reads
_ESCAPES = {
    "\\": "\\(rs",
    "-": "\\-",
    "'": "\\(aq",
    '"': "\\(dq",
    "`": "\\(ga",
    "^": "\\(ha",
    "~": "\\(ti",
}
_SPACES = "\u00a0\u202f\u2007"


def escape(text: str, max_word_length: int = _MAX_WORD_LENGTH) -> str:
    """Return the text on one line, with roff characters escaped."""
    return " ".join(
        [_escape_word(word, max_word_length) for word in _remove_unprintable(text).split()]
    )


def name_line(name: str, summary: str) -> str:
    """Return the line of the NAME section: name and summary."""
    return f"{escape(name, len(name))} \\- {escape(summary, _MAX_NAME_WORD_LENGTH)}"


def escape_literal(line: str) -> str:
    """Return a line of code, escaped, with all its spaces."""
    escaped = "".join(map(_escape_char, _remove_unprintable(line.expandtabs()).rstrip()))
    return f"\\&{escaped}" if escaped[:1] in (".", " ") else escaped


def bold(text: str) -> str:
    """Return bold text, which marks what a user types."""
    return f"\\fB{escape(text)}\\fR"


def italic(text: str) -> str:
    """Return italic text, which marks a placeholder."""
    return f"\\fI{escape(text)}\\fR"


def prose(text: str) -> str:
    """Return prose on one line; text in backquotes is bold."""
    parts = " ".join(text.split()).replace("``", "`").split("`")
    if len(parts) % 2 == 0:  # unbalanced backquotes stay as they are
        return protect_line(escape(text))
    return protect_line("".join([_format_span(part, i % 2 == 1) for i, part in enumerate(parts)]))


def _format_span(part: str, is_code: bool) -> str:
    """Return a part of a line in roff. A space at an end of plain text is kept."""
    words = escape(part)
    if is_code:
        return f"\\fB{words}\\fR" if words else ""
    before = " " if part[:1] == " " else ""
    after = " " if words and part[-1:] == " " else ""
    return f"{before}{words}{after}"


def protect_line(line: str) -> str:
    """Return a line that roff does not read as a request."""
    line = line.strip(" ")
    return f"\\&{line}" if line[:1] in (".", "'") else line


def _remove_unprintable(text: str) -> str:
    """Remove control characters, and replace lone surrogates with U+FFFD."""
    return "".join(
        [
            " " if c in "\n\t" or c in _SPACES else "\ufffd" if "\ud800" <= c <= "\udfff" else c
            for c in sanitize_doc_text(text)
            if c in "\n\t" or (c.isprintable() or c in _SPACES or "\ud800" <= c <= "\udfff")
        ]
    )


def _escape_char(char: str) -> str:
    if char in _ESCAPES:
        return _ESCAPES[char]
    return char if char.isascii() else f"\\[u{ord(char):04X}]"


def _escape_word(word: str, max_word_length: int) -> str:
    """Return an escaped word. A word that is too long can be broken without a hyphen."""
    if len(word) <= max_word_length:
        return "".join(map(_escape_char, word))
    pieces = [word[i : i + max_word_length] for i in range(0, len(word), max_word_length)]
    return "\\:".join(["".join(map(_escape_char, piece)) for piece in pieces])


# ------------------------------------------------------------------ blocks


def heading(title: str) -> str:
    """Return the heading of a section."""
    return f'.SH "{escape(title.upper())}"'


def tagged_item(tag: str, *body: str) -> list[str]:
    """Return a list item: a tag and its text, both in roff."""
    return [".TP", protect_line(tag), *([line for line in body if line] or ["\\&"])]


def tagged_list(items: Iterable[tuple[str, str]]) -> list[str]:
    """Return a list of tags and their texts, both in roff."""
    return [line for item in items for line in tagged_item(*item)]


def compact_list(items: Iterable[tuple[str, str]]) -> list[str]:
    """Return a list of short tags and their texts, both in roff, without space between items."""
    return [".PD 0", *[line for item in items for line in (".TP 8", *item)], ".PD"]


def example_block(lines: Iterable[str]) -> list[str]:
    """Return lines as a code block."""
    return ['.IP "" 4', ".EX", *[escape_literal(line) or "\\&" for line in lines], ".EE"]


def render_text(text: str) -> list[str]:
    """Return Markdown-like text (paragraphs, lists, code) as roff lines."""
    blocks = [block for block in map(_render_chunk, _chunks(text)) if block]
    lines: list[str] = []
    for i, block in enumerate(blocks):
        is_list = block[0].startswith(".IP")
        lines += [*([".PP"] if i and not is_list else []), *block]
    return lines


def _chunks(text: str) -> Iterator[list[str]]:
    """Split the text into paragraphs, list items and code blocks."""
    chunk: list[str] = []
    fenced = False
    for line in text.split("\n"):
        fence = line.lstrip().startswith(("```", "~~~"))
        if fence:
            if not fenced:
                yield chunk
                chunk = [line]
            else:
                yield [*chunk, line]
                chunk = []
            fenced = not fenced
        elif fenced:
            chunk.append(line)
        elif not line.strip():
            yield chunk
            chunk = []
        elif _bullet_text(line) is not None:
            yield chunk
            chunk = [line]
        else:
            chunk.append(line)
    yield chunk


def _render_chunk(chunk: list[str]) -> list[str]:
    if not chunk:
        return []
    if chunk[0].lstrip().startswith(("```", "~~~")):
        body = [line for line in chunk if not line.lstrip().startswith(("```", "~~~"))]
        return example_block(body) if body else []
    bullet = _bullet_text(chunk[0])
    if bullet is not None:
        prose_text = prose(" ".join([bullet, *chunk[1:]]))
        return [".IP \\[u2022] 2", prose_text] if prose_text else []
    if all([line[:4] == "    " for line in chunk]):
        return example_block([line[4:] for line in chunk])
    prose_text = prose(" ".join([line.lstrip("#") for line in chunk]))
    return [prose_text] if prose_text else []


def _bullet_text(line: str) -> str | None:
    """Return the text of a list item, or None if the line is not one."""
    text = line.strip()
    return text[2:] if text[:2] in ("- ", "* ", "+ ", "• ") else None
