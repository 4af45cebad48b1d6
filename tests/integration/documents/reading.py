"""Read a generated document: its links, and the command lines that it tells its readers to type."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from tooli import Tooli
from tooli.testing import check_line

SHELL = ("bash", "sh", "shell", "console", "")
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})[ \t]*([^`\s]*)[^`]*$")
_LINK = re.compile(r"\[[^\[\]]*\]\(([^()\s]+)\)")
_CODE = re.compile(r"(`+).+?(?<!`)\1(?!`)")
_PLACEHOLDER = re.compile(r"(?<!\S)<[A-Za-z][^<>\s]*>")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_APART = ("|", "||", "&&", ";", "&")


def fenced(text: str) -> Iterator[tuple[str, str]]:
    """The language and the body of each fenced block."""
    mark, language, body = "", "", list[str]()
    for line in text.splitlines():
        found = _FENCE.match(line)
        if mark:
            if found and found[1][0] == mark[0] and len(found[1]) >= len(mark) and not found[2]:
                yield language, "\n".join(body)
                mark, body = "", []
            else:
                body.append(line)
        elif found:
            mark, language = found[1], found[2]
    assert not mark, "a fence is left open"


def relative_links(text: str) -> list[str]:
    """Where the links of a document lead, but for those that leave its folder."""
    for _, body in fenced(text):
        text = text.replace(body, "")
    return [
        target.partition("#")[0]
        for target in _LINK.findall(_CODE.sub("", text))
        if not re.match(r"[a-z]+:|#", target)
    ]


def shell_lines(body: str) -> Iterator[str]:
    """The lines of a block; one that ends inside quotes or in a backslash takes the next along."""
    kept = ""
    for line in body.split("\n"):
        kept = f"{kept}\n{line}" if kept else line.strip().removeprefix("$ ")
        if kept.endswith("\\"):
            kept = kept[:-1]
            continue
        try:
            shlex.split(kept)
        except ValueError:
            continue
        yield kept
        kept = ""
    assert not kept, f"a quotation is left open: {kept!r}"


def commands(line: str) -> Iterator[list[str]]:
    """The commands of a line, kept apart by pipes and the like, without variables before them."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|;&")
    lexer.whitespace_split = True
    lexer.commenters = ""
    words: list[str] = []
    for word in [*lexer, ";"]:
        if word == "#":
            break
        if word in _APART:
            yield words
            words = []
        elif words or not _VARIABLE.match(word):
            words.append(word)
    yield words


def problems(app: Tooli, text: str) -> list[str]:
    """What is wrong with the command lines of a document, as the app itself reads them."""
    program = app._state.name
    wrong: list[str] = []
    for language, body in fenced(text):
        if language not in SHELL:
            continue
        for line in shell_lines(body):
            if language and _PLACEHOLDER.search(line):
                wrong.append(f"{line}: a placeholder that a shell takes for a redirection")
            for words in commands(line):
                wrong += [f"{line}: {problem}" for problem in _judge(app, program, words)]
    return wrong


def _judge(app: Tooli, program: str, words: list[str]) -> list[str]:
    if words[:1] == ["xargs"] and program in words:
        return check_line(app, [*words[words.index(program) + 1 :], "WORD"])
    return check_line(app, words[1:]) if words[:1] == [program] else []


def count_lines(app: Tooli, text: str) -> int:
    """How many command lines of the app a document shows."""
    program = app._state.name
    return sum(
        words[:1] == [program] or program in words
        for language, body in fenced(text)
        if language in SHELL
        for line in shell_lines(body)
        for words in commands(line)
    )
