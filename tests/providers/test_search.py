"""Search over an app's tools, and signatures of tools."""

# ruff: noqa: UP007, UP045  Optional and Union are tested as well
from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal, Optional, TypedDict, Union
from uuid import UUID

import pytest
from pydantic import BaseModel, Field
from tests.integration.app_process import environment

from tooli import Context, Option, Tooli
from tooli.annotations import Destructive, ReadOnly
from tooli.core.tool import Choice, Scalar, Tool
from tooli.providers.search import SearchHit, ToolIndex, format_signature, shape_choices

# ------------------------------------------------------------------ an app of some size

TOOLS: dict[str, str] = {
    # files
    "find-files(pattern, root)": "Find files whose name matches a pattern.",
    "read-file(path, encoding)": "Read a text file.",
    "write-file(path, content)": "Write text to a file, replacing what was there.",
    "delete-file(path)": "Delete one file for good.",
    "copy-file(source, target)": "Copy a file to another place.",
    "move-file(source, target)": "Move a file to another folder.",
    "list-directory(path)": "List the entries of a directory.",
    "makeDirectory(path)": "Make a directory and its parents.",
    "compress_folder(path, target)": "Pack a folder into a zip archive.",
    "hash-file(path, algorithm)": "Compute the SHA256 checksum of a file.",
    "replace-text(pattern, replacement)": "Replace text in many files by a regular expression.",
    "convert-image(path, width, height)": "Resize a picture or convert it to PNG or JPEG.",
    # git
    "git.commit(message, amend)": "Record the staged changes in the repository.",
    "git.push(remote, branch)": "Send local commits to a remote.",
    "git.pull(remote)": "Fetch from a remote and integrate its commits.",
    "git.log(since, author)": "Show the history of commits.",
    "git.diff(left, right)": "Show what differs between two revisions.",
    "git.clone(url, depth)": "Copy a remote repository to this machine.",
    "git.status()": "Show which files are changed or staged.",
    "git.revert(revision)": "Undo a commit with a new one.",
    "git.branches.create(name, start)": "Create a branch at a revision.",
    "git.branches.delete(name, force)": "Delete a branch.",
    "git.branches.merge(name)": "Merge a branch into the current one.",
    "git.tags.list(pattern)": "List tags.",
    # users
    "users.create(email, full_name)": "Create a user account.",
    "users.list(role, active)": "List user accounts.",
    "users.get(user_id)": "Get one user by id.",
    "users.update(user_id, email)": "Change the details of a user.",
    "users.delete(user_id)": "Delete a user and all of their data.",
    "users.suspend(user_id, reason)": "Block a user from signing in.",
    "users.reset-password(email)": "Send a link that sets a new password.",
    "users.roles.grant(user_id, role)": "Give a role to a user.",
    "users.roles.revoke(user_id, role)": "Take a role away from a user.",
    # billing
    "billing.invoices.create(customer, lines)": "Create an invoice for a customer.",
    "billing.invoices.list(customer, unpaid)": "List invoices.",
    "billing.invoices.send(invoice_id, to)": "Email an invoice as PDF.",
    "billing.refund-payment(payment_id, amount)": "Give money back to a customer.",
    "billing.charge-card(customer, amount)": "Charge a credit card.",
    "billing.cancelSubscription(customer)": "End a subscription at the end of its period.",
    "billing.tax-report(year, country)": "Sum up the tax owed in a year.",
    "billing.exchange-rates(currency)": "Télécharger les taux de change (EUR, USD).",
    "billing.ユーザー請求()": "ユーザーの請求書を表示する",
}

KEYWORDS: dict[str, dict[str, Any]] = {
    "git.status": {"when_to_use": "Before a commit, to see uncommitted work."},
    "billing.tax-report": {"task_group": "Accounting"},
    "hash-file": {"examples": [{"args": ["disk.iso"], "description": "verify an ISO download"}]},
}

FIRST = [
    # natural language
    ("deleting files", "delete-file"),
    ("how do I delete a branch?", "git.branches.delete"),
    ("I want to create a new user", "users.create"),
    ("search for files by name pattern", "find-files"),
    ("show me the commit history", "git.log"),
    ("give the customer their money back", "billing.refund-payment"),
    ("make a zip of a folder", "compress_folder"),
    ("checksum of a download", "hash-file"),
    ("see uncommitted changes", "git.status"),
    ("which tags are there", "git.tags.list"),
    ("take away a role", "users.roles.revoke"),
    ("unpaid invoices", "billing.invoices.list"),
    ("email the invoice as a pdf", "billing.invoices.send"),
    ("resize pictures", "convert-image"),
    ("accounting tax", "billing.tax-report"),
    ("forgot password", "users.reset-password"),
    ("merging branches", "git.branches.merge"),
    ("regular expression replacement", "replace-text"),
    # synonyms
    ("rm file", "delete-file"),
    ("erase a user", "users.delete"),
    ("ls dir", "list-directory"),
    ("new folder", "makeDirectory"),
    ("duplicate a file", "copy-file"),
    ("edit user", "users.update"),
    ("fetch user", "users.get"),
    ("ban an account", "users.suspend"),
    ("stop subscription", "billing.cancelSubscription"),
    ("undo commit", "git.revert"),
    ("reimburse payment", "billing.refund-payment"),
    ("compare revisions", "git.diff"),
    ("upload commits", "git.push"),
    # prefixes and typos
    ("del fil", "delete-file"),
    ("subscr", "billing.cancelSubscription"),
    ("dir list", "list-directory"),
    ("delte brnach", "git.branches.delete"),
    ("refnud", "billing.refund-payment"),
    ("comit mesage", "git.commit"),
    ("remvoe fiel", "delete-file"),
    ("suspned usr", "users.suspend"),
    ("cancellation", "billing.cancelSubscription"),
    # names, however they are written
    ("find_files", "find-files"),
    ("findFiles", "find-files"),
    ("make directory", "makeDirectory"),
    ("users.roles.grant", "users.roles.grant"),
    ("git branches create", "git.branches.create"),
    ("COMPRESS FOLDER", "compress_folder"),
    ("cancel-subscription", "billing.cancelSubscription"),
    ("sha 256", "hash-file"),
    # unicode
    ("telecharger", "billing.exchange-rates"),
    ("TÉLÉCHARGER", "billing.exchange-rates"),
    ("ｆｉｎｄ ｆｉｌｅｓ", "find-files"),
    ("請求書", "billing.ユーザー請求"),
    ("invoice’s lines", "billing.invoices.create"),
    # groups
    ("users: create", "users.create"),
    ("delete git:", "git.branches.delete"),
    ("billing.invoices: new", "billing.invoices.create"),
]


def function_of(names: str, doc: str) -> Any:
    space: dict[str, Any] = {}
    exec(f"def fn({', '.join(f'{name}: str' for name in names.split(', ') if name)}): ...", space)
    space["fn"].__doc__ = doc
    return space["fn"]


def build(tools: dict[str, str], text: dict[str, dict[str, Any]]) -> Tooli:
    app = Tooli("work")
    groups: dict[tuple[str, ...], Tooli] = {(): app}
    for declared, doc in tools.items():
        key, _, names = declared.rstrip(")").partition("(")
        *path, name = key.split(".")
        for depth in range(1, len(path) + 1):
            place = tuple(path[:depth])
            if place not in groups:
                groups[place] = Tooli(place[-1])
                groups[place[:-1]].add_typer(groups[place], name=place[-1])
        groups[tuple(path)].command(name, **text.get(key, {}))(function_of(names, doc))
    return app


@pytest.fixture(scope="module")
def index() -> ToolIndex:
    return ToolIndex(build(TOOLS, KEYWORDS).catalog)


def keys(hits: list[SearchHit]) -> list[str]:
    return [hit.tool.key for hit in hits]


# ------------------------------------------------------------------ quality


@pytest.mark.parametrize(("query", "expected"), FIRST)
def test_expected_tool_is_first(index: ToolIndex, query: str, expected: str) -> None:
    assert keys(index.search(query))[:1] == [expected]


def test_mean_reciprocal_rank_is_at_least_95_percent(index: ToolIndex) -> None:
    ranks = [keys(index.search(query, 100)) for query, _ in FIRST]
    found = [
        1 / (1 + hits.index(expected)) if expected in hits else 0.0
        for hits, (_, expected) in zip(ranks, FIRST, strict=True)
    ]
    assert sum(found) / len(found) >= 0.95


@pytest.mark.parametrize("key", [declared.partition("(")[0] for declared in TOOLS])
def test_exact_name_is_first(index: ToolIndex, key: str) -> None:
    for written in (key, key.replace(".", " "), key.replace("-", "_"), key.upper()):
        assert keys(index.search(written))[0] == key


QUERIES = Path(__file__).parent / "search_queries"


def read_rows(name: str) -> list[tuple[str, str]]:
    """Return the rows of a file: a command and its summary, or a query and the expected command."""
    lines = (QUERIES / f"{name}.txt").read_text("utf-8").splitlines()
    return [(left, right) for left, _, right in [line.partition("|") for line in lines]]


@pytest.mark.parametrize(
    ("name", "count", "first", "first_five"),
    [
        ("training", 30, 27, 29),
        ("development", 89, 64, 84),
        ("validation", 94, 61, 83),
        ("held_out", 30, 26, 28),
        ("paraphrases", 30, 14, 19),
        ("independent", 30, 16, 27),
        ("fresh", 30, 21, 25),
    ],
)
def test_quality_over_280_tools(name: str, count: int, first: int, first_five: int) -> None:
    """The expected tool is the first hit, or one of the first five, for most queries.

    Weights were chosen with the training and development queries. The validation queries were only
    counted, but their author wrote the thesaurus as well. Nobody may tune anything with the
    held-out queries, nor with the paraphrases, which avoid the words of the tools: a plain BM25 has
    14 first places for the held-out queries, and 2 for the paraphrases. The independent queries are
    about every ninth tool. They were written once, before anything was measured with them. So were
    the fresh queries, for other tools and by another author.
    """
    tools = {f"{path.replace(' ', '.')}()": summary for path, summary in read_rows("tools")}
    assert len(tools) == 280
    index = ToolIndex(build(tools, {}).catalog)
    queries = [(query, path.replace(" ", ".")) for query, path in read_rows(name)]
    assert len(queries) == count
    found = [(keys(index.search(query, 5)), expected) for query, expected in queries]
    assert sum([hits[:1] == [expected] for hits, expected in found]) >= first
    assert sum([expected in hits for hits, expected in found]) >= first_five


def test_object_may_stand_inside_a_phrase() -> None:
    tools = {"flags.off(name)": "Disable a flag.", "turns.list()": "List the turns of a game."}
    index = ToolIndex(build(tools, {}).catalog)
    for query in ("turn off the flag", "turn the new flag off", "switch it off"):
        assert keys(index.search(query))[:1] == ["flags.off"]


def test_term_counts_for_the_other_tools_of_a_group() -> None:
    tools = {
        "db.stop(id)": "End a statement.",
        "ads.stop(id)": "End a campaign.",
        "db.size()": "Show the usage of tables.",
        "ads.report()": "Show clicks.",
    }
    index = ToolIndex(build(tools, {}).catalog)
    assert keys(index.search("tables stop")).index("db.stop") < keys(
        index.search("tables stop")
    ).index("ads.stop")
    assert keys(index.search("clicks stop")).index("ads.stop") < keys(
        index.search("clicks stop")
    ).index("db.stop")


def test_question_prefers_a_tool_that_reads() -> None:
    tools = {"budget.set(amount)": "Set the budget.", "budget.get()": "Return the budget."}
    index = ToolIndex(build(tools, {"budget.get": {"annotations": ReadOnly}}).catalog)
    assert keys(index.search("what is our budget"))[0] == "budget.get"
    assert keys(index.search("change the budget"))[0] == "budget.set"


def test_unknown_compound_is_split() -> None:
    tools = {"hosts.rename(host)": "Change the name of a host.", "users.add()": "Add a user."}
    index = ToolIndex(build(tools, {}).catalog)
    assert keys(index.search("hostname")) == ["hosts.rename"]


def test_name_ranks_above_text() -> None:
    prose = "Purge, purge, purge everything: purge caches, purge logs, purge again."
    index = ToolIndex(
        build({"wipe(purge)": prose, "purge-all()": prose, "purge()": ""}, {}).catalog
    )
    assert keys(index.search("purge"))[0] == "purge"


def test_term_ranks_above_its_synonyms() -> None:
    index = ToolIndex(build({"delete()": "", "remove()": "", "erase()": ""}, {}).catalog)
    assert keys(index.search("remove it")) == ["remove", "delete", "erase"]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("who is on call", "oncall.show"),
        ("on-call schedule", "oncall.show"),
        ("login", "sessions.open"),
        ("log in", "sessions.open"),
        ("sign up", "accounts.signup"),
        ("back up the database", "databases.backup"),
        ("checkout a branch", "branches.switch"),
    ],
)
def test_word_is_found_if_it_is_written_as_two(query: str, expected: str) -> None:
    tools = {
        "calls.list(number)": "List the phone calls of a number.",
        "calls.start(number)": "Call a number.",
        "oncall.show(team)": "Show the person on duty.",
        "sessions.open(user)": "Log in as a user.",
        "logs.read(service)": "Read the log lines in a file.",
        "accounts.signup(email)": "Register with an email address.",
        "signs.list()": "List road signs.",
        "databases.backup(name)": "Save a copy of all tables.",
        "databases.list()": "List the databases.",
        "branches.switch(name)": "Check out another branch.",
        "branches.list()": "List the branches.",
    }
    index = ToolIndex(build(tools, {}).catalog)
    assert keys(index.search(query))[:1] == [expected]


def test_every_term_adds_to_the_score(index: ToolIndex) -> None:
    both = {hit.tool.key: hit.score for hit in index.search("suspend role", 100)}
    assert both["users.suspend"] and both["users.roles.grant"]
    assert keys(index.search("list invoices of a customer"))[0] == "billing.invoices.list"


def test_every_text_of_a_tool_is_searched() -> None:
    app = Tooli("say")

    @app.command(when_to_use="nightly", task_group="warehousing", examples=[{"args": ["sofia"]}])
    def export(
        destination: str,
        form: Literal["parquet", "csv"] = "csv",
        key: Annotated[str, Option(help="a passphrase")] = "",
    ) -> None:
        """Hand over rows.

        Runs on the replica.

        Args:
            destination: a bucket
        """

    app.command("other")(lambda: None)
    index = ToolIndex(app.catalog)
    words = "nightly warehousing sofia destination parquet passphrase rows replica bucket"
    for word in words.split():
        assert keys(index.search(word)) == ["export"], word


# ------------------------------------------------------------------ order, limits, groups


def test_empty_query_lists_all_tools_in_order(index: ToolIndex) -> None:
    everything = [tool.key for tool in build(TOOLS, KEYWORDS).catalog]
    assert keys(index.search("", 100)) == keys(index.search(" \n\t", 100)) == everything
    assert keys(index.search("")) == everything[:10]
    assert {hit.score for hit in index.search("")} == {0.0}


def test_query_without_a_match_finds_nothing(index: ToolIndex) -> None:
    for query in ("xylophone quartz", "!!!", "zzzzzzzz", "\x00"):
        assert index.search(query) == []
    assert ToolIndex([]).search("x") == ToolIndex([]).search("") == []


def test_limit_truncates_the_results(index: ToolIndex) -> None:
    assert len(index.search("user", 3)) == 3
    assert index.search("user", 0) == index.search("user", -1) == index.search("", -1) == []
    assert keys(index.search("user", 3)) == keys(index.search("user", 100))[:3]


def test_order_by_score_and_registration(index: ToolIndex) -> None:
    for query, _ in FIRST:
        scores = [hit.score for hit in index.search(query, 100)]
        assert scores == sorted(scores, reverse=True)
        assert scores[0] > 0
    similar = ToolIndex(build({f"{name}-job()": "Do it." for name in "dbca"}, {}).catalog)
    assert keys(similar.search("job")) == ["d-job", "b-job", "c-job", "a-job"]


def test_order_does_not_depend_on_the_hash_seed() -> None:
    code = (
        "import sys; sys.path.insert(0, 'tests/providers'); import test_search as t;"
        "i = t.ToolIndex(t.build(t.TOOLS, t.KEYWORDS).catalog);"
        "print([t.keys(i.search(q, 99)) for q, _ in t.FIRST])"
    )
    root = Path(__file__).parents[2]
    output = {
        subprocess.run(
            [sys.executable, "-c", code],
            env=environment(PYTHONHASHSEED=seed, PYTHONIOENCODING="utf-8", PATH=""),
            cwd=root,
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(output) == 1


def test_group_restricts_the_search(index: ToolIndex) -> None:
    below = [key for key in keys(index.search("", 100)) if key.startswith("users.")]
    assert keys(index.search("users:", 100)) == keys(index.search(" USERS: ", 100)) == below
    assert set(keys(index.search("users: delete", 100))) <= set(below)
    for written in ("users.roles:", "users/roles:", "users:roles:"):
        assert keys(index.search(written)) == ["users.roles.grant", "users.roles.revoke"]
    assert index.search("users: billing:") == []


@pytest.mark.parametrize("query", ["nobody:", "roles:", "nobody: create", "create users.nobody:"])
def test_unknown_group_has_no_tools(index: ToolIndex, query: str) -> None:
    assert index.search(query) == []


def test_punctuation_is_not_a_group(index: ToolIndex) -> None:
    assert keys(index.search(":: delete : file"))[0] == "delete-file"


def test_hidden_tools_are_left_out() -> None:
    app = build({"open-gate()": "Open.", "open-vault()": "Open."}, {"open-vault": {"hidden": True}})
    index = ToolIndex(app.catalog)
    assert keys(index.search("")) == keys(index.search("open-vault")) == ["open-gate"]


# ------------------------------------------------------------------ hostile words


@pytest.mark.parametrize(
    "query",
    [
        "delete " * 15_000,
        "x" * 100_000,
        "请求" * 50_000,
        "ﷺ" * 100_000,
        "aB" * 50_000,
        "a:" * 50_000,
        "a: " * 30_000,
        "\x00\x01\x1b[31m\x7f\u202e",
        "\ud800 \udfff delete\ud800file",
        "?!…—()[]{}*&^%$#@",
        ":",
        "e\u0301" * 1000,
        "\u0301\u0301",
        "ß ŉ İ ǆ ﬁ ½ ² ①",
        "'" * 100,
    ],
)
def test_hostile_queries_do_not_fail(index: ToolIndex, query: str) -> None:
    assert len(index.search(query, 100)) <= len(TOOLS)


def test_random_queries_never_raise(index: ToolIndex) -> None:
    rng = random.Random(7)
    for _ in range(300):
        size = rng.randrange(30)
        index.search("".join([chr(rng.choice((rng.randrange(0x110000), 97, 32, 58)))
                              for _ in range(size)]))  # fmt: skip


def test_tool_with_hostile_text_is_searched() -> None:
    app = build(
        {"odd(ÆØ)": "\ud800 " + "ß" * 50_000 + " needle"}, {"odd": {"examples": [{"args": []}]}}
    )
    assert keys(ToolIndex(app.catalog).search("odd")) == ["odd"]


@pytest.mark.parametrize(
    ("text", "query_text"),
    [
        ("fetchHTTPResponse", "http response"),
        ("list_URLs", "url"),
        ("sync-s3-bucket", "s3"),
        ("utf8Decode", "utf 8"),
        ("GitHub", "github"),
        ("Größe", "grosse"),
        ("naïve-café", "NAIVE CAFE"),
        ("łódź", "lodz"),
        ("удалить-файл", "УДАЛИТЬ"),
        ("हिन्दी", "हिन्दी"),
        ("파일-삭제", "파일을"),
    ],
)
def test_name_is_found_by_another_spelling(text: str, query_text: str) -> None:
    index = ToolIndex(build({"other()": "", f"{text}()": ""}, {}).catalog)
    assert keys(index.search(f"{query_text} please"))[:1] == [text]


# ------------------------------------------------------------------ imports


def test_search_loads_no_heavy_module() -> None:
    code = (
        "import sys; from tooli import Tooli; app = Tooli('x');\n"
        "@app.command()\ndef find(a: str = 'b') -> list[str]:\n    'Find it.'\n    return []\n"
        "from tooli.providers.search import ToolIndex, format_signature\n"
        "print([format_signature(hit.tool) for hit in ToolIndex(app.catalog).search('fidn')])\n"
        "heavy = 're typing dataclasses json enum inspect pydantic typer collections'.split()\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", code],
        env=environment(PYTHONPATH=str(Path(__file__).parents[2] / "src"), PATH=""),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == ["""['find(a: str = "b") -> str[]  # Find it.']""", "[]"]


# ------------------------------------------------------------------ signatures


class Color(Enum):
    red = "red"
    blue = "blue"


class Address(BaseModel):
    street: str
    zip: int = Field(0, alias="zipCode")


@dataclass
class Point:
    x: int


class Row(TypedDict):
    a: int


SHAPES: list[tuple[Any, Any, str]] = [
    (str, ..., "x: str"),
    (int, 3, "x: int = 3"),
    (float, 0.5, "x: float = 0.5"),
    (bool, False, "x: bool = false"),
    (Path, Path("."), 'x: path = "."'),
    (Color, Color.red, 'x: "red"|"blue" = "red"'),
    (Literal["a", "b"], "a", 'x: "a"|"b" = "a"'),
    (Literal[1, 2, 3, 4, 5, 6, 7], ..., "x: 1|2|3|4|5|6|…"),
    (list[str], ..., "x: str[]"),
    (list[Color], ..., 'x: ("red"|"blue")[]'),
    (list[list[int]], ..., "x: int[][]"),
    (list[Address], ..., "x: object[]"),
    (set[int], ..., "x: int[]"),
    (tuple[int, ...], ..., "x: int[]"),
    (tuple[int, str], (1, "a"), 'x: [int, str] = [1, "a"]'),
    (dict[str, int], ..., "x: object"),
    (dict, ..., "x: object"),
    (Optional[int], None, "x?: int"),
    (Optional[int], 4, "x: int|null = 4"),
    (Optional[int], ..., "x: int|null"),
    (Union[int, str], ..., "x: int|str"),
    (int | list[str], ..., "x: int|str[]"),
    (Address, ..., "x: object"),
    (Point, ..., "x: object"),
    (Row, ..., "x: object"),
    (datetime, ..., "x: datetime"),
    (date, date(2020, 1, 2), 'x: date = "2020-01-02"'),
    (UUID, ..., "x: uuid"),
    (Decimal, ..., "x: decimal"),
    (Literal[True, None], ..., "x: true|null"),
    (Annotated[int, Field(gt=0)], ..., "x: int"),
    (Annotated[list[str], Option(default_factory=list)], ..., "x?: str[]"),
    (str, 'a"b\\c\n', r'x: str = "a\"b\\c\u000a"'),
    (str, "long " * 20, "x?: str"),
    (dict, {"a": [1.5, None, True]}, 'x: object = {"a": [1.5, null, true]}'),
    (Any, ..., "x: any"),
]


def tool_of(fn: Any, **kwargs: Any) -> Tool:
    app = Tooli("one")
    app.command("run", **kwargs)(fn)
    return next(iter(app.catalog))


@pytest.mark.parametrize(("annotation", "default", "expected"), SHAPES)
def test_signature_shows_parameters_of_every_shape(
    annotation: Any, default: Any, expected: str
) -> None:
    def fn(x): ...

    fn.__annotations__ = {"x": annotation}
    fn.__defaults__ = None if default is ... else (default,)
    assert format_signature(tool_of(fn)) == f"run({expected})"


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        (None, ""),
        (str, " -> str"),
        (list[dict[str, int]], " -> object[]"),
        (Iterator[int], " -> int[]"),
        (Address, " -> object"),
        (Optional[Path], " -> path|null"),
        (Annotated[list[int], "x"], " -> int[]"),
        (object, " -> any"),
        ("Nowhere", ""),
    ],
)
def test_signature_shows_the_return_type(annotation: Any, expected: str) -> None:
    def fn(): ...

    fn.__annotations__ = {"return": annotation}
    assert format_signature(tool_of(fn)) == f"run(){expected}"


def test_signature_ends_with_summary_and_labels() -> None:
    def fn(
        context: Context, pattern: str, root: Path = Path(), limit: int | None = None
    ) -> list[str]:
        """Find files
        by pattern.

        More about it.
        """
        return []

    assert format_signature(tool_of(fn, annotations=ReadOnly)) == (
        'run(pattern: str, root: path = ".", limit?: int) -> str[]'
        "  # Find files by pattern. [read-only]"
    )


def test_labels_are_in_brackets() -> None:
    payload = {"annotations": Destructive, "requires_approval": True, "deprecated": True}
    assert format_signature(tool_of(lambda: None, **payload)) == (
        "run()  # [destructive, needs approval, deprecated]"
    )
    assert format_signature(tool_of(lambda: None, human_in_the_loop=True)).endswith(
        "[destructive, needs approval]"
    )


def test_hidden_parameter_is_not_shown() -> None:
    def fn(a: str, b: Annotated[int, Option(hidden=True)] = 1): ...

    assert format_signature(tool_of(fn)) == "run(a: str)"


def test_long_signature_omits_optional_parameters_and_text() -> None:
    names = ", ".join(f"{'optional_parameter'}_{i}: int = {i}" for i in range(40))
    space: dict[str, Any] = {}
    exec(f"def fn(needed: str, {names}) -> str: ...", space)
    space["fn"].__doc__ = "Word " * 200
    line = format_signature(tool_of(space["fn"], annotations=Destructive))
    assert len(line) <= 300
    assert line.startswith("run(needed: str, optional_parameter_0: int = 0,")
    assert ", …) -> str  # Word" in line
    assert line.endswith("… [destructive]")
    exec(f"def fn({', '.join(f'needed_{i}: str' for i in range(99))}): ...", space)
    assert len(format_signature(tool_of(space["fn"]))) <= 300


def test_name_includes_the_group() -> None:
    def create(email: str) -> None:
        """Create."""

    app, users = Tooli("work"), Tooli("users")
    users.command()(create)
    app.add_typer(users)
    assert [format_signature(tool) for tool in app.catalog] == [
        "users.create(email: str)  # Create."
    ]


def test_hidden_required_parameter_is_shown() -> None:
    def fn(a: Annotated[int, Option(hidden=True)]): ...

    assert format_signature(tool_of(fn)) == "run(a: int)"


def test_default_that_is_not_json_is_optional() -> None:
    def fn(a: Any = object): ...

    assert format_signature(tool_of(fn)) == "run(a?: any)"


def test_long_name_is_truncated() -> None:
    app = Tooli("one")
    app.command("n" * 120)(lambda: None)
    (tool,) = app.catalog
    assert format_signature(tool) == "n" * 79 + "…()"


def test_shape_choices_are_texts() -> None:
    assert shape_choices(Choice((Color.red, Color.blue), Color)) == ("red", "blue")
    assert shape_choices(Scalar(int)) == ()
