"""Full-text search over an app's tools, and signatures that show the hits to agents.

    ToolIndex(tools).search("deleting files") ──▶ [SearchHit(delete-file, 7.1), …]
    format_signature(tool)                    ──▶ "delete-file(path: path)  # Delete a file."

The ranking is BM25F. Rare terms weigh more than frequent ones, and terms in a name more than terms
in a description. Similar words, prefixes and misspellings have a lower weight. If few tools contain
the term itself, it is rare, although similar words are frequent. A term also counts a little for
the other tools of a group, because it describes the subject of the group.
"""

from __future__ import annotations

from itertools import pairwise
from math import log

from tooli.core import Record
from tooli.core import tool as shapes
from tooli.core.secret_fields import documented_default
from tooli.providers.search_terms import (
    MAX_TEXT_CHARS,
    STOP_WORDS,
    asks_to_read,
    compounds_in,
    extract_terms,
    find_phrases,
    load_similar_terms,
    normalize_name,
    split_words,
    stem,
)
from tooli.schema.tool_reader import infer_shape, return_annotation
from tooli.similar_names import closest_match, is_near
from tooli.text.jsonable import is_list, is_object, to_jsonable

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any

    from tooli.core.tool import Param, Shape, Tool

_WEIGHTS = (4.0, 3.0, 3.0, 2.0, 1.5, 1.0, 0.7)  # in the order of _searchable_fields
_SATURATION, _LENGTH_NORMALIZATION = 1.5, 0.2  # BM25's k and b
_SIMILAR_DISCOUNT, _PREFIX_DISCOUNT, _TYPO_DISCOUNT = 0.7, 0.3, 0.5
_COMPOUND_DISCOUNT, _MIN_COMPOUND_WEIGHT = 0.8, 3.0
_GROUP_DISCOUNT = 0.35  # for a term of another tool of the same group
_PHRASE_WORD_WEIGHT = 0.2  # for "log" in the phrase "log in"
_INTENT_BONUS = 0.7
_MIN_COVERAGE = 0.15  # of the score of a tool that matches a small part of the query
_FARTHER_SHARE = 0.5  # of the tools that match a less similar term
_MAX_QUERY_WORDS, _MAX_QUERY_TERMS, _MAX_GROUP_SIZE = 200, 48, 12


class SearchHit(Record):
    """A tool that matches a query. Scores are comparable within one search only."""

    tool: Tool
    score: float


class _Matches(Record):
    """The tools that match a term of a query."""

    scores: dict[int, float]
    shares: dict[int, float]  # how much of `rarity` a tool covers
    rarity: float  # of the term itself


class ToolIndex:
    """A search index over tools. Hidden tools are not in it."""

    __slots__ = (
        "_groups",
        "_is_reader",
        "_members",
        "_names",
        "_postings",
        "_similar",
        "_terms_by_letter",
        "_tools",
    )

    def __init__(self, tools: Iterable[Tool]) -> None:
        self._tools = [tool for tool in tools if not tool.hidden]
        self._groups = [tuple(map(normalize_name, tool.path[:-1])) for tool in self._tools]
        self._members = _members_of_groups(self._groups)
        self._postings, self._similar = _build_postings(self._tools), load_similar_terms().similar
        self._is_reader = [
            tool.effects.read_only or asks_to_read(split_words(tool.doc.summary[:200])) is True
            for tool in self._tools
        ]
        self._terms_by_letter: dict[str, list[str]] = {}
        for term in self._postings:
            self._terms_by_letter.setdefault(term[0], []).append(term)
        self._names: dict[str, dict[int, int]] = {}
        for at, tool in enumerate(self._tools):
            self._names.setdefault(normalize_name(tool.name), {})[at] = 1
            self._names.setdefault(normalize_name("".join(tool.path) or tool.name), {})[at] = 2

    def search(self, query: str, limit: int = 10) -> list[SearchHit]:
        """Return the tools that match a query, best first.

        Tools with equal scores are in the app's order. An empty query matches all tools. A term
        such as `users:` or `billing.invoices:` restricts the search to that group.
        """
        words = query[:MAX_TEXT_CHARS].split()
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
        words = split_words(text)
        total: dict[int, float] = {}
        covered: dict[int, float] = {}
        possible = 0.0
        for variants, importance in self._parse_query(words):
            matches = self._match_variants(variants)
            possible += importance * matches.rarity
            for at, score in matches.scores.items():
                total[at] = total.get(at, 0.0) + importance * score
            for at, share in matches.shares.items():
                covered[at] = covered.get(at, 0.0) + importance * share
        wants_reader = asks_to_read(words)
        for at in total:  # prefer tools that match more terms of the query
            total[at] *= (_MIN_COVERAGE + covered.get(at, 0.0) / possible) * (
                1 + _INTENT_BONUS * (self._is_reader[at] is wants_reader)
            )
        name_bonus = 1 + max(total.values(), default=0.0)
        for at, rank in self._names.get(normalize_name(text), {}).items():
            total[at] = total.get(at, 0.0) + name_bonus * rank
        return total

    def _match_variants(self, variants: dict[str, float]) -> _Matches:
        """Return the tools that match a term of a query, or a similar term."""
        nearness: dict[int, float] = {}
        for term, weight in variants.items():
            for at in self._postings[term]:
                nearness[at] = max(weight, nearness.get(at, 0.0))
        rarities = self._rarities(nearness)
        highest = rarities[max(rarities)]
        scores: dict[int, float] = {}
        for term, weight in variants.items():
            for at, strength in self._postings[term].items():
                # A tool has the rarity of its nearest term, so that no score is counted twice.
                score = weight * strength * rarities[nearness[at]]
                scores[at] = max(score, scores.get(at, 0.0))
        by_group: dict[tuple[str, ...], float] = {}
        for at, score in scores.items():
            by_group[self._groups[at]] = by_group.get(self._groups[at], 0.0) + score
        for group, score in by_group.items():
            for at in self._members.get(group, ()):
                scores[at] = max(_GROUP_DISCOUNT * min(score, highest), scores.get(at, 0.0))
        shares = {at: rarities[weight] * weight**0.5 for at, weight in nearness.items()}
        return _Matches(scores, shares, highest)

    def _rarities(self, nearness: dict[int, float]) -> dict[float, float]:
        """Return how rare a match is, for each weight in `nearness`.

        The tools that match better count in full, the others in part. So a rare word of the query
        stays rare although words of similar meaning are frequent. A similar word is never rarer.
        """
        everything, nearer = sum(nearness.values()), 0.0
        rarities: dict[float, float] = {}
        for weight in sorted({*nearness.values()}, reverse=True):
            nearer += weight * sum([other == weight for other in nearness.values()])
            frequency = nearer + _FARTHER_SHARE * (everything - nearer) + 0.5
            rarities[weight] = log(1 + (len(self._tools) + 0.5) / frequency)
        return rarities

    def _parse_query(self, words: list[str]) -> Iterator[tuple[dict[str, float], float]]:
        """Iterate over the terms of a query that the index knows: their variants and weights."""
        words = words[:_MAX_QUERY_WORDS]
        in_phrases: set[str] = set()
        for places, phrase in find_phrases(list(map(stem, words))):
            variants = self._similar_variants(phrase)
            if variants:
                in_phrases.update([words[at] for at in places])
                yield variants, 1.0
        compounds = [a + b for a, b in pairwise(words) if stem(a + b) in self._postings]
        unique = list(dict.fromkeys(words))
        terms = [word for word in unique if word not in STOP_WORDS] or unique
        terms = [word for word in terms if not any([word in each for each in compounds])]
        for word in dict.fromkeys([*compounds, *terms][:_MAX_QUERY_TERMS]):
            variants = self._expand_word(word)
            if variants:
                yield variants, _PHRASE_WORD_WEIGHT if word in in_phrases else 1.0

    def _similar_variants(self, term: str, discount: float = 1.0) -> dict[str, float]:
        """Return a term and the terms of similar meaning that the index has, with weights."""
        similar = self._similar.get(term, ())
        weights = dict.fromkeys(similar, discount * _SIMILAR_DISCOUNT) | {term: discount}
        return {found: weight for found, weight in weights.items() if found in self._postings}

    def _expand_word(self, word: str) -> dict[str, float]:
        """Return the terms of the index that a word of a query stands for, with weights."""
        own, postings = stem(word), self._postings
        found = self._similar_variants(own)
        for term in self._terms_by_letter.get(word[0], ()) if len(word) > 1 else ():
            if len(term) > len(own) and term.startswith(word):
                found.setdefault(term, _PREFIX_DISCOUNT * len(word) / len(term))
        for size in range(len(own) - 1, 3, -1):  # "removal" starts with the stem of "remove"
            part, share = own[:size], size / len(own)
            if part in postings:
                found.setdefault(part, _PREFIX_DISCOUNT * share)
                break
            if not found and part in self._similar:
                found = self._similar_variants(part, share)
        for prefix in ("re", "un"):  # "retrain" is found by "train"
            rest = stem(word.removeprefix(prefix))
            if rest != own and len(rest) > 2 and rest in postings:
                found.setdefault(rest, _PREFIX_DISCOUNT)
        if found or own in self._similar:
            return found
        return self._split_compound(word) or (self._correct_spelling(word) if word[3:] else {})

    def _split_compound(self, word: str) -> dict[str, float]:
        """Return the two known terms that a word consists of: `host` and `name` of `hostname`."""
        for at in range(3, len(word) - 2):
            parts = stem(word[:at]), stem(word[at:])
            if all([part in self._postings for part in parts]):
                return dict.fromkeys(parts, _PREFIX_DISCOUNT)
        return {}

    def _correct_spelling(self, word: str) -> dict[str, float]:
        """Return the known term closest to a misspelled word and its variants, with weights.

        A term of the index is considered only if it starts with one of the first two letters of
        the misspelled word.
        """
        nearby = [
            term
            for start in dict.fromkeys(word[:2])
            for term in self._terms_by_letter.get(start, ())
        ]
        letters = {*word}  # a cheap filter: one edit adds or removes at most two letters
        nearby, similar = [
            [t for t in terms if len(t) > 2 and len(letters.symmetric_difference(t)) < 3]
            for terms in (nearby, self._similar)
        ]
        own = stem(word)
        # Many ordinary words are two edits away from a word of the thesaurus.
        closest = next((term for term in (*nearby, *similar) if is_near(own, term)), None)
        closest = closest or closest_match(own, nearby) or closest_match(word, nearby) or ""
        return self._similar_variants(closest, _TYPO_DISCOUNT)


def _members_of_groups(groups: list[tuple[str, ...]]) -> dict[tuple[str, ...], list[int]]:
    """Return the tools of each group. A group of most tools has no subject of its own."""
    members: dict[tuple[str, ...], list[int]] = {}
    for at, group in enumerate(groups):
        members.setdefault(group, []).append(at)
    largest = max(_MAX_GROUP_SIZE, len(groups) // 4)
    return {group: found for group, found in members.items() if group and len(found) <= largest}


def _build_postings(tools: list[Tool]) -> dict[str, dict[int, float]]:
    """Return the tools that contain each term, with weights."""
    seen: dict[str, list[str]] = {}
    rows = [[extract_terms(text, seen) for text in _searchable_fields(tool)] for tool in tools]
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
            for _, phrase in find_phrases(terms):
                strengths[phrase] = strengths.get(phrase, 0.0) + share
            if weight >= _MIN_COMPOUND_WEIGHT:
                for compound in compounds_in(terms):
                    compounds[compound] = compounds.get(compound, 0.0) + share * _COMPOUND_DISCOUNT
        for compound, strength in compounds.items():
            strengths.setdefault(compound, strength)
        for term, strength in strengths.items():
            postings.setdefault(term, {})[at] = strength / (strength + _SATURATION)
    return postings


def _parse_group(word: str) -> tuple[str, ...]:
    steps = map(normalize_name, word.replace("/", ".").replace(":", ".").split("."))
    return tuple([step for step in steps if step])


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
    found: Sequence[Param] | None = getattr(tool, "signature_params", None)  # of a DeferredTool
    params = tool.public_params if found is None else found
    shown = [param for param in params if param.required or not param.hidden]
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
