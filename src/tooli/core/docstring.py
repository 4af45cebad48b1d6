"""Parse docstrings into summary, description, parameters, result, errors and examples.

Google, NumPy and Sphinx sections are supported, in any mix. All other text is prose. Help and
schemas load this module, so it imports little. It parses any text in linear time and never raises.
"""

from __future__ import annotations

from tooli.core import Record
from tooli.text.markup import remove_markup

_PARAMS, _RETURNS, _RAISES, _EXAMPLES, _IGNORED = "params", "returns", "raises", "examples", "type"
_GOOGLE, _NUMPY, _SPHINX = "google", "numpy", "sphinx"
_HEADINGS = {
    **dict.fromkeys(("args", "arguments", "params", "parameters"), _PARAMS),
    **dict.fromkeys(("keyword args", "keyword arguments", "other parameters"), _PARAMS),
    **dict.fromkeys(("return", "returns", "yield", "yields"), _RETURNS),
    **dict.fromkeys(("raise", "raises"), _RAISES),
    **dict.fromkeys(("example", "examples"), _EXAMPLES),
}
_FIELDS = {
    **dict.fromkeys(("param", "params", "parameter", "arg", "argument"), _PARAMS),
    **dict.fromkeys(("key", "keyword", "kwarg", "kwparam"), _PARAMS),
    **dict.fromkeys(("return", "returns", "yield", "yields"), _RETURNS),
    **dict.fromkeys(("raise", "raises", "except", "exception"), _RAISES),
    **dict.fromkeys(("type", "rtype", "ytype", "kwtype"), _IGNORED),
}
_BULLETS = ("- ", "* ", "+ ", "• ")
_FENCES = ("```", "~~~")
_PLAIN_TYPES = ("bool", "bytes", "dict", "float", "int", "list", "object", "set", "str", "tuple")


class Doc(Record):
    """The parts of a docstring."""

    summary: str
    description: str
    params: dict[str, str]
    returns: str
    raises: dict[str, str]
    examples: str


def read_docstring(text: str | None) -> Doc:
    """Parse a docstring, indented or not, without its rich markup. None gives an empty Doc.

    Prose after a form feed is dropped, as Click does; sections after it are kept.
    """
    lines, visible_count = _clean_lines(remove_markup(text or ""))
    prose, found = _split_sections(lines, visible_count)
    first, _, rest = "\n".join(prose).strip("\n").partition("\n\n")
    return Doc(
        summary=_one_line([line for line in first.split("\n") if not _is_underline(line)]),
        description=rest.strip("\n"),
        params={name: next(filter(None, texts), "") for name, texts in found[_PARAMS].items()},
        returns=_one_line(found[_RETURNS].get("", [])),
        raises={name: _one_line(texts) for name, texts in found[_RAISES].items()},
        examples="\n\n".join(filter(None, found[_EXAMPLES].get("", []))),
    )


def docstring_of(fn: object) -> str:
    """Return the docstring of a function, or of the function in a partial, as it is written."""
    return getattr(fn, "func", fn).__doc__ or ""


def clean_help(text: str) -> str:
    """Return a help text without indentation, rich markup, and what follows a form feed."""
    return remove_markup(cleandoc(text).partition("\f")[0].rstrip())


def remove_parameters(text: str) -> str:
    """Return a docstring without the sections about parameters; all other text is unchanged."""
    lines = cleandoc(text.replace("\r\n", "\n")).split("\n")
    kept: list[str] = []
    fenced = False
    at = 0
    while at < len(lines):
        line = lines[at]
        kind, style = ("", "") if fenced else _section_start(lines, at)
        end = at + 1
        if kind in (_PARAMS, _IGNORED):
            end = _section_end(lines, at, kind, style)
        else:
            fenced ^= line.startswith(_FENCES) and line.count(line[:3]) % 2 == 1
            kept.append(line)
        at = end
    return cleandoc("\n".join(kept)).rstrip()


def cleandoc(text: str) -> str:
    """Remove common indentation and blank lines at both ends, as `inspect.cleandoc` does.

    Tabs are expanded.
    """
    lines = text.expandtabs().split("\n")
    margin = min([_indent(line) for line in lines[1:] if line.strip()], default=0)
    return "\n".join([lines[0].lstrip(), *[line[margin:] for line in lines[1:]]]).strip("\n")


def sanitize_doc_text(text: str) -> str:
    """Return a text without terminal escapes and invisible characters.

    A lone surrogate, which a JSON text can contain and a file cannot, becomes U+FFFD.
    """
    if text.replace("\n", "").isprintable():
        return text
    from tooli.text.sanitize import sanitize

    text = sanitize(text)[0].replace("\r\n", "\n").replace("\r", "\n")
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _clean_lines(text: str) -> tuple[list[str], int]:
    """Return the cleaned lines, and the number of lines before a form feed.

    A blank line is an empty string.
    """
    raw = text.replace("\r\n", "\n").replace("\r", "\n").expandtabs().split("\n")
    text = "\n".join([line for line in raw if line.strip(" ") not in ("\b", "\\b")])
    head, _, tail = text.partition("\f")
    tail = tail.replace("\f", "").rstrip()
    hidden = 0
    if tail:
        # Text that follows the form feed on its line gets the indentation of that line. Without
        # it, the common margin would be 0.
        depth = max(_indent(head[head.rfind("\n") + 1 :]), _indent(tail.partition("\n")[0]))
        head += "\n" + " " * depth
        tail = tail.lstrip(" ")
        hidden = tail.count("\n") + 1
    lines = [line if line.strip() else "" for line in cleandoc(head + tail).split("\n")]
    return lines, max(0, len(lines) - hidden)


def _split_sections(
    lines: list[str], visible_count: int
) -> tuple[list[str], dict[str, dict[str, list[str]]]]:
    """Return the lines of prose, and the texts of the sections by section kind and entry name."""
    prose: list[str] = []
    kinds = (_PARAMS, _RETURNS, _RAISES, _EXAMPLES, _IGNORED)
    found: dict[str, dict[str, list[str]]] = {kind: {} for kind in kinds}
    fenced = False
    at = 0
    while at < len(lines):
        line = lines[at]
        # An unclosed code fence above the form feed must not hide the sections below it.
        fenced = fenced and at != visible_count
        kind, style = ("", "") if fenced else _section_start(lines, at)
        if not kind:
            fenced ^= line.startswith(_FENCES) and line.count(line[:3]) % 2 == 1
            prose += [line] if at < visible_count else []
            at += 1
            continue
        end = _section_end(lines, at, kind, style)
        if kind in (_RETURNS, _EXAMPLES) and at < visible_count:
            end = min(end, visible_count)
        for names, text in _section_entries(lines[at:end], kind, style):
            for name in names:
                found[kind].setdefault(name, []).append(text)
        prose += [""] if prose and prose[-1] else []
        at = end
    return prose, found


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _one_line(texts: list[str]) -> str:
    return " ".join([text.strip() for text in texts if text.strip()])


def _is_underline(line: str) -> bool:
    line = line.strip()
    return len(line) > 2 and line[0] in "-=" and not line.strip(line[0])


def _is_underlined(lines: list[str], at: int) -> bool:
    return at + 1 < len(lines) and _is_underline(lines[at + 1]) and not _is_underline(lines[at])


def _heading_kind(line: str) -> str:
    # A heading starts with a capital letter. Prose that wraps before its last word
    # ("the\nexample:") does not.
    return _HEADINGS.get(line.rstrip(": ").lower(), "") if line[:1].isupper() else ""


def _section_start(lines: list[str], at: int) -> tuple[str, str]:
    """Return the kind and style of the section that starts here; ("", "") if none starts."""
    line = lines[at]
    if line.startswith(":"):
        return _parse_sphinx_field(line)[0], _SPHINX
    kind = _heading_kind(line)
    if kind and _is_underlined(lines, at):
        return kind, _NUMPY
    if not kind or not line.rstrip().endswith(":"):
        return "", ""
    after = _peek(lines, at + 1)
    # Cleaning removes the indentation of the first line. A body below it may then have the same
    # indentation as the heading.
    is_section = at == 0 or after[0].isspace() or after[0] == ":" or _heading_kind(after)
    return (kind, _GOOGLE) if is_section else ("", "")


def _peek(lines: list[str], at: int) -> str:
    # Only a few lines are searched, so that parsing takes linear time. If all are blank, the
    # section has no body.
    return next(filter(None, lines[at : at + 4]), " ")


def _section_end(lines: list[str], at: int, kind: str, style: str) -> int:
    """Return the index of the first line after the section that starts at index `at`."""
    start = at + 2 if style == _NUMPY else at + 1
    has_unindented_body = at == 0 and not _peek(lines, start)[0].isspace()
    gap = False
    for end in range(start, len(lines)):
        line = lines[end]
        if not line or line[0].isspace():
            gap = not line
            continue
        if _section_start(lines, end)[0] or _is_underlined(lines, end):
            return end
        if style == _GOOGLE and not has_unindented_body:
            return end
        if style == _SPHINX and (gap or line.startswith((":", ".."))):
            return end
        if style == _NUMPY and gap and not _is_item(lines, end, kind):
            return end
        gap = False
    return len(lines)


def _is_item(lines: list[str], at: int, kind: str) -> bool:
    """True if an unindented line after a blank line still belongs to the NumPy section above it."""
    line = lines[at].rstrip()
    if kind == _EXAMPLES:
        return True
    if kind != _RAISES and line[0].isupper() and line.endswith(":"):
        return False
    if kind != _RETURNS:
        return bool(_parse_names(_split_label(line)[0]))
    return at + 1 < len(lines) and lines[at + 1][:1].isspace() and not line.startswith("..")


def _section_entries(lines: list[str], kind: str, style: str) -> list[tuple[list[str], str]]:
    """Return the names and the text of each entry of a section; text without a name has ""."""
    if style == _SPHINX:
        _, names, first = _parse_sphinx_field(lines[0])
        return [(names, _one_line([first, *lines[1:]]))]
    body = lines[2:] if style == _NUMPY else lines[1:]
    if kind == _EXAMPLES:
        # `cleandoc` ignores the first line when it computes the margin: put an empty one first.
        return [([""], cleandoc("\n".join(["", *body])))]
    body = [line for line in body if line]
    entry_indent = _indent(body[0]) if body else 0
    if kind == _RETURNS:
        return [([""], _returns_text(body, entry_indent, style))]
    bulleted = bool(body) and body[0].lstrip().startswith(_BULLETS)
    entries: list[tuple[list[str], list[str]]] = []
    for line in body:
        text = line.strip()
        names: list[str] = []
        if _indent(line) <= entry_indent:
            label = text[2:].lstrip() if bulleted and text.startswith(_BULLETS) else text
            names, rest = _parse_entry(label, kind, style)
            text = rest if names else text
        if names:
            entries.append((names, [text]))
        elif entries:
            entries[-1][1].append(text)
    return [(names, _one_line(texts)) for names, texts in entries]


def _parse_names(text: str) -> list[str]:
    """Return the bare names in "x", "*args, **kwargs" or ":exc:`~a.B`"; [] for other text."""
    names: list[str] = []
    for part in text.split(","):
        name = part.strip().replace("`", "").replace("\\", "")
        name = (name.rpartition(":")[2] if name.startswith(":") else name).lstrip("*~")
        if not all(identifier.isidentifier() for identifier in name.split(".")):
            return []
        names.append(name)
    return names


def _split_label(text: str) -> tuple[str, str, str]:
    """Split "names: text" at its colon. The colons of a role such as ":exc:`A`" are skipped."""
    return (text + " ").partition(": ") if text.startswith(":") else text.partition(":")


def _parse_sphinx_field(line: str) -> tuple[str, list[str], str]:
    """Return the kind, names and text of a Sphinx field such as ":param int x: text"."""
    label, found, text = line[1:].partition(":")
    word = label.partition(" ")[0]
    kind = _FIELDS.get(word, "") if found else ""
    if kind in (_RETURNS, _IGNORED):
        return kind, [""], text
    label, found, text = _split_label(line[len(word) + 2 :].lstrip(" "))
    names = _parse_names(label) or _parse_names(label.rstrip().rpartition(" ")[2])
    return (kind, names, text) if found and names else ("", [], "")


def _parse_entry(text: str, kind: str, style: str) -> tuple[list[str], str]:
    """Return the names and text of "name (type): text"; no names for any other text."""
    label, found, rest = _split_label(text)
    if style == _NUMPY:
        return _parse_names(label), rest if kind == _RAISES else ""
    paren = label.find("(")
    if paren > 0:
        rest = text[_find_closing_paren(text, paren) :].lstrip()
        return _parse_names(label[:paren]) if rest.startswith(":") else [], rest[1:]
    is_bare = kind == _RAISES and text.rpartition(".")[2][:1].isupper()
    # "https://", "std::" and "C:\\" begin a line of text, not an entry.
    is_entry = not rest.startswith(("/", ":", "\\")) if found else is_bare
    return _parse_names(label) if is_entry else [], rest


def _find_closing_paren(text: str, at: int) -> int:
    """Return the position after the parenthesis that closes the one at `at`.

    Returns the length of the text if it is not closed.
    """
    depth = 0
    for end in range(at, len(text)):
        depth += (text[end] == "(") - (text[end] == ")")
        if not depth:
            return end + 1
    return len(text)


def _returns_text(body: list[str], entry_indent: int, style: str) -> str:
    """Return the text of a returns section, without a leading type."""
    texts: list[str] = []
    for line, after in zip(body, [*body, ""][1:], strict=True):
        is_type = style == _NUMPY and _indent(line) <= entry_indent < _indent(after)
        if not is_type or line.rstrip()[-1] in ".:,":
            texts.append(line)
    text = _one_line(texts)
    label, _, rest = text.partition(": ")
    return rest.lstrip() if rest and _is_type_name(label) else text


def _is_type_name(text: str) -> bool:
    # A lone word may be prose ("Success: ..."), so only a well-known type counts.
    squeezed = text.replace(" | ", "|").replace(", ", ",")
    is_single = text[:1].isalpha() and " " not in squeezed and ("," not in text or "[" in text)
    return text in _PLAIN_TYPES or (is_single and text[-1] != "." and any(c in text for c in "[|."))
