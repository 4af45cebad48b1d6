"""What is measured (contestants), what is collected (the ledger) and what is judged (figures)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from statistics import median


@dataclass(frozen=True)
class Run:
    """One finished process: its exit code, its cost and what it wrote.

    A streamed run keeps no output, only the count of its lines and when the first one came.
    """

    code: int
    cpu_ms: float
    wall_ms: float
    rss_mb: float
    stdout: str = ""
    stderr: str = ""
    lines: int = 0
    first_ms: float = 0.0


Check = Callable[[Run], str | None]
"""What is wrong with a run, in a few words; None when it did its job."""

Harvest = Callable[[Run], Mapping[str, float]]
"""Further metrics that a run carries in its output."""


@dataclass(frozen=True)
class Contestant:
    """One command line that takes part in the rounds.

    `key` is `case/name`; `args` are what follows `python`. A contestant whose answer
    is wrong is left out, unless it is `lenient`: then it is timed and the report says so.
    A server has a `dialogue`: what it is told, turn by turn; to each it answers with a line,
    and after the last one it is ended.
    """

    key: str
    venv: str
    args: tuple[str, ...]
    check: Check
    harvest: Harvest | None = None
    most_rounds: int | None = None
    streamed: bool = False
    lenient: bool = False
    dialogue: tuple[str, ...] = ()

    @property
    def case(self) -> str:
        """The case that it belongs to."""
        return self.key.partition("/")[0]

    @property
    def name(self) -> str:
        """How the report calls it."""
        return self.key.partition("/")[2]


@dataclass
class Ledger:
    """Everything that was measured: contestant → metric → one number per round."""

    samples: dict[str, dict[str, list[float]]] = field(default_factory=lambda: {})
    missing: dict[str, str] = field(default_factory=lambda: {})
    remarks: dict[str, str] = field(default_factory=lambda: {})

    def add(self, key: str, metrics: Mapping[str, float]) -> None:
        """Note one run."""
        mine = self.samples.setdefault(key, {})
        for metric, value in metrics.items():
            mine.setdefault(metric, []).append(value)

    def values(self, key: str, metric: str) -> list[float]:
        """All samples of one metric; empty when there are none."""
        return self.samples.get(key, {}).get(metric, [])

    def stat(self, key: str, metric: str, how: str = "median") -> float | None:
        """The median or the minimum of one metric, or None when it was not measured."""
        values = self.values(key, metric)
        if not values:
            return None
        return min(values) if how == "min" else median(values)


@dataclass(frozen=True)
class Term:
    """One measured quantity: a contestant's metric."""

    key: str
    metric: str = "cpu_ms"

    def read(self, ledger: Ledger, how: str) -> float | None:
        """Its value in a ledger."""
        return ledger.stat(self.key, self.metric, how)


@dataclass(frozen=True)
class Figure:
    """One promise: a quantity, or the ratio of two, held against a bound.

    Without a bound it is shown and not judged. `at_least` turns the comparison round.
    `scale` converts the quantity to `unit`.
    """

    case: str
    label: str
    top: Term
    bottom: Term | None = None
    bound: float | None = None
    at_least: bool = False
    unit: str = "×"
    scale: float = 1.0
    stat: str = "median"
    against: str = ""

    def value(self, ledger: Ledger, how: str | None = None) -> float | None:
        """What was reached, or None when a contestant is missing."""
        how = how or self.stat
        top = self.top.read(ledger, how)
        if top is None or self.bottom is None:
            return None if top is None else top * self.scale
        bottom = self.bottom.read(ledger, how)
        return None if not bottom else top / bottom * self.scale

    def passed(self, ledger: Ledger) -> bool | None:
        """True if the bound holds; None if it is not known."""
        value = self.value(ledger)
        if value is None or self.bound is None:
            return None
        return value >= self.bound if self.at_least else value <= self.bound

    def terms(self) -> tuple[Term, ...]:
        """The quantities that it needs."""
        return (self.top,) if self.bottom is None else (self.top, self.bottom)


@dataclass(frozen=True)
class AgainstRivals(Figure):
    """A text's tokens, as a ratio to the shortest rival that answers as many questions.

    Where none answers as many, the rivals that answer the most are the yardstick.
    """

    rivals: tuple[str, ...] = ()

    def value(self, ledger: Ledger, how: str | None = None) -> float | None:
        """What was reached, or None when it or every rival is missing."""
        mine, known = self._read(self.top.key, ledger)
        texts = [(tokens, facts) for tokens, facts in self._texts(ledger) if tokens]
        if not mine or not texts:
            return None
        enough = min(known, max(facts for _, facts in texts))
        return mine / min(tokens for tokens, facts in texts if facts >= enough)

    def terms(self) -> tuple[Term, ...]:
        """The quantities that it needs."""
        return (self.top, *(Term(key, "tokens") for key in self.rivals))

    def _texts(self, ledger: Ledger) -> list[tuple[float, float]]:
        return [self._read(key, ledger) for key in self.rivals]

    def _read(self, key: str, ledger: Ledger) -> tuple[float, float]:
        tokens, facts = ledger.stat(key, "tokens"), ledger.stat(key, "facts")
        return tokens or 0.0, facts or 0.0
