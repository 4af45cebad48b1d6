"""Read YAML that others have written.

PyYAML limits neither the nesting nor what aliases and merge keys (`<<`) expand to: a text of 200 kB
ends the process, and one of 500 bytes fills the memory. Both are limited here while the text is
read, before a value is made of it.
"""

from __future__ import annotations

from functools import lru_cache

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

MAX_YAML_VALUES = 4_000_000
"""Maximum number of values. The value of an alias counts each time it is used."""
MAX_YAML_DEPTH = 150
"""Maximum number of lists and mappings around a value."""
MAX_DIGITS = 4_000
"""Maximum length of a number."""
MAX_OTHER_KEYS = 2_000
"""Maximum number of keys of a mapping that are not text. Their hashes are predictable."""

_TAG = "tag:yaml.org,2002:"
_NUMBERS = frozenset((f"{_TAG}int", f"{_TAG}float"))


class YamlError(ValueError):
    """A text is not valid YAML, or exceeds a limit. `line` starts at 1, if it is known."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line


def read_yaml(text: str | bytes, *, has_dates: bool = True) -> object:
    """Return the value of a YAML text. Tags that name Python objects are not allowed.

    Args:
        text: One YAML document.
        has_dates: Read dates as `date` and `datetime`. Otherwise they stay text.

    Raises:
        YamlError: the text is not valid, or exceeds a limit.
    """
    line = None
    try:
        return _loader_class(has_dates)(text).get_single_data()
    except YamlError:
        raise
    except RecursionError:
        message = "it is nested too deeply"
    except Exception as failure:  # also errors of PyYAML's converters, such as an invalid date
        mark: Any = getattr(failure, "problem_mark", None)
        line = None if mark is None else mark.line + 1
        reason = str(failure).partition("\n")[0] if isinstance(failure, ValueError) else ""
        message = str(getattr(failure, "problem", None) or reason or "it cannot be parsed")
    raise YamlError(message, line)


class _Limits:
    """Counts the values of a text, with those of aliases."""

    def __init__(self) -> None:
        self._count = 0
        self._depth = 0
        self._counts_of_anchors: dict[str, int] = {}

    def add_alias(self, anchor: str, line: int) -> None:
        """Count the values of an alias."""
        if anchor not in self._counts_of_anchors:
            raise YamlError(f"the alias {anchor!r} is a part of what it refers to", line)
        self._add(self._counts_of_anchors[anchor], line)

    def begin(self, line: int) -> int:
        """Count a value that begins; return what `end` needs."""
        before = self._count
        self._add(1, line)
        self._depth += 1
        if self._depth > MAX_YAML_DEPTH + 1:
            raise YamlError("it is nested too deeply", line)
        return before

    def end(self, before: int, anchor: str | None) -> None:
        """End a value."""
        self._depth -= 1
        if anchor is not None:
            self._counts_of_anchors[anchor] = self._count - before

    def _add(self, count: int, line: int) -> None:
        self._count += count
        if self._count > MAX_YAML_VALUES:
            raise YamlError(f"it has more than {MAX_YAML_VALUES:,} values", line)


def _check_scalar(node: Any, line: int) -> None:
    if len(node.value) > MAX_DIGITS and node.tag in _NUMBERS:
        raise YamlError(f"a number has more than {MAX_DIGITS:,} digits", line)


def _check_keys(node: Any, line: int) -> None:
    if sum([key.tag != f"{_TAG}str" for key, _ in node.value]) > MAX_OTHER_KEYS:
        limit = f"{MAX_OTHER_KEYS:,} keys that are not text"
        raise YamlError(f"a mapping has more than {limit}", line)


@lru_cache(maxsize=2)
def _loader_class(has_dates: bool) -> Any:
    """Return the class that parses with libyaml, if it is there, and composes in Python."""
    import yaml
    from yaml.composer import Composer

    parser: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

    class LimitedComposer(Composer):
        def compose_node(self, parent: Any, index: Any) -> Any:
            source: Any = self
            event, limits = source.peek_event(), source.limits
            line: int = event.start_mark.line + 1
            if isinstance(event, yaml.AliasEvent):
                node: Any = super().compose_node(parent, index)
                limits.add_alias(event.anchor, line)
                return node
            before = limits.begin(line)
            node = super().compose_node(parent, index)
            if isinstance(node, yaml.ScalarNode):
                _check_scalar(node, line)
            elif isinstance(node, yaml.MappingNode):
                _check_keys(node, line)
            limits.end(before, event.anchor)
            return node

    class Loader(LimitedComposer, parser):
        yaml_implicit_resolvers = {  # noqa: RUF012  PyYAML declares it
            first: [rule for rule in rules if has_dates or rule[0] != f"{_TAG}timestamp"]
            for first, rules in parser.yaml_implicit_resolvers.items()
        }

        def __init__(self, text: str | bytes) -> None:
            parser.__init__(self, text)
            Composer.__init__(self)
            self.limits = _Limits()

    return Loader
