"""Generate random, broken and hostile command lines for `apps/demo.py`."""

from __future__ import annotations

import json
from random import Random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

COMMANDS: dict[str, tuple[list[str], list[str]]] = {
    # command: (its flags, its positional arguments)
    "plain": (
        [
            *("--count", "--ratio", "--loud", "--no-loud", "--path", "--colour", "--level"),
            *("--kind", "--maybe"),
        ],
        ["word"],
    ),
    "rich": (
        ["--when", "--day", "--at", "--span", "--key", "--price", "--raw", "--either"],
        [],
    ),
    "many": (["--tag", "-t", "--sizes", "--pair", "--table"], ["a", "b"]),
    "short": (["-n", "--number", "-f", "-F", "--no-flag", "-v", "-vvf", "-n5", "-fn"], ["x"]),
    "model": (
        [
            *("--user.name", "--user.age", "--user.address.street", "--user.address.number"),
            *("--point", "--point.x", "--point.y", "--box", "--box.width", "--user"),
            "--user.tags",
        ],
        ['{"name":"x"}'],
    ),
    "people": (["--users.name"], ['{"name":"x"}', '[{"name":"x"}]']),
    "numbers": (["--until", "--fail-at"], []),
    "later": (["--word", "--ctx"], []),
    "delete": (["--yes", "--dry-run"], ["/nowhere"]),
    "shout": (["--word"], []),
    "named": (
        [
            *("--json", "--output", "--limit", "--schema", "--help", "--name", "--self", "--ctx"),
            *("--kwargs", "--version", "--quiet", "--input", "--tooli-json", "--tooli-output"),
            *("--tooli-schema", "--tooli-input", "--tooli-limit"),
        ],
        [],
    ),
    "group": ([], ["one", "inner", "two"]),
    "group one": (["--b"], ["1"]),
    "group inner two": (["--user", "--user.name"], ["x"]),
}
FRAMEWORK_FLAGS = [
    *("--json", "--json", "--json", "--jsonl", "--text", "--plain", "-q", "--quiet", "-v"),
    *("-vvv", "--no-color", "--dry-run", "--yes", "--no-input", "--print0", "--schema"),
    *("--schema=mcp", "--schema=", "--schema=x", "--help-agent", "--help", "--version", "-qv"),
    *("--output", "--output=json", "--output=", "--output=xml", "-o", "-ojson", "-o=json"),
    *("--input", "--response-format", "--response-format=detailed", "--limit", "--timeout=1"),
    *("--tooli-json", "--tooli-bogus", "--json=1", "--help=", "--quiet=yes", "--null"),
    *("--install-completion=bash", "--max-tokens", "--fields", "--cursor", "--tooli-"),
]
WORDS = [
    *("", " ", "-", "--", "---", "-=", "--=", "--=x", "=", "@", "@@", "@/", "@/nowhere", "@-"),
    *("-1", "-1.5", "+3", "0", "1", "2", "007", "1_000", "1e3", "1e999", "nan", "-inf", "0x1f"),
    *("٣", "１２", "9" * 30, "9" * 5000, "true", "FALSE", "yes", "on", "null", "None"),
    *("red", "RED", "deep-blue", "reed", "a", "b-c", "low", "LOW"),
    *("2024-02-30", "2024-02-29", "2024-02-29T25:00", "24:00", "P1D", "1:2:3", "PT", "99999d"),
    *("6ba7b810-9dad-11d1-80b4-00c04fd430c8", "not-a-uuid", "1.10", "Infinity", "sNaN"),
    *('{"name":"x"}', '{"name":', "[]", "[1,", '"', '{"a":{"b":NaN}}', '{"name":1e400}'),
    *('{"x":1}', '{"width":1,"label":"l"}', '{"name":"x","name":"y"}', '{"\\ud800":1}'),
    *("%", "%s%d%n", "%(x)s", "{0}", "{}", "[bold]x[/bold]", "[/]", "$(id)", "`id`", "\\", "'"),
    *("\n", "a\nb", "\t", "\x00"[:0], "\x1b[31mred\x1b[0m", "\x07", "\r\n", "\u2028", "\ufeff"),
    *("naïve", "日本語", "שלום", "\u202eabc", "👩‍👧", "e\u0301"),
    *("\U0010ffff", "\udcff", "\udc80x"),
    *("word", "nosuch", "--bogus", "--bogus=1", "-Z", "-Zx", "--count", "--user..name=x"),
    *("--user.=x", "--user.name.first=x", "--point.x=y", "--.=1", "--user", "--no-bogus"),
    *("plian", "grup", "PLAIN", "plain ", "../plain", "group.one", "inner"),
]


def command_lines(seed: int, count: int, folder: Path) -> list[list[str]]:
    """Return random, broken and hostile command lines; a seed always gives the same ones."""
    random = Random(seed)
    words = [*WORDS, *(f"@{path}" for path in _create_files(folder))]
    generators: list[Callable[[Random, list[str]], list[str]]] = [
        _plausible_line,
        _plausible_line,
        _plausible_line,
        _shuffled_line,
        _mutated_line,
        _random_line,
        _payload_line,
        _payload_line,
    ]
    generated = [random.choice(generators)(random, words) for _ in range(count)]
    for i, line in enumerate(_oversized_lines()):
        generated[(i + 1) * count // 20] = line
    return generated


def _create_files(folder: Path) -> list[str]:
    (folder / "binary").write_bytes(bytes(range(256)))
    (folder / "empty").write_bytes(b"")
    (folder / "user.json").write_text('{"name":"x","age":3}')
    (folder / "deep.json").write_text("[" * 100_000)
    return [str(folder), str(folder / "missing")] + [
        str(folder / name) for name in ("binary", "empty", "user.json", "deep.json")
    ]


def _value(random: Random, words: list[str]) -> str:
    if random.random() < 0.1:
        return "".join(
            chr(random.choice((random.randrange(1, 128), random.randrange(1, 0xD800))))
            for _ in range(random.randrange(1, 12))
        )
    return random.choice(words)


def _plausible_line(random: Random, words: list[str]) -> list[str]:
    """Return a command with its own flags, and values that may be invalid."""
    name = random.choice(list(COMMANDS))
    flags, arguments = COMMANDS[name]
    line = [random.choice(FRAMEWORK_FLAGS)] if random.random() < 0.3 else []
    line += name.split()
    if random.random() < 0.8:
        line += arguments
    for _ in range(random.randrange(4)):
        flag = random.choice([*flags, *FRAMEWORK_FLAGS[:8]])
        value = _value(random, words)
        line += random.choice(([flag], [flag, value], [f"{flag}={value}"]))
    return line


def _shuffled_line(random: Random, words: list[str]) -> list[str]:
    line = _plausible_line(random, words)
    random.shuffle(line)
    return line


def _mutated_line(random: Random, words: list[str]) -> list[str]:
    line = _plausible_line(random, words)
    for _ in range(random.randrange(1, 4)):
        i = random.randrange(len(line) + 1)
        match random.randrange(4):
            case 0:
                line.insert(i, random.choice([*FRAMEWORK_FLAGS, *words]))
            case 1 if line:
                line.pop(i - 1)
            case 2 if line:
                word = line[i - 1]
                at = random.randrange(len(word) + 1)
                line[i - 1] = word[:at] + _value(random, words)[:3] + word[at:]
            case _:
                line.insert(i, "--")
    return line


def _random_line(random: Random, words: list[str]) -> list[str]:
    pool = [*FRAMEWORK_FLAGS, *words, *COMMANDS]
    return [random.choice(pool) for _ in range(random.randrange(7))]


def _payload_line(random: Random, words: list[str]) -> list[str]:
    """Return a command with `--input` as text, from a file, or from stdin."""
    name = random.choice(list(COMMANDS))
    keys = [flag.lstrip("-").partition(".")[0].replace("-", "_") for flag in COMMANDS[name][0]]
    keys += ["word", "files", "name", "user", "users", "path", "a", "self", "ctx", "nosuch", ""]
    keys = [
        key for key in keys if key not in ("v", "vvf")
    ]  # see test_huge_value_of_a_counting_option_is_handled
    values = [1, -1, 1.5, None, True, "x", [], {}, [1], {"name": "x"}, [{"name": "x"}], 10**30]
    values += ["\ud800", "9" * 100, {"a": {"b": [None]}}, 1e300, ["x", 1, None]]
    payload = {random.choice(keys): random.choice(values) for _ in range(random.randrange(5))}
    source = random.choice(
        [json.dumps(payload)] * 6 + ["-", "@/", _value(random, words), json.dumps(payload)[:-1]]
    )
    flag = "--tooli-input" if name == "named" else "--input"
    line = [*name.split(), flag, source, *random.choice(([], ["--json"], ["extra"], ["--jsonl"]))]
    return line if random.random() < 0.9 else [line[-1], *line[:-1]]


def _oversized_lines() -> list[list[str]]:
    """Return very long command lines."""
    long = "x" * 100_000
    return [
        ["plain", long],
        ["plain", "x", "--count", "9" * 100_000],
        ["plain", "x", f"--{long}"],
        [long],
        ["plain", "x", f"--colour={long}"],
        ["many", *(["f"] * 5_000)],
        ["plain", *(["surplus"] * 3_000)],
        ["many", "f", *(["--tag", "t"] * 3_000)],
        ["short", "x", "-" + "v" * 50_000],
        ["plain", "x", *(["--json", "--jsonl"] * 1_000), "--json"],
        ["model", "[" * 100_000],
        ["model", "--input", "[" * 100_000],
        ["model", "--input", '{"user":' * 50_000],
        ["model", '{"name":"x","address":' * 5_000],
        ["model", "--user." + "a." * 3_000 + "b", "x"],
        ["rich", "--price", "9" * 100_000],
        ["rich", "--key", long],
        ["group", *(["group"] * 2_000)],
        ["plain", *(["--"] * 2_000)],
    ]
