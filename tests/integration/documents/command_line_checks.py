"""Find the links and the command lines in a generated Markdown document."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from tooli import Tooli
from tooli.testing import check_line

SHELL_LANGUAGES = ("bash", "sh", "shell", "console", "")
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})[ \t]*([^`\s]*)[^`]*$")
_LINK = re.compile(r"\[[^\[\]]*\]\(([^()\s]+)\)")
_INLINE_CODE = re.compile(r"(`+).+?(?<!`)\1(?!`)")
_PLACEHOLDER = re.compile(r"(?<!\S)<[A-Za-z][^<>\s]*>")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_SEPARATORS = ("|", "||", "&&", ";", "&")


def fenced_blocks(text: str) -> Iterator[tuple[str, str]]:
    """Yield the language and the body of each fenced block."""
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
    assert not mark, "a fenced block is not closed"


def relative_links(text: str) -> list[str]:
    """Return the targets of the relative links in a document."""
    for _, body in fenced_blocks(text):
        text = text.replace(body, "")
    return [
        target.partition("#")[0]
        for target in _LINK.findall(_INLINE_CODE.sub("", text))
        if not re.match(r"[a-z]+:|#", target)
    ]


def shell_lines(body: str) -> Iterator[str]:
    """Yield the command lines of a block, with continuation lines joined."""
    pending = ""
    for line in body.split("\n"):
        pending = f"{pending}\n{line}" if pending else line.strip().removeprefix("$ ")
        if pending.endswith("\\"):
            pending = pending[:-1]
            continue
        try:
            shlex.split(pending)
        except ValueError:
            continue
        yield pending
        pending = ""
    assert not pending, f"a quote is not closed: {pending!r}"


def split_commands(line: str) -> Iterator[list[str]]:
    """Yield the commands of a line, without leading variables; pipes and similar separate them."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|;&")
    lexer.whitespace_split = True
    lexer.commenters = ""
    words: list[str] = []
    for word in [*lexer, ";"]:
        if word == "#":
            break
        if word in _SEPARATORS:
            yield words
            words = []
        elif words or not _VARIABLE.match(word):
            words.append(word)
    yield words


def find_problems(app: Tooli, text: str) -> list[str]:
    """Return the problems of the command lines in a document, as the app reports them."""
    program = app._state.name
    problems: list[str] = []
    for language, body in fenced_blocks(text):
        if language not in SHELL_LANGUAGES:
            continue
        for line in shell_lines(body):
            if language and _PLACEHOLDER.search(line):
                problems.append(f"{line}: a placeholder that the shell reads as a redirection")
            for words in split_commands(line):
                problems += [
                    f"{line}: {problem}" for problem in _check_command(app, program, words)
                ]
    return problems


def _check_command(app: Tooli, program: str, words: list[str]) -> list[str]:
    if words[:1] == ["xargs"] and program in words:
        return check_line(app, [*words[words.index(program) + 1 :], "WORD"])
    return check_line(app, words[1:]) if words[:1] == [program] else []


def count_command_lines(app: Tooli, text: str) -> int:
    """Return the number of command lines of the app in a document."""
    program = app._state.name
    return sum(
        words[:1] == [program] or program in words
        for language, body in fenced_blocks(text)
        if language in SHELL_LANGUAGES
        for line in shell_lines(body)
        for words in split_commands(line)
    )
