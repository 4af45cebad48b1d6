"""Remove rich markup from help texts, for documents and pipes.

Typer renders the help of an app as rich markup. Text for a pipe or an agent contains the words
only: `[bold]Add[/bold] a task :sparkles:` is `Add a task ✨`.
"""

from __future__ import annotations


def remove_markup(text: str) -> str:
    """Return a text without pairs of rich tags, and with emoji in place of their codes.

    A tag that is never closed, such as the index in `items[i]`, is not changed.
    """
    if "[/" in text:
        text = _remove_tags(text)
    if text.count(":") > 1:
        text = _replace_emoji(text)
    return text


def _remove_tags(text: str) -> str:
    removed: set[tuple[int, int]] = set()
    opened: list[tuple[str, int, int]] = []
    end = 0
    while (start := text.find("[", end)) >= 0:
        end = text.find("]", start) + 1
        if not end:
            break
        tag = text[start + 1 : end - 1]
        inner = tag.rfind("[")
        if inner >= 0:
            end = start + 1 + inner
            continue
        is_escaped = text[start - 1 : start] == "\\"
        if tag[:1] == "/":
            name = tag[1:].strip()
            matching = [i for i, (opening, _, _) in enumerate(opened) if name in ("", opening)]
            if matching:
                removed |= {opened[matching[-1]][1:], (start, end)}
                del opened[matching[-1] :]
        elif (tag[:1].isalpha() or tag[:1] in ("#", "@")) and not is_escaped:
            opened.append((tag.partition("=")[0].strip() if "=" in tag else tag, start, end))
    parts: list[str] = []
    position = 0
    for start, end in sorted(removed):
        parts.append(text[position:start])
        position = end
    return "".join((*parts, text[position:]))


def _replace_emoji(text: str) -> str:
    """Return the text with `:sparkles:` replaced by the character."""
    parts = text.split(":")
    names = [part for part in parts[1:-1] if _is_emoji_name(part)]
    if not names:
        return text
    from rich._emoji_codes import EMOJI  # rich has no public table

    merged = [parts[0]]
    is_code = False  # the colon before the next part belongs to a code
    for i, part in enumerate(parts[1:], 1):
        emoji = EMOJI.get(part) if i < len(parts) - 1 and _is_emoji_name(part) else None
        if is_code:
            merged[-1] += part
            is_code = False
        elif emoji is not None:
            merged[-1] += emoji
            is_code = True
        else:
            merged.append(part)
    return ":".join(merged)


def _is_emoji_name(text: str) -> bool:
    return text.replace("_", "").replace("-", "").replace("’", "").isalpha() and text.islower()
