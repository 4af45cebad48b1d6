"""The data of a benchmark run: benchmarks, measurements, and figures with their targets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from statistics import median


@dataclass(frozen=True)
class Run:
    """One finished process: exit code, time, memory and output.

    A streamed run has no output, only the number of lines and the time until the first one.
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
"""Returns what is wrong with the output of a run, or None."""

ReadMetrics = Callable[[Run], Mapping[str, float]]
"""Returns metrics from the output of a run."""


@dataclass(frozen=True)
class Benchmark:
    """One command line that is measured once per round.

    `key` is `case/name`. `args` are the arguments of `python`. A benchmark whose output is wrong is
    not measured, unless it is `lenient`: then it is measured, and the report contains a remark.
    A server has `requests`: it answers each with one line and is killed after the last answer.
    The process runs in `folder`, below the folder of the apps, with additional `variables`. It is
    killed after `timeout_s`. A benchmark with one round takes long, so it is not warmed up.
    """

    key: str
    venv: str
    args: tuple[str, ...]
    check: Check
    read_metrics: ReadMetrics | None = None
    max_rounds: int | None = None
    streamed: bool = False
    lenient: bool = False
    requests: tuple[str, ...] = ()
    folder: str = "."
    variables: tuple[str, ...] = ()
    timeout_s: float = 180.0

    @property
    def case(self) -> str:
        """The case of the benchmark."""
        return self.key.partition("/")[0]

    @property
    def name(self) -> str:
        """The name of the benchmark in the report."""
        return self.key.partition("/")[2]


@dataclass
class Measurements:
    """The values of all rounds: benchmark → metric → one value per round."""

    samples: dict[str, dict[str, list[float]]] = field(default_factory=lambda: {})
    missing: dict[str, str] = field(default_factory=lambda: {})
    remarks: dict[str, str] = field(default_factory=lambda: {})

    def add(self, key: str, metrics: Mapping[str, float]) -> None:
        """Add the metrics of one run."""
        samples = self.samples.setdefault(key, {})
        for metric, value in metrics.items():
            samples.setdefault(metric, []).append(value)

    def values(self, key: str, metric: str) -> list[float]:
        """Return all values of a metric; empty if it was not measured."""
        return self.samples.get(key, {}).get(metric, [])

    def stat(self, key: str, metric: str, how: str = "median") -> float | None:
        """Return the median or the minimum of a metric, or None if it was not measured."""
        values = self.values(key, metric)
        if not values:
            return None
        return min(values) if how == "min" else median(values)


@dataclass(frozen=True)
class Term:
    """One metric of one benchmark."""

    key: str
    metric: str = "cpu_ms"

    def read(self, measurements: Measurements, how: str) -> float | None:
        """Return the value of the metric, or None if it was not measured."""
        return measurements.stat(self.key, self.metric, how)


@dataclass(frozen=True)
class Figure:
    """A metric, or the ratio of two metrics, and the target for it.

    `bound` is the target: the maximum, or with `at_least` the minimum. A figure without a bound is
    only shown. `scale` converts the value to `unit`.
    """

    case: str
    label: str
    numerator: Term
    denominator: Term | None = None
    bound: float | None = None
    at_least: bool = False
    unit: str = "×"
    scale: float = 1.0
    stat: str = "median"
    against: str = ""

    def value(self, measurements: Measurements, how: str | None = None) -> float | None:
        """Return the value of the figure, or None if a metric was not measured."""
        how = how or self.stat
        top = self.numerator.read(measurements, how)
        if top is None or self.denominator is None:
            return None if top is None else top * self.scale
        bottom = self.denominator.read(measurements, how)
        return None if not bottom else top / bottom * self.scale

    def passed(self, measurements: Measurements) -> bool | None:
        """Return whether the target is reached, or None if there is no target or no value."""
        value = self.value(measurements)
        if value is None or self.bound is None:
            return None
        return value >= self.bound if self.at_least else value <= self.bound

    def terms(self) -> tuple[Term, ...]:
        """Return the metrics that the figure needs."""
        if self.denominator is None:
            return (self.numerator,)
        return (self.numerator, self.denominator)


@dataclass(frozen=True)
class TokenRatio(Figure):
    """The tokens of a document, divided by those of the best document of another library.

    The best document is the shortest of those that answer at least as many questions. If there is
    none, it is the shortest of those that answer the most questions.
    """

    peers: tuple[str, ...] = ()

    def value(self, measurements: Measurements, how: str | None = None) -> float | None:
        """Return the ratio, or None if a document was not measured."""
        tokens, answered = self._read(self.numerator.key, measurements)
        peers = [found for key in self.peers if (found := self._read(key, measurements))[0]]
        if not tokens or not peers:
            return None
        enough = min(answered, max(count for _, count in peers))
        return tokens / min(length for length, count in peers if count >= enough)

    def terms(self) -> tuple[Term, ...]:
        """Return the metrics that the figure needs."""
        return (self.numerator, *(Term(key, "tokens") for key in self.peers))

    def _read(self, key: str, measurements: Measurements) -> tuple[float, float]:
        tokens, answered = measurements.stat(key, "tokens"), measurements.stat(key, "answered")
        return tokens or 0.0, answered or 0.0
