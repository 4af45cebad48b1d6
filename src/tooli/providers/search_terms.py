"""Words, stems and phrases of a text, for the search over tools.

split_words("findFiles")             ──▶ ["find", "files", "findfiles"]
stem("renamed")                      ──▶ "renam"
find_phrases(["turn", "it", "off"])  ──▶ ((0, 2), "turn-off")
"""

from __future__ import annotations

from itertools import pairwise

from tooli.core import Record
from tooli.providers.thesaurus import SIMILAR_WORDS

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_TEXT_CHARS = 4_000

_STOP_WORD_LIST = """
a about across after all along also am an and any anybody anyone anything are around as at
away back be because been before being between but by can cannot could did do does doesn't doing
don't down during each every for from give going got had has have he her hers him his how i id if im
in inside into is isn't it its just let lets like many me might mine must my need needs no not now
of off on only onto or other our ours out over own per please really right shall she should since so
some somebody someone something soon such than that the their them then there these they thing
things this those through to too until up upon us very via want wants was we were what whatever when
where whether which while who whom whose why will with within without would yet you your
yours
"""
STOP_WORDS = frozenset(_STOP_WORD_LIST.replace("'", "").split())  # as split_words returns them
_PARTICLES = frozenset(("away", "back", "down", "in", "off", "on", "out", "over", "up"))
"""Words that are part of a verb, such as "log in"."""
_SEPARABLE_PARTICLES = frozenset(("away", "back", "down", "off", "on", "out", "up"))
"""The stems of particles that may stand behind an object, such as "turn the lights off"."""
_MAX_OBJECT_WORDS, _MAX_COMPOUND_CHARS = 3, 12

_READING_WORD_LIST = """
am are did does how is what when where which who whose why
browse check compute count display estimate fetch find get grep list look measure read search see
show summarize view
"""
_WRITING_WORD_LIST = """
add approve assign cancel change create delete disable enable give make move put remove send set
start stop turn write
"""
_READING_WORDS = frozenset(_READING_WORD_LIST.split())
_WRITING_WORDS = frozenset(_WRITING_WORD_LIST.split())

_SEPARATORS = {code: None if code == 39 else " " for code in range(128) if not chr(code).isalnum()}
_ACCENT_REPLACEMENTS = str.maketrans("øØłŁđĐ’", "oOlLdD'")  # NFKD does not decompose these
_IRREGULAR_FORMS = """
begin began begun / break broke broken / build built / buy bought / choose chose chosen / come came
draw drew drawn / fall fell fallen / find found / freeze froze frozen / give gave given
go went gone / hide hid hidden / hold held / keep kept / know knew known / lose lost / make made
meet met / pay paid / rebuild rebuilt / rewrite rewrote rewritten / rise rose risen / run ran
sell sold / send sent / show shown / speak spoke spoken / spend spent
steal stole stolen / stick stuck / take took taken / teach taught / tell told / throw threw thrown
undo undid undone / wake woke woken / win won / withdraw withdrew withdrawn / write wrote written
child children / index indices / criterion criteria
"""
_BASE_FORMS = {
    form: base
    for base, *forms in map(str.split, _IRREGULAR_FORMS.replace("/", "\n").strip().split("\n"))
    for form in forms
}
_BRITISH_ENDINGS = ("ise", "ised", "ising", "isation")
_VOWELS = frozenset("aeiouy")
_FIRST_UNSPACED = "\u2e80"  # scripts from here on have no spaces between words


def extract_terms(text: str, known: dict[str, list[str]]) -> list[str]:
    """Return the stems of a text. `known` caches the stems of a chunk of text."""
    terms: list[str] = []
    for chunk in text[:MAX_TEXT_CHARS].split():
        found = known.get(chunk)
        if found is None:
            found = known[chunk] = list(map(stem, split_words(chunk)))
        terms += found
    return terms


def split_words(text: str) -> list[str]:
    """Return the words of a text in lower case, with the parts of identifiers."""
    return [part for chunk in _normalize_text(text).split() for part in _split_identifier(chunk)]


def normalize_name(text: str) -> str:
    """Return a normalized name: equal for `find-files`, `findFiles` and `Find files`."""
    return _normalize_text(text).replace(" ", "").casefold()


def _normalize_text(text: str) -> str:
    """Return a text reduced to letters without accents, digits and spaces."""
    if not text.isascii():
        from unicodedata import category, normalize

        # Combining marks are removed, not replaced by spaces, which would split the word.
        decomposed = normalize("NFKD", text.translate(_ACCENT_REPLACEMENTS))
        kept = [c for c in decomposed if c.isascii() or c.isalnum() or category(c)[0] != "M"]
        text = "".join([c if c.isascii() or c.isalnum() else " " for c in kept])
    return text.translate(_SEPARATORS)


def _split_identifier(chunk: str) -> list[str]:
    """Return the parts of `camelCase` or `sha256`, and the whole identifier."""
    whole = chunk.casefold()
    if chunk.isascii() and chunk.isalpha() and (chunk[1:].islower() or chunk.isupper()):
        return [whole]
    cuts = [0, *[at for at in range(1, len(chunk)) if _is_word_boundary(chunk, at)]]
    parts = [chunk[a:b].casefold() for a, b in zip(cuts, [*cuts[1:], len(chunk)], strict=True)]
    for part in [part for part in parts if part[0] >= _FIRST_UNSPACED]:
        parts += [part[i : i + 2] for i in range(len(part) - 1)]  # bigrams
    return parts if whole in parts else [*parts, whole]


def _is_word_boundary(chunk: str, at: int) -> bool:
    """True if a part starts here: `find|Files`, `HTTP|Server`, `sha|256`, but not in `URLs`."""
    before, here, after = chunk[at - 1], chunk[at], chunk[at + 1 :]
    if before.isdigit() != here.isdigit() or (before >= _FIRST_UNSPACED) != (
        here >= _FIRST_UNSPACED
    ):
        return True
    return here.isupper() and (not before.isupper() or (after[:1].islower() and after != "s"))


def stem(word: str) -> str:
    """Return the stem of a term: the same for `deletes`, `deleted` and `deletion`."""
    word = _singular(_BASE_FORMS.get(word, word))
    if len(word) > 5 and word.endswith(_BRITISH_ENDINGS):
        start, _, end = word.rpartition("is")
        word = f"{start}iz{end}"
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


def compounds_in(terms: list[str]) -> Iterator[str]:
    """Iterate over pairs of adjacent terms as one word: `login` for "log in"."""
    for first, second in pairwise(terms):
        is_stop_word = second in STOP_WORDS and second not in _PARTICLES
        if first in STOP_WORDS or is_stop_word:
            continue
        if len(first) + len(second) <= _MAX_COMPOUND_CHARS:
            yield first + second


def asks_to_read(words: list[str]) -> bool | None:
    """True if a text asks for information, False if it asks for a change, None if unknown."""
    first = words[0] if words else ""
    return True if first in _READING_WORDS else False if first in _WRITING_WORDS else None


# ------------------------------------------------------------------ similar words


class SimilarTerms(Record):
    """The thesaurus by stems. The term of a phrase is its stems with hyphens between them."""

    similar: dict[str, list[str]]
    """The terms of similar meaning of each term."""
    phrases: dict[str, list[tuple[str, ...]]]
    """The phrases by their first stem."""


_loaded: list[SimilarTerms] = []


def load_similar_terms() -> SimilarTerms:
    """Return the thesaurus. It is parsed once."""
    if not _loaded:
        _loaded.append(_parse_thesaurus(SIMILAR_WORDS))
    return _loaded[0]


def _parse_thesaurus(text: str) -> SimilarTerms:
    similar: dict[str, list[str]] = {}
    terms: dict[str, str] = {}
    for line in text.replace("/", "\n").split("\n"):
        group: list[list[str]] = []
        for side in line.split("<"):
            for word in side.split():
                if word not in terms:
                    terms[word] = "-".join(map(stem, word.split("-")))
            group.append([terms[word] for word in side.split()])
        for term in group[-1]:
            others = [other for other in group[0] if other != term]
            similar[term] = list(dict.fromkeys([*similar.get(term, ()), *others]))
    phrases: dict[str, list[tuple[str, ...]]] = {}
    for term in dict.fromkeys(terms.values()):
        if "-" in term:
            stems = tuple(term.split("-"))
            phrases.setdefault(stems[0], []).append(stems)
    return SimilarTerms(similar, phrases)


def find_phrases(stems: list[str]) -> Iterator[tuple[tuple[int, ...], str]]:
    """Iterate over the phrases in a text: the places of their words, and the term of the phrase.

    The object may stand before the last word of a phrase: "turn the lights off". Before "in" and
    "over" it may not, because they are often prepositions: "read the log lines in a file".
    """
    phrases = load_similar_terms().phrases
    for at, first in enumerate(stems):
        for phrase in phrases.get(first, ()):
            size = len(phrase)
            if tuple(stems[at : at + size]) == phrase:
                yield tuple(range(at, at + size)), "-".join(phrase)
            elif size == 2 and phrase[1] in _SEPARABLE_PARTICLES:
                rest = stems[at + 2 : at + 2 + _MAX_OBJECT_WORDS]
                if phrase[1] in rest:
                    yield (at, at + 2 + rest.index(phrase[1])), "-".join(phrase)
