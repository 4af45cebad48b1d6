"""Read a command line: the framework's flags, the command, its arguments.

    file-tools --json find-files '*.py' --root src -v
               ╰flag╯ ╰command─╯ ╰arguments──────╯ ╰flag

One pass. A command's own flag wins over the framework's, which then answers to
`--tooli-NAME`. Whatever this reader does not fully understand it leaves to Typer
(`Line.aside`); it never guesses. `Line.rest` is the line without the framework's
flags, as Typer then reads it.
"""

from __future__ import annotations

from tooli.call.model import Problem
from tooli.contract.fit import Words
from tooli.contract.tool import Foreign, ListOf, Scalar, is_bool, is_structured, plain
from tooli.sources.local import OUTPUT_MODES as MODES

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from tooli.contract.tool import Param, Tool

FORMATS = ("json", "mcp", "openai", "anthropic")

# flag: (what it sets, how many words it takes, what it sets it to); "?" takes one of FORMATS
FLAGS: dict[str, tuple[str, int | str, Any]] = {
    **dict.fromkeys(("--output", "-o"), ("output", 1, None)),
    **{f"--{mode}": ("output", 0, mode) for mode in ("json", "jsonl", "text", "plain")},
    **dict.fromkeys(("--quiet", "-q"), ("quiet", 0, True)),
    **dict.fromkeys(("--verbose", "-v"), ("verbose", 0, "+")),
    "--no-color": ("no_color", 0, True),
    "--dry-run": ("dry_run", 0, True),
    "--yes": ("yes", 0, True),
    "--no-input": ("no_input", 0, True),
    "--response-format": ("response_format", 1, None),
    "--schema": ("schema", "?", "json"),
    "--help-agent": ("help_agent", 0, True),
    "--agent-manifest": ("agent_manifest", 0, True),
    "--agent-bootstrap": ("agent_bootstrap", 0, True),
    "--discover": ("discover", 0, True),
    "--help": ("help", 0, True),
    "--version": ("show_version", 0, True),
    "--input": ("input", 1, None),
    "--print0": ("print0", 0, True),
    "--null": ("null", 0, True),
    "--limit": ("limit", 1, None),
    "--cursor": ("cursor", 1, None),
    "--filter": ("filter", 1, None),
    **dict.fromkeys(("--fields", "--select"), ("fields", 1, None)),
    "--max-items": ("max_items", 1, None),
    "--max-bytes": ("max_bytes", 1, None),
    "--max-tokens": ("max_tokens", 1, None),
    "--timeout": ("timeout", 1, None),
    "--idempotency-key": ("idempotency_key", 1, None),
    "--apply": ("apply", 1, None),
}
DOCUMENTS = frozenset(("agent_manifest", "agent_bootstrap", "discover"))
QUESTIONS = DOCUMENTS | {"help", "schema", "help_agent", "show_version"}
SHAPING = frozenset(("limit", "cursor", "filter", "fields", "max_items", "max_bytes", "max_tokens"))
WISHES = frozenset(("timeout", "idempotency_key", "apply"))
COMPLETION = ("--install-completion", "--show-completion")


class Line:
    """A command line, read."""

    __slots__ = (
        "above",
        "argument_words",
        "arguments",
        "aside",
        "branch",
        "depth",
        "dotted",
        "early",
        "guessed",
        "options",
        "path",
        "problems",
        "rest",
        "settled",
        "stray",
        "tool",
    )

    def __init__(self) -> None:
        self.options: dict[str, Any] = {}
        self.path: tuple[str, ...] = ()
        self.branch: Any = None
        self.tool: Tool | None = None
        self.depth = 0  # how much of `rest` leads up to the command
        self.arguments: dict[str, Any] = {}
        self.argument_words: list[str] = []
        self.dotted: dict[str, dict[str, list[str]]] = {}
        self.problems: list[Problem] = []
        self.rest: list[str] = []
        self.aside: str | None = None
        self.stray: str | None = None  # the word that is no command
        self.above: set[str] = set()  # flags of the callbacks in front: no longer the framework's
        self.early: list[str] = []  # the framework's flags before the command
        self.guessed = False  # Typer may read it otherwise than we do
        self.settled: set[str] = set()  # options that nobody typed: they are set elsewhere

    @property
    def fed(self) -> bool:
        """Whether arguments come from elsewhere, so that only we know them: `--input`, `--null`."""
        return "input" in self.options or "null" in self.options

    @property
    def shaped(self) -> bool:
        """Whether the line, or its command, says how much of the result is wanted."""
        limits = None if self.tool is None else self.tool.limits
        return not SHAPING.isdisjoint(self.options) or (
            limits is not None and bool(limits.paginated or limits.max_tokens)
        )

    def set(self, flag: str, value: str | None) -> None:
        """Take one of the framework's flags."""
        name, _, constant = FLAGS[flag]
        if constant == "+":
            self.options[name] = self.options.get(name, 0) + 1
            return
        value = constant if value is None else value
        if name in WISHES:
            from tooli.call.wishes import read_wish

            self.options[name], wrong = read_wish(name, value)
            if wrong is not None:
                self.problems.append(Problem("E1007", name, f"{flag} is {wrong}"))
            return
        allowed = {"output": MODES, "response_format": ("concise", "detailed")}.get(name)
        if allowed is not None and value not in allowed:
            from tooli.errors import nearest

            meant = nearest(str(value), allowed)
            hint = f"; did you mean {meant!r}?" if meant else ""
            self.problems.append(
                Problem("E1007", name, f"{flag} is one of {', '.join(allowed)}{hint}", meant)
            )
            return
        self.options[name] = value


def read_line(root: Any, argv: Sequence[str], judge: Callable[[Param, Words], Any]) -> Line:
    """The line read against an app's tree of commands (`root`: a Branch)."""
    line = Line()
    line.branch = root
    words = list(argv)
    words.reverse()  # the next word is words.pop()
    registration = root.single
    if registration is None:
        registration = _find_command(line, words)
    else:
        line.path = (registration.word,)
    if registration is None:
        _late_mode(line, words)
        line.rest.extend(reversed(words))
        return line
    tool = registration.tool(line.path, root.house)
    line.tool = tool
    line.depth = len(line.rest)
    _CommandWords(line, tool, judge).read(words)
    if not tool.fast and line.aside is None:
        line.aside = "the command uses what only Typer knows"
    return line


def _late_mode(line: Line, words: list[str]) -> None:
    """`--json` behind a word that is no command still says how to answer."""
    later = words[::-1]
    for i, word in enumerate(later):
        if word == "--":
            return
        name, equals, value = word.partition("=")
        flag = frameworks(name, line.above)
        if flag is None or flag not in FLAGS or FLAGS[flag][0] != "output":
            continue
        if FLAGS[flag][1] == 1:
            mode = value if equals else "".join(later[i + 1 : i + 2])
        else:
            mode = FLAGS[flag][2]
        if mode in MODES:
            line.options["output"] = mode


# ------------------------------------------------------------------ before the command


def _find_command(line: Line, words: list[str]) -> Any:
    branch = line.branch
    while True:
        if branch.aside:
            line.aside = branch.aside
            line.above.update(branch.own_flags())
        while words and words[-1][:1] == "-" and len(words[-1]) > 1:
            if not _group_flag(line, branch, words):
                return None
        if not words:
            return None
        word = words[-1]
        found = branch.commands.get(word)
        if found is None:
            inner = branch.groups.get(word)
            if inner is None:
                line.stray = word
                return None
            branch = inner
        line.rest.append(words.pop())
        line.path = (*line.path, word)
        line.branch = branch
        if found is not None:
            return found


def _group_flag(line: Line, branch: Any, words: list[str]) -> bool:
    """Take one flag in front of the command; False when only Typer can go on."""
    word = words[-1]
    name, equals, explicit = word.partition("=")
    own = branch.own_flags()
    is_long = len(name) > 2 or name[:2] == "--"
    if word == "--" or (name in own and (is_long or not equals)):
        words.pop()
        line.rest.append(word)
        _take_along(line, own.get(name, 0) - bool(equals), words)
        return word != "--"
    flag = frameworks(name, own) if is_long or not equals else None
    if flag is not None:
        words.pop()
        line.early.append(name)
        _take(line, flag, name, explicit if equals else None, words)
        return True
    if word[:2] != "--" and _short_flags(line, words, own):
        return True
    line.problems.append(_no_option(name, [*own, *FLAGS]))
    return False


def _take_along(line: Line, count: int, words: list[str]) -> None:
    """The words that belong to a callback's option; only Typer reads them."""
    for _ in range(min(count, len(words))):
        line.rest.append(words.pop())


def _short_flags(line: Line, words: list[str], own: Any) -> bool:
    """Take short flags in one word, the framework's and the callback's: `-qv`, `-ojson`."""
    word = words[-1]
    end = 1
    width: Any = 0
    while end < len(word) and not width:
        flag = f"-{word[end]}"
        if flag not in own and flag not in FLAGS:
            return False
        width = own[flag] if flag in own else FLAGS[flag][1]
        end += 1
    words.pop()
    flags = [f"-{letter}" for letter in word[1:end]]
    after = word[end:] or None
    mine = "".join([flag[1] for flag in flags if flag in own])
    for flag in flags:
        if flag not in own:
            _take(line, flag, flag, after if flag is flags[-1] else None, words)
    if mine:
        line.rest.append(f"-{mine}{after or ''}" if flags[-1] in own else f"-{mine}")
    if flags[-1] in own:
        _take_along(line, width - bool(after), words)
    return True


def frameworks(name: str, own: Any) -> str | None:
    """The framework's flag that a word names, unless it is the command's own."""
    if name.startswith("--tooli-"):
        plain = f"--{name[8:]}"
        return plain if plain in FLAGS else None
    if name in own:
        return None
    return name if name in FLAGS else None


def _take(line: Line, flag: str, typed: str, explicit: str | None, words: list[str]) -> None:
    """Take a framework's flag and the word it needs."""
    arity = FLAGS[flag][1]
    if arity == "?":
        if explicit is None and words and words[-1] in FORMATS:
            explicit = words.pop()
        if explicit is not None and explicit not in FORMATS:
            message = f"{typed} is one of {', '.join(FORMATS)}"
            line.problems.append(Problem("E1007", "schema", message))
            return
        line.set(flag, explicit)
    elif arity == 0:
        if explicit is not None:
            line.problems.append(Problem("E1007", flag.lstrip("-"), f"{typed} takes no value"))
            return
        line.set(flag, None)
    elif explicit is None and not words:
        line.problems.append(Problem("E1007", flag.lstrip("-"), f"{typed} needs a value"))
    else:
        line.set(flag, explicit if explicit is not None else words.pop())


def _no_option(name: str, known: Sequence[str]) -> Problem:
    from tooli.errors import nearest

    meant = nearest(name, known)
    hint = f"; did you mean {meant}?" if meant else ""
    return Problem("E1004", None, f"There is no option {name}{hint}", meant)


# ------------------------------------------------------------------ after the command


def _is_guess(param: Param, tool: Tool) -> bool:
    """Whether Typer's versions differ in what the parameter is, or only they know.

    A list of bools is given by flags or by words; without an annotation some take it for text.
    """
    shape = plain(param.shape)
    if isinstance(shape, Scalar):
        said = getattr(tool.fn, "__annotations__", None)
        return bool(said) and param.name not in said and shape.type is not str and not tool.model
    return isinstance(shape, Foreign) or (isinstance(shape, ListOf) and is_bool(shape.item))


class _CommandWords:
    """Everything after the command's name, sorted into its parameters."""

    def __init__(self, line: Line, tool: Tool, judge: Callable[[Param, Words], Any]) -> None:
        self.line = line
        self.tool = tool
        self.judge = judge
        self.flags: dict[str, tuple[Param, bool]] = {}
        self.parts: dict[str, Param] = {}
        self.texts: dict[str, list[str]] = {}
        self.taken: Any = self.flags
        self.unsure = False  # an unknown option may have left words behind
        for param in tool.params:
            if param.kind == "argument" and is_structured(param.shape):
                self.parts[f"--{param.name.replace('_', '-')}"] = param
            if param.kind != "injected" and _is_guess(param, tool):
                self._leave(f"the words of {param.name} are Typer's to count")
            for flag in param.flags:
                self.flags[flag] = (param, True)
                if is_structured(param.shape):
                    self.parts[flag] = param
            for flag in param.negations:
                self.flags[flag] = (param, False)
        self.prefixes = {"-", "--"}  # what begins an option: Typer takes `+x` and `/x`, too
        for flag in self.flags:
            if flag[:1] != "-":
                self.prefixes.update((flag[0], flag[: 2 if flag[1:2] == flag[0] else 1]))
        if line.above:
            self.taken = line.above.union(self.flags)

    def read(self, words: list[str]) -> None:
        line = self.line
        positional: list[str] = []
        while words:
            word = words.pop()
            if word == "--":
                line.rest.append(word)
                line.rest.extend(reversed(words))
                positional.extend(reversed(words))
                break
            if word[:1] in self.prefixes and len(word) > 1:
                self._option(word, words)
            else:
                line.rest.append(word)
                positional.append(word)
        self._distribute(positional)
        self._environment()
        self._defaults()
        line.argument_words = positional
        for name in line.early:
            if name in self.flags and not name.startswith("--tooli-"):
                where = f"write it after the command; the framework's own is --tooli-{name[2:]}"
                line.problems.append(
                    Problem("E1007", None, f"{name} belongs to {self.tool.name}: {where}")
                )

    def _option(self, word: str, words: list[str]) -> None:
        name, equals, explicit = word.partition("=")
        found = self.flags.get(name)
        is_long = len(name) > 2 or name[:2] == "--"
        if found is not None and is_long:
            self.line.rest.append(word)
            self._own(found, name, explicit if equals else None, words)
            return
        dot = name.find(".")
        if dot > 0 and name[:dot] in self.parts:
            self._part(self.parts[name[:dot]], name[dot + 1 :], explicit, equals, words)
            return
        flag = frameworks(name, self.taken) if is_long or not equals else None
        if flag is not None and (is_long or found is None):
            _take(self.line, flag, name, explicit if equals else None, words)
        elif word[:2] in self.prefixes:
            self._unknown(name, explicit, equals, words)
        else:
            self._cluster(word, words)

    def _own(
        self, found: tuple[Param, bool], name: str, explicit: str | None, words: list[str]
    ) -> None:
        param, positive = found
        arguments = self.line.arguments
        if param.is_flag:
            if explicit is not None:
                self._problem("E1006", param, f"Option {name} does not take a value")
            elif param.settings.get("count"):
                arguments[param.name] = arguments.get(param.name, 0) + 1
            else:
                arguments[param.name] = positive
            return
        taken = [] if explicit is None else [explicit]
        while len(taken) < param.width and words:
            word = words.pop()
            self.line.rest.append(word)
            taken.append(word)
        if len(taken) < param.width:
            needs = "a value" if param.width == 1 else f"{param.width} values"
            self._problem("E1006", param, f"Option {name} needs {needs}")
            return
        self._give(param, taken)

    def _give(self, param: Param, taken: list[str]) -> None:
        kept = self.texts.setdefault(param.name, [])
        if not (param.many or is_structured(param.shape)):
            kept.clear()
        kept.extend(taken)
        if type(self.line.arguments.get(param.name)) is not Words:
            dotted = self.line.dotted.get(param.name)
            self.line.arguments[param.name] = Words(kept, self.judge, dotted)

    def _part(self, param: Param, path: str, explicit: str, equals: str, words: list[str]) -> None:
        """A dotted flag: one part of an object."""
        flag = f"--{param.name}.{path}"
        if not equals:
            if not words:
                self._problem("E1006", param, f"Option {flag} needs a value")
                return
            explicit = words.pop()
        dotted = self.line.dotted.setdefault(param.name, {})
        dotted.setdefault(path.replace("-", "_"), []).append(explicit)
        kept = self.texts.setdefault(param.name, [])
        self.line.arguments[param.name] = Words(kept, self.judge, dotted)

    def _unknown(self, name: str, explicit: str, equals: str, words: list[str]) -> None:
        """An option nobody knows: named as a parameter, so that the nearest can be found."""
        from tooli.call.repair import unknown

        self.line.rest.append(f"{name}={explicit}" if equals else name)
        problem = unknown(name.lstrip("-").replace("-", "_"), self.tool)
        self.line.problems.append(problem)
        near = self.tool.param(problem.meant) if problem.meant else None
        taken = [explicit] if equals else []
        if near is None:
            self.unsure = True
        elif not near.is_flag:
            while len(taken) < near.width and words and words[-1][:1] != "-":
                word = words.pop()
                self.line.rest.append(word)
                taken.append(word)
        if near is not None and near.name not in self.line.arguments:
            if near.is_flag:
                self.line.arguments[near.name] = True
            elif len(taken) == near.width:
                self.line.arguments[near.name] = Words(taken, self.judge)

    def _cluster(self, word: str, words: list[str]) -> None:
        """Short flags in one word: `-qv`, `-n5`, `-vvf file`."""
        own: list[str] = []
        for i in range(1, len(word)):
            flag = f"{word[0]}{word[i]}"
            found = self.flags.get(flag)
            if found is None and flag in FLAGS and flag not in self.taken:
                if FLAGS[flag][1] == 0:
                    self.line.set(flag, None)
                    continue
                after = word[i + 1 :]
                _take(self.line, flag, flag, after or None, words)
                break
            own.append(word[i])
            if found is None:
                self.unsure = True
                self.line.problems.append(_no_option(flag, [f for f in self.flags if len(f) == 2]))
                own.extend(word[i + 1 :])
                break
            if not found[0].is_flag:
                after = word[i + 1 :]
                self.line.rest.append(f"{word[0]}{''.join(own)}{after}")
                own = []
                self._own(found, flag, after or None, words)
                break
            self._own(found, flag, None, words)
        if own:
            self.line.rest.append(f"{word[0]}{''.join(own)}")

    def _leave(self, why: str) -> None:
        """Step aside: what is wrong with the line, too, is for Typer to say."""
        self.line.aside = why
        self.line.guessed = True

    def _problem(self, code: str, param: Param, message: str) -> None:
        self.line.problems.append(Problem(code, param.name, message))

    def _distribute(self, words: list[str]) -> None:
        """Give positional words to arguments: from the left, and from the right of a list."""
        params = [p for p in self.tool.params if p.kind == "argument"]
        many = next((i for i, p in enumerate(params) if p.many), len(params))
        start, stop = 0, len(words)
        spans: list[tuple[Param, int, int]] = []
        for param in params[:many]:
            end = min(start + param.width, stop)
            spans.append((param, start, end))
            start = end
        for param in reversed(params[many + 1 :]):
            begin = max(stop - param.width, start)
            spans.append((param, begin, stop))
            stop = begin
        if many < len(params):
            spans.insert(many, (params[many], start, stop))
            start = stop
        for param, begin, end in spans:
            if begin < end and not param.many and end - begin < param.width:
                self._problem("E1006", param, f"{param.name!r} takes {param.width} values")
            elif begin < end:
                self.line.arguments[param.name] = Words(words[begin:end], self.judge)
        if many == len(params) and start < len(words) and not self.unsure:
            extra = " ".join(words[start:])
            self.line.problems.append(Problem("E1005", None, f"Too many arguments: {extra}"))

    def _defaults(self) -> None:
        """Defaults go the way of all values in Typer; where that is doubtful, it is Typer's way."""
        for param in self.tool.params:
            unused = param.name in self.line.arguments or param.required
            if unused or param.kind == "injected" or (param.settled and not param.choosy):
                continue
            from tooli.contract.values import is_doubtful

            if is_doubtful(param):
                self._leave(f"the default of {param.name} is not of its type")

    def _environment(self) -> None:
        """Parameters with `envvar=` that the line does not give, from the environment."""
        for param in self.tool.params:
            names = param.settings.get("envvar")
            if names and param.name not in self.line.arguments:
                self._from_environment(param, [names] if isinstance(names, str) else names)

    def _from_environment(self, param: Param, names: Sequence[str]) -> None:
        import os

        for name in names:
            text = os.environ.get(name)
            if text:
                if param.many or param.width > 1:
                    from tooli.contract.tool import PathShape

                    shape = plain(param.shape)
                    paths = isinstance(shape, ListOf) and isinstance(shape.item, PathShape)
                    texts = text.split(os.pathsep) if paths else text.split()
                else:
                    texts = [text]
                if param.many and not texts:
                    self._leave(f"{name} holds nothing for {param.name}")
                    return
                self.line.arguments[param.name] = Words(texts, self.judge, typed=False)
                return
