"""Full-text search over an app's tools, and signatures that show the hits to agents.

    ToolIndex(tools).search("deleting files") ──▶ [SearchHit(delete-file, 7.1), …]
    format_signature(tool)                    ──▶ "delete-file(path: path)  # Delete a file."

The ranking is BM25F. Rare terms weigh more than frequent ones, and terms in a name more than terms
in a description. Synonyms, prefixes and misspellings have a lower weight.
"""

from __future__ import annotations

from itertools import pairwise
from math import log

from tooli.core import Record
from tooli.core import tool as shapes
from tooli.core.secret_fields import documented_default
from tooli.errors import closest_match
from tooli.schema.tool_reader import infer_shape, return_annotation
from tooli.text.jsonable import is_list, is_object, to_jsonable

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from tooli.core.tool import Param, Shape, Tool

_WEIGHTS = (4.0, 4.0, 3.0, 2.0, 1.5, 1.0, 0.7)  # in the order of _searchable_fields
_SATURATION, _LENGTH_NORMALIZATION = 2.0, 0.4  # BM25's k and b
_SYNONYM_DISCOUNT, _PREFIX_DISCOUNT, _TYPO_DISCOUNT = 0.75, 0.5, 0.5
_MAX_TEXT_CHARS, _MAX_QUERY_TERMS = 4_000, 48
_COMPOUND_DISCOUNT, _MIN_COMPOUND_WEIGHT, _MAX_COMPOUND_CHARS = 0.6, 3.0, 12

_STOP_WORDS = (
    " a about all an and any are as at be by can could do does for from give has have how i if"
    " in into is it its let like me my need now of on or our please right should so some that"
    " the their them there these this those to us want was we what when where which who will"
    " with would you your "
)
_PARTICLES = frozenset(("in", "on", "up", "out", "off", "down", "over"))
"""Words that are part of a verb, such as "log in"."""
_SYNONYM_GROUPS = """
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
package parcel shipment / follow tail monitor / statement query sql / failed broken failure
vacation holiday absence leave / forecast predict prediction estimate / reserve book
meeting event appointment / previous earlier last back rollback / newsletter mailing / count many
"""
"""Groups of synonyms, separated by line ends and slashes. A term may be in several."""


class SearchHit(Record):
    """A tool that matches a query. Scores are comparable within one search only."""

    tool: Tool
    score: float


class ToolIndex:
    """A search index over tools. Hidden tools are not in it."""

    __slots__ = ("_groups", "_names", "_postings", "_synonyms", "_terms_by_letter", "_tools")

    def __init__(self, tools: Iterable[Tool]) -> None:
        self._tools = [tool for tool in tools if not tool.hidden]
        self._groups = [tuple(map(_normalize_name, tool.path[:-1])) for tool in self._tools]
        self._postings, self._synonyms = _build_postings(self._tools), _build_synonyms()
        self._terms_by_letter: dict[str, list[str]] = {}
        for term in self._postings:
            self._terms_by_letter.setdefault(term[0], []).append(term)
        self._names: dict[str, dict[int, int]] = {}
        for at, tool in enumerate(self._tools):
            self._names.setdefault(_normalize_name(tool.name), {})[at] = 1
            self._names.setdefault(_normalize_name("".join(tool.path) or tool.name), {})[at] = 2

    def search(self, query: str, limit: int = 10) -> list[SearchHit]:
        """Return the tools that match a query, best first.

        Tools with equal scores are in the app's order. An empty query matches all tools. A term
        such as `users:` or `billing.invoices:` restricts the search to that group.
        """
        words = query[:_MAX_TEXT_CHARS].split()
        groups = {word: _parse_group(word) for word in words if word[-1] == ":"}
        words = [word for word in words if not groups.get(word)]
        candidates = [
            at
            for at, path in enumerate(self._groups)
            if all(path[: len(group)] == group for group in groups.values())
        ]
        if not words:
            return [SearchHit(self._tools[at], 0.0) for at in candidates[: max(limit, 0)]]
        scores = self._score(" ".join(words))
        found = sorted([at for at in candidates if at in scores], key=lambda at: -scores[at])
        return [SearchHit(self._tools[at], scores[at]) for at in found[: max(limit, 0)]]

    def _score(self, text: str) -> dict[int, float]:
        typed = _split_words(text)
        words = list(dict.fromkeys(typed))
        words = [word for word in words if f" {word} " not in _STOP_WORDS][
            :_MAX_QUERY_TERMS
        ] or words[:_MAX_QUERY_TERMS]
        compounds = [
            first + second
            for first, second in pairwise(typed[:_MAX_QUERY_TERMS])
            if _stem(first + second) in self._postings
        ]
        words = [word for word in words if not any([word in each for each in compounds])]
        words += compounds
        total: dict[int, float] = {}
        matched: dict[int, int] = {}
        for word in words:
            for at, score in self._match_word(word).items():
                total[at] = total.get(at, 0.0) + score
                matched[at] = matched.get(at, 0) + 1
        for at, count in matched.items():  # prefer tools that match more terms of the query
            total[at] *= 0.4 + 0.6 * count / len(words)
        name_bonus = 1 + max(total.values(), default=0.0)
        for at, rank in self._names.get(_normalize_name(text), {}).items():
            total[at] = total.get(at, 0.0) + name_bonus * rank
        return total

    def _match_word(self, word: str) -> dict[int, float]:
        """Return the tools that match a term or a variant of it, with their scores."""
        related: dict[int, float] = {}
        for term, weight in self._expand_word(word):
            for at, strength in self._postings[term].items():
                if weight * strength > related.get(at, 0.0):
                    related[at] = weight * strength
        exact = self._postings.get(_stem(word), {})
        # All variants share one document frequency; otherwise the rarest would be preferred.
        sizes = len(related | exact) + 0.5, len(exact) + 0.5
        rarity, own_rarity = [log(1 + (len(self._tools) + 0.5) / size) for size in sizes]
        scores = {at: strength * rarity for at, strength in related.items()}
        return scores | {at: max(scores.get(at, 0.0), exact[at] * own_rarity) for at in exact}

    def _expand_word(self, word: str) -> Iterator[tuple[str, float]]:
        """Iterate over variants of a term in the index, with their discounts."""
        stem, synonyms, postings = _stem(word), self._synonyms, self._postings
        related = {term: _SYNONYM_DISCOUNT for term in synonyms.get(stem, ()) if term in postings}
        for term in self._terms_by_letter.get(word[0], ()) if len(word) > 1 else ():
            if len(term) > len(stem) and term.startswith(word):
                related.setdefault(term, _PREFIX_DISCOUNT * len(word) / len(term))
        for size in range(len(stem) - 1, 3, -1):  # "removal" starts with the stem of "remove"
            if stem[:size] in postings:
                related.setdefault(stem[:size], _PREFIX_DISCOUNT * size / len(stem))
                break
        for prefix in ("re", "un"):  # "retrain" is found by "train"
            rest = _stem(word.removeprefix(prefix))
            if rest != stem and len(rest) > 2 and rest in postings:
                related.setdefault(rest, _PREFIX_DISCOUNT)
        yield from related.items()
        if not related and len(word) > 3 and stem not in postings and stem not in synonyms:
            yield from self._correct_spelling(word)

    def _correct_spelling(self, word: str) -> Iterator[tuple[str, float]]:
        """Yield the known term closest to a misspelled word, and its synonyms, with discounts.

        A term of the index is considered only if it starts with one of the first two letters of
        the misspelled word.
        """
        synonyms, postings = self._synonyms, self._postings
        nearby = [
            term
            for start in dict.fromkeys(word[:2])
            for term in self._terms_by_letter.get(start, ())
        ]
        letters = {*word}  # a cheap filter: one edit adds or removes at most two letters
        nearby = [
            t
            for t in (*nearby, *synonyms)
            if len(t) > 2 and len(letters.symmetric_difference(t)) < 3
        ]
        closest = closest_match(_stem(word), nearby) or closest_match(word, nearby) or ""
        if closest in postings:
            yield closest, _TYPO_DISCOUNT
        yield from [
            (term, _TYPO_DISCOUNT * _SYNONYM_DISCOUNT)
            for term in synonyms.get(closest, ())
            if term in postings
        ]


def _build_postings(tools: list[Tool]) -> dict[str, dict[int, float]]:
    """Return the tools that contain each term, with weights."""
    seen: dict[str, list[str]] = {}
    rows = [[_extract_terms(text, seen) for text in _searchable_fields(tool)] for tool in tools]
    sizes = [[len(terms) for terms in field if terms] or [1] for field in zip(*rows, strict=True)]
    average_lengths = [sum(lengths) / len(lengths) for lengths in sizes]
    postings: dict[str, dict[int, float]] = {}
    for at, row in enumerate(rows):
        strengths: dict[str, float] = {}
        compounds: dict[str, float] = {}  # two adjacent words as one, such as `login`
        for terms, weight, length in zip(row, _WEIGHTS, average_lengths, strict=True):
            share = weight / (
                1 - _LENGTH_NORMALIZATION + _LENGTH_NORMALIZATION * len(terms) / length
            )
            for term in terms:
                strengths[term] = strengths.get(term, 0.0) + share
            if weight >= _MIN_COMPOUND_WEIGHT:
                for compound in _compounds(terms):
                    compounds[compound] = compounds.get(compound, 0.0) + share * _COMPOUND_DISCOUNT
        for compound, strength in compounds.items():
            strengths.setdefault(compound, strength)
        for term, strength in strengths.items():
            postings.setdefault(term, {})[at] = strength / (strength + _SATURATION)
    return postings


def _compounds(terms: list[str]) -> Iterator[str]:
    """Yield pairs of adjacent terms as one word: `login` for "log in"."""
    for first, second in pairwise(terms):
        is_stop_word = f" {second} " in _STOP_WORDS and second not in _PARTICLES
        if f" {first} " in _STOP_WORDS or is_stop_word:
            continue
        if len(first) + len(second) <= _MAX_COMPOUND_CHARS:
            yield first + second


def _searchable_fields(tool: Tool) -> tuple[str, ...]:
    """Return the texts of a tool to search, in the order of _WEIGHTS."""
    doc, guidance, params = tool.doc, tool.guidance, tool.public_params
    details = [doc.examples, *[param.help or doc.params.get(param.name, "") for param in params]]
    details += [
        str(value)
        for param in params
        for value in shape_choices(shapes.unwrap_optional(param.shape))
    ]
    for example in guidance.examples:
        details += map(str, (example.get("description", ""), *(example.get("args") or ())))
    return (
        tool.name,
        " ".join(tool.path[:-1]),
        doc.summary,
        " ".join(filter(None, (guidance.when_to_use, guidance.task_group, *guidance.tags))),
        " ".join([param.name for param in params]),
        f"{doc.description} {doc.returns}",
        " ".join(details),
    )


# ------------------------------------------------------------------ terms

_SEPARATORS = {code: None if code == 39 else " " for code in range(128) if not chr(code).isalnum()}
_ACCENT_REPLACEMENTS = str.maketrans("øØłŁđĐ’", "oOlLdD'")  # NFKD does not decompose these
_VOWELS = frozenset("aeiouy")
_FIRST_UNSPACED = "\u2e80"  # scripts from here on have no spaces between words


def _extract_terms(text: str, cache: dict[str, list[str]]) -> list[str]:
    """Return the stems of a text. `cache` maps chunks of text to their stems."""
    terms: list[str] = []
    for chunk in text[:_MAX_TEXT_CHARS].split():
        found = cache.get(chunk)
        if found is None:
            found = cache[chunk] = list(map(_stem, _split_words(chunk)))
        terms += found
    return terms


def _split_words(text: str) -> list[str]:
    return [part for chunk in _normalize_text(text).split() for part in _split_identifier(chunk)]


def _normalize_name(text: str) -> str:
    """Return a normalized name: equal for `find-files`, `findFiles` and `Find files`."""
    return _normalize_text(text).replace(" ", "").casefold()


def _parse_group(word: str) -> tuple[str, ...]:
    steps = map(_normalize_name, word.replace("/", ".").replace(":", ".").split("."))
    return tuple([step for step in steps if step])


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


def _stem(word: str) -> str:
    """Return the stem of a term: the same for `deletes`, `deleted` and `deletion`."""
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


def _build_synonyms() -> dict[str, list[str]]:
    """Return the synonyms of each stem."""
    synonyms: dict[str, list[str]] = {}
    for family in _SYNONYM_GROUPS.replace("/", "\n").split("\n"):
        stems = list(map(_stem, family.split()))
        for stem in stems:
            synonyms.setdefault(stem, []).extend([other for other in stems if other != stem])
    return synonyms


# ------------------------------------------------------------------ signatures

_MAX_SIGNATURE_CHARS, _MAX_CHOICES = 300, 6
_ESCAPES = {**{i: f"\\u{i:04x}" for i in range(32)}, 34: '\\"', 92: "\\\\"}


def format_signature(tool: Tool) -> str:
    """Return a tool as one line. If it is too long, optional parameters and text are cut.

    `find-files(pattern: str, root: path = ".", limit?: int) -> str[]  # Find files. [read-only]`
    """
    labels = [label for label in tool.effects.labels() if label in ("read-only", "destructive")]
    labels += ["needs approval"] if tool.guard.needs_human else []
    labels += ["deprecated"] if tool.deprecated else []
    suffix = f"[{', '.join(labels)}]" if labels else ""
    name, result = _truncate(tool.key or tool.name, 80), _truncate(_format_result(tool), 80)
    head = f"{name}({_format_parameters(tool, 200 - len(name) - len(result))}){result}"
    summary = _truncate(
        " ".join(tool.doc.summary.split()), _MAX_SIGNATURE_CHARS - len(head) - len(suffix) - 5
    )
    return f"{head}  # {f'{summary} {suffix}'.strip()}" if summary or suffix else head


def _truncate(text: str, max_chars: int) -> str:
    return text if len(text) <= max_chars else text[: max(max_chars - 1, 0)] + "…"


def _format_parameters(tool: Tool, max_chars: int) -> str:
    """Return the parameters. If they are too long, optional ones are left out from the end."""
    shown = [param for param in tool.public_params if param.required or not param.hidden]
    formatted = [_format_parameter(param) for param in shown]
    for at in range(len(formatted) - 1, -1, -1):
        if not shown[at].required and len(", ".join(formatted)) > max_chars:
            del formatted[at]
    return _truncate(
        ", ".join(formatted if len(formatted) == len(shown) else [*formatted, "…"]),
        max(max_chars, 60),
    )


def _format_parameter(param: Param) -> str:
    """Return one parameter. A default that is None, long or not JSON is shown as `?`."""
    if param.required:
        return f"{param.name}: {_format_shape(param.shape)}"
    value = documented_default(param)
    default = "null" if value is shapes.MISSING else _format_json(value)
    if default == "null" or len(default) > 40:
        return f"{param.name}?: {_format_shape(shapes.unwrap_optional(param.shape))}"
    return f"{param.name}: {_format_shape(param.shape)} = {default}"


def _format_json(value: object) -> str:
    """Return a value as JSON, without the `json` module, which is slow to import."""
    warnings: list[str] = []
    value = to_jsonable(value, warnings)
    if warnings or value is None:
        return "null"
    if isinstance(value, str):
        return f'"{value.translate(_ESCAPES)}"'
    if is_list(value):
        return f"[{', '.join(map(_format_json, value))}]"
    if is_object(value):
        members = [f"{_format_json(key)}: {_format_json(part)}" for key, part in value.items()]
        return f"{{{', '.join(members)}}}"
    return str(value).lower()  # true, false or a number


def _format_shape(shape: Shape) -> str:
    """Return the type of a shape in short form."""
    match shape:
        case shapes.Scalar(kind):
            return kind.__name__
        case shapes.PathShape():
            return "path"
        case shapes.Choice():
            return _format_choices(shape_choices(shape))
        case shapes.ListOf(item):
            formatted = _format_shape(item)
            return f"({formatted})[]" if "|" in formatted else f"{formatted}[]"
        case shapes.TupleOf(items):
            return f"[{', '.join(map(_format_shape, items))}]"
        case shapes.Maybe(item):
            return f"{_format_shape(item)}|null"
        case shapes.ParsedText(annotation) | shapes.Structured(annotation):
            return _format_annotation(
                annotation, "object" if isinstance(shape, shapes.Structured) else ""
            )
        case _:
            return "str"


def _format_annotation(annotation: Any, fallback: str) -> str:
    """Return the type of an annotation in short form, such as `int|str`, `str[]` or `uuid`."""
    if hasattr(annotation, "__metadata__"):
        return _format_shape(infer_shape(annotation.__origin__))
    parts: tuple[Any, ...] = getattr(annotation, "__args__", ())
    kind = str(getattr(getattr(annotation, "__origin__", annotation), "__name__", "any"))
    if "Union" in type(annotation).__name__:
        return "|".join(
            ["null" if part is type(None) else _format_shape(infer_shape(part)) for part in parts]
        )
    if kind == "Literal":
        return _format_choices(parts)
    if kind.endswith(("Iterator", "Generator")) and parts:
        return _format_shape(shapes.ListOf(infer_shape(parts[0])))
    if kind in ("list", "set", "tuple") and not isinstance(
        infer_shape(annotation), shapes.Structured
    ):
        return _format_shape(infer_shape(annotation))  # a nested list
    return fallback or ("any" if annotation is object else kind.lower())


def shape_choices(shape: Shape) -> tuple[object, ...]:
    """Return the values that a shape allows; an empty tuple if it allows any value."""
    return tuple(shape.raw_values) if isinstance(shape, shapes.Choice) else ()


def _format_choices(values: tuple[object, ...]) -> str:
    return "|".join(map(_format_json, values[:_MAX_CHOICES])) + (
        "|…" if len(values) > _MAX_CHOICES else ""
    )


def _format_result(tool: Tool) -> str:
    try:
        annotation = return_annotation(tool)
    except Exception:  # the annotation names a type that is imported for type checkers only
        return ""
    is_annotated = annotation not in (shapes.MISSING, None, type(None))
    return f" -> {_format_shape(infer_shape(annotation))}" if is_annotated else ""
