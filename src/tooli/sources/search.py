"""Find the right tool among many, by ranked words.

    tools ──once──▶ Index ── "deleting files" ──▶ Hit(delete-file), Hit(delete-folder), …

The ranking is BM25F: a word weighs more the rarer it is, and in a name more than in prose;
its synonyms, its continuations and its near-misses count at a discount.
"""

from __future__ import annotations

from math import log

from tooli.contract.record import Record
from tooli.contract.tool import plain
from tooli.sources.signature import choices

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tooli.contract.tool import Tool

_WEIGHTS = (6.0, 4.0, 3.0, 2.0, 1.5, 1.0, 0.7)  # in the order of _texts
_SATURATION, _LENGTH = 2.0, 0.6  # BM25's k and b
_SYNONYM, _PREFIX, _TYPO = 0.6, 0.5, 0.5
_LONGEST, _MOST = 4_000, 48  # characters of a text that are read, words of a query that count

_FILLERS = (
    " a about all an and any are as at be by can could do does for from give has have how i if in"
    " into is it its let like me my need of on or our please should so some that the their them"
    " there these this those to us want was we what when where which who will with would you your "
)
_FAMILIES = """
delete remove rm erase drop destroy purge wipe unlink trash discard / join merge combine concatenate
list ls show find search query display view see browse enumerate locate look grep / compare diff
create new add make generate init insert register / copy clone duplicate cp replicate
update edit modify change rename alter set adjust patch / move mv rename relocate transfer
get fetch read download retrieve show view see print load cat open / check verify validate test
send post publish upload push submit deliver / email mail message notify / comment reply answer
run execute exec start launch invoke trigger / stop kill cancel abort terminate halt end quit
undo revert restore rollback reset recover / save store write record commit / build compile
compress zip archive pack / extract unzip decompress unpack / deploy ship release rollout
enable activate unlock allow / disable deactivate suspend block lock ban / connect attach link
refund reimburse repay / charge bill invoice pay payment / log history journal / repository repo
folder directory dir / user usr account member person people customer / picture image photo
configuration config setting preference / disconnect detach / issue ticket bug
"""
"""Words that are used for one another. A word may belong to more than one family."""


class Hit(Record):
    """A tool that was found, and how well it fits: scores of one search compare, no others."""

    tool: Tool
    score: float


class Index:
    """An app's tools, read once to be searched often. Hidden tools are not in it."""

    __slots__ = ("_begins", "_groups", "_kin", "_names", "_postings", "_tools")

    def __init__(self, tools: Iterable[Tool]) -> None:
        self._tools = [tool for tool in tools if not tool.hidden]
        self._groups = [tuple(map(_bare, tool.path[:-1])) for tool in self._tools]
        self._postings, self._kin = _weigh(self._tools), _synonyms()
        self._begins: dict[str, list[str]] = {}
        for term in self._postings:
            self._begins.setdefault(term[0], []).append(term)
        self._names: dict[str, dict[int, int]] = {}
        for at, tool in enumerate(self._tools):
            self._names.setdefault(_bare(tool.name), {})[at] = 1
            self._names.setdefault(_bare("".join(tool.path) or tool.name), {})[at] = 2

    def search(self, query: str, limit: int = 10) -> list[Hit]:
        """The tools that fit, best first; ties and an empty query keep the app's order.

        A word such as `users:` or `billing.invoices:` asks for tools below that group only.
        """
        words = query[:_LONGEST].split()
        groups = {word: _group(word) for word in words if word[-1] == ":"}
        words = [word for word in words if not groups.get(word)]
        paths, below = enumerate(self._groups), groups.values()
        among = [at for at, path in paths if all(path[: len(group)] == group for group in below)]
        if not words:
            return [Hit(self._tools[at], 0.0) for at in among[: max(limit, 0)]]
        scores = self._score(" ".join(words))
        found = sorted([at for at in among if at in scores], key=lambda at: -scores[at])
        return [Hit(self._tools[at], scores[at]) for at in found[: max(limit, 0)]]

    def _score(self, text: str) -> dict[int, float]:
        words = list(dict.fromkeys(_words(text)))
        words = [word for word in words if f" {word} " not in _FILLERS][:_MOST] or words[:_MOST]
        total: dict[int, float] = {}
        matched: dict[int, int] = {}
        for word in words:
            for at, score in self._met(word).items():
                total[at] = total.get(at, 0.0) + score
                matched[at] = matched.get(at, 0) + 1
        for at, count in matched.items():  # many words met a little beat one that is met well
            total[at] *= 0.4 + 0.6 * count / len(words)
        above = 1 + max(total.values(), default=0.0)
        for at, rank in self._names.get(_bare(text), {}).items():
            total[at] = total.get(at, 0.0) + above * rank
        return total

    def _met(self, word: str) -> dict[int, float]:
        """The tools that have a word, or what may be meant by it, and how well."""
        meant: dict[int, float] = {}
        for term, weight in self._meanings(word):
            for at, strength in self._postings[term].items():
                if weight * strength > meant.get(at, 0.0):
                    meant[at] = weight * strength
        said = self._postings.get(_stem(word), {})
        # A synonym is as rare as all of them together, or the rarest would be preferred.
        sizes = len(meant | said) + 0.5, len(said) + 0.5
        rarity, own = [log(1 + (len(self._tools) + 0.5) / size) for size in sizes]
        met = {at: strength * rarity for at, strength in meant.items()}
        return met | {at: max(met.get(at, 0.0), said[at] * own) for at in said}

    def _meanings(self, word: str) -> Iterator[tuple[str, float]]:
        """What else a word may stand for, among the terms of the index, and at what discount."""
        stem, kin, known = _stem(word), self._kin, self._postings
        others = {term: _SYNONYM for term in kin.get(stem, ()) if term in known}
        for term in self._begins.get(word[0], ()) if len(word) > 1 else ():
            if len(term) > len(stem) and term.startswith(word):
                others.setdefault(term, _PREFIX * len(word) / len(term))
        for size in range(len(stem) - 1, 3, -1):  # "removal" begins with the stem of "remove"
            if stem[:size] in known:
                others.setdefault(stem[:size], _PREFIX * size / len(stem))
                break
        yield from others.items()
        if not others and len(word) > 3 and stem not in known and stem not in kin:
            yield from self._near_miss(word)

    def _near_miss(self, word: str) -> Iterator[tuple[str, float]]:
        """What a misspelled word probably meant; one of its first two letters is trusted."""
        from tooli.errors import nearest

        kin, known = self._kin, self._postings
        near = [term for start in dict.fromkeys(word[:2]) for term in self._begins.get(start, ())]
        letters = {*word}  # the distance itself is dear, and an edit touches two letters at most
        near = [t for t in (*near, *kin) if len(t) > 2 and len(letters.symmetric_difference(t)) < 3]
        meant = nearest(_stem(word), near) or nearest(word, near) or ""
        if meant in known:
            yield meant, _TYPO
        yield from [(term, _TYPO * _SYNONYM) for term in kin.get(meant, ()) if term in known]


def _weigh(tools: list[Tool]) -> dict[str, dict[int, float]]:
    """For each term, the tools that have it, and how strongly."""
    seen: dict[str, list[str]] = {}
    rows = [[_terms(text, seen) for text in _texts(tool)] for tool in tools]
    sizes = [[len(terms) for terms in field if terms] or [1] for field in zip(*rows, strict=True)]
    usual = [sum(lengths) / len(lengths) for lengths in sizes]
    postings: dict[str, dict[int, float]] = {}
    for at, row in enumerate(rows):
        strengths: dict[str, float] = {}
        for terms, weight, length in zip(row, _WEIGHTS, usual, strict=True):
            share = weight / (1 - _LENGTH + _LENGTH * len(terms) / length)
            for term in terms:
                strengths[term] = strengths.get(term, 0.0) + share
        for term, strength in strengths.items():
            postings.setdefault(term, {})[at] = strength / (strength + _SATURATION)
    return postings


def _texts(tool: Tool) -> tuple[str, ...]:
    """What a tool says about itself, the weightiest first."""
    doc, guidance, params = tool.doc, tool.guidance, tool.public
    details = [doc.examples, *[param.help or doc.params.get(param.name, "") for param in params]]
    details += [str(value) for param in params for value in choices(plain(param.shape))]
    for example in guidance.examples:
        details += map(str, (example.get("description", ""), *(example.get("args") or ())))
    return (
        tool.name,
        " ".join(tool.path[:-1]),
        doc.summary,
        f"{guidance.when_to_use or ''} {guidance.task_group or ''}",
        " ".join([param.name for param in params]),
        f"{doc.description} {doc.returns}",
        " ".join(details),
    )


# ------------------------------------------------------------------ words

_SPACES = {code: None if code == 39 else " " for code in range(128) if not chr(code).isalnum()}
_LETTERS = str.maketrans("øØłŁđĐ’", "oOlLdD'")  # what Unicode does not take for an accent
_VOWELS, _EAST = frozenset("aeiouy"), "\u2e80"  # from there on, scripts put no spaces in between


def _terms(text: str, seen: dict[str, list[str]]) -> list[str]:
    """The stems of a text; `seen` remembers what was split, as most words come again."""
    terms: list[str] = []
    for chunk in text[:_LONGEST].split():
        found = seen.get(chunk)
        if found is None:
            found = seen[chunk] = list(map(_stem, _words(chunk)))
        terms += found
    return terms


def _words(text: str) -> list[str]:
    return [part for chunk in _spaced(text).split() for part in _parts(chunk)]


def _bare(text: str) -> str:
    """A name by which `find-files`, `find_files`, `findFiles` and `Find files` are the same."""
    return _spaced(text).replace(" ", "").casefold()


def _group(word: str) -> tuple[str, ...]:
    steps = map(_bare, word.replace("/", ".").replace(":", ".").split("."))
    return tuple([step for step in steps if step])


def _spaced(text: str) -> str:
    """The text with nothing but letters without accents, digits and spaces."""
    if not text.isascii():
        from unicodedata import category, normalize

        # Left in, the marks would break the words that they stand on: they are not letters.
        marked = normalize("NFKD", text.translate(_LETTERS))
        kept = [c for c in marked if c.isascii() or c.isalnum() or category(c)[0] != "M"]
        text = "".join([c if c.isascii() or c.isalnum() else " " for c in kept])
    return text.translate(_SPACES)


def _parts(chunk: str) -> list[str]:
    """The words in `camelCase` or `sha256`, and the whole, as others may write it as one."""
    whole = chunk.casefold()
    if chunk.isascii() and chunk.isalpha() and (chunk[1:].islower() or chunk.isupper()):
        return [whole]
    cuts = [0, *[at for at in range(1, len(chunk)) if _parted(chunk, at)]]
    parts = [chunk[a:b].casefold() for a, b in zip(cuts, [*cuts[1:], len(chunk)], strict=True)]
    for part in [part for part in parts if part[0] >= _EAST]:
        parts += [part[i : i + 2] for i in range(len(part) - 1)]  # pairs, as words are not parted
    return parts if whole in parts else [*parts, whole]


def _parted(chunk: str, at: int) -> bool:
    """Whether a word begins here: `find|Files`, `HTTP|Server`, `sha|256`, but not in `URLs`."""
    before, here, after = chunk[at - 1], chunk[at], chunk[at + 1 :]
    if before.isdigit() != here.isdigit() or (before >= _EAST) != (here >= _EAST):
        return True
    return here.isupper() and (not before.isupper() or (after[:1].islower() and after != "s"))


def _stem(word: str) -> str:
    """What `deletes`, `deleted`, `deleting` and `deletion` have in common; not always a word."""
    word = _singular(word)
    for ending in ("ing", "ed", "ion"):
        rest = word.removesuffix(ending)
        if 2 < len(rest) < len(word) and rest[-1] != "e" and not _VOWELS.isdisjoint(rest):
            word = rest
            break
    if len(word) > 3 and word[-1] == "e":
        word = _singular(word[:-1])
    if len(word) > 3 and word[-1] == word[-2]:
        word = word[:-1]
    if len(word) > 3 and word[-1] == "y" and word[-2] not in "aeiou":
        word = word[:-1] + "i"
    return word


def _singular(word: str) -> str:
    return word[:-1] if len(word) > 2 and word[-1] == "s" and word[-2] not in "sui" else word


def _synonyms() -> dict[str, list[str]]:
    """Each stem of the families, and the stems beside it."""
    kin: dict[str, list[str]] = {}
    for family in _FAMILIES.replace("/", "\n").split("\n"):
        stems = list(map(_stem, family.split()))
        for stem in stems:
            kin.setdefault(stem, []).extend([other for other in stems if other != stem])
    return kin
