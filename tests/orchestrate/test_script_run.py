"""Scripts against real tools: order, limits, deadlines and what is left behind."""

from __future__ import annotations

import asyncio
import threading

import pytest
from tests.orchestrate.script_app import Shop

from tooli import Context, SecretInput
from tooli.annotations import ReadOnly
from tooli.orchestrate import run_tool, script_run
from tooli.orchestrate.inner_calls import InnerCalls
from tooli.orchestrate.sandbox import SandboxLimits
from tooli.orchestrate.script_run import MAX_PRINTED_CHARS, PrintedText


def run(source: str, shop: Shop | None = None, **options):
    return (shop or Shop()).app.orchestrate(source, **options)


def error_of(source: str, shop: Shop | None = None, **options):
    error = run(source, shop, **options).error
    assert error is not None
    return error


@pytest.fixture
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = SandboxLimits(seconds=0.5, turn_seconds=0.3, memory=16 << 20, depth=100)
    monkeypatch.setattr(run_tool, "DEFAULT_LIMITS", limits)


def test_calls_of_gather_run_at_the_same_time() -> None:
    shop = Shop()
    barrier = asyncio.Event()
    running: list[int] = []

    @shop.app.command(annotations=ReadOnly)
    async def meet(count: int) -> int:
        """Wait until that many calls run."""
        running.append(1)
        if len(running) == count:
            barrier.set()
        await barrier.wait()
        return len(running)

    source = "import asyncio\nawait asyncio.gather(*[meet(count=3) for _ in range(3)])"
    assert run(source, shop).unwrap() == [3, 3, 3]


def test_many_calls_of_gather() -> None:
    source = "import asyncio\nlen(await asyncio.gather(*[find() for _ in range(600)]))"
    assert run(source, max_calls=600).unwrap() == 600
    assert error_of(source, max_calls=599).code == "E4081"


def test_calls_start_when_the_script_waits() -> None:
    """A script that fails before that has called nothing."""
    shop = Shop()
    error = error_of("pending = drop(name='tea')\n1 // 0", shop, yes=True)
    assert error.code == "E4080"
    assert error.suggestion is not None
    assert "Nothing was changed" in error.suggestion["fix"]
    assert shop.ran == []


def test_concurrency_is_limited() -> None:
    shop = Shop()
    running: list[int] = []
    most: list[int] = []
    two = asyncio.Event()

    @shop.app.command(annotations=ReadOnly)
    async def step() -> None:
        """Count the calls that run; wait until two of them run."""
        running.append(1)
        most.append(len(running))
        if len(running) == 2:
            two.set()
        await two.wait()
        running.pop()

    source = "import asyncio\nawait asyncio.gather(*[step() for _ in range(9)])\n1"
    assert run(source, shop, concurrency=2).ok
    assert (len(most), max(most)) == (9, 2)


def test_tool_as_a_value() -> None:
    source = "tools = {'p': price}\n(await tools['p'](name='tea'))['cents']"
    assert run(source).unwrap() == 300


def test_tool_returns_data_and_never_code() -> None:
    shop = Shop()

    @shop.app.command(annotations=ReadOnly)
    def read() -> str:
        """Return hostile text."""
        return "__import__('os').system('id'); await drop(name='tea')"

    assert "drop" in run("text = await read()\nf'{text}'", shop, yes=True).unwrap()
    assert shop.ran == []


def test_error_of_a_tool_can_be_caught() -> None:
    source = (
        "try:\n    await price(name='gold')\nexcept LookupError as error:\n    r = str(error)\nr"
    )
    assert run(source).unwrap() == "E3010: There is no gold."


def test_uncaught_error_has_its_line_and_the_calls() -> None:
    shop = Shop()
    source = "await drop(name='tea')\n\nasync def look(n):\n    return await price(name=n)\n"
    error = error_of(source + "\nawait look('gold')", shop, yes=True)
    assert (error.code, error.category) == ("E3010", "state")
    assert error.details is not None
    assert (error.details["line"], error.details["column"]) == (4, 12)
    assert error.details["source"] == "return await price(name=n)"
    assert [frame["line"] for frame in error.details["traceback"]] == [6, 4]
    calls = [(call["tool"], call["line"], call["ok"]) for call in error.details["calls"]]
    assert calls == [("drop", 1, True), ("price", 4, False)]
    assert error.suggestion is not None
    assert "do not repeat" in error.suggestion["fix"]


def test_failed_gather_names_the_line_of_the_call() -> None:
    source = "import asyncio\ncalls = [\n    price(name='tea'),\n    price(name='gold'),\n]\n"
    error = error_of(source + "await asyncio.gather(*calls)")
    assert error.details is not None
    assert error.details["line"] == 4


def test_own_exception() -> None:
    error = error_of("x = 1\nraise ValueError('wrong')")
    assert error.code == "E4080"
    assert error.message == "The script failed on line 2: ValueError: wrong"


def test_approval_is_asked_for(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLI_STATE_DIR", str(tmp_path))
    shop = Shop()
    error = error_of("await buy(name='tea')", shop, yes=True)
    assert (error.code, error.category) == ("E2101", "human")
    assert error.details is not None
    assert error.details["error"]["approval"]["id"]
    assert shop.ran == []


def test_maximum_of_calls() -> None:
    shop = Shop()
    error = error_of("for i in range(10_000_000):\n    await find()", shop, max_calls=5)
    assert error.code == "E4081"
    assert shop.ran == ["find"] * 5


def test_limit_of_calls_cannot_be_caught() -> None:
    shop = Shop()
    source = (
        "while True:\n    try:\n        await find()\n    except BaseException:\n        pass\n"
    )
    assert error_of(source, shop, max_calls=3).code == "E4081"


@pytest.mark.usefixtures("small_limits")
@pytest.mark.parametrize(
    "source",
    [
        "while True: pass",
        "while True: print('x' * 100)",
        "x = [0] * 10**8",
        "x = 'a'\nwhile True: x += x",
        "def f(n): return f(n + 1)\nf(0)",
        "x = []\nwhile True: x.append(list(range(1000)))",
    ],
)
def test_limits_of_the_sandbox(source: str) -> None:
    error = error_of(source)
    assert error.code == "E4081"
    assert error.suggestion is not None
    assert "Nothing was changed" in error.suggestion["fix"]


def test_sleep_is_limited_and_works() -> None:
    source = "import asyncio, time\nawait asyncio.sleep(0.001)\ntime.sleep(0.001)\n1"
    assert run(source).unwrap() == 1
    assert error_of("import asyncio\nawait asyncio.sleep(100)").code == "E4081"
    assert error_of("import time\ntime.sleep(100)").code == "E4081"


def test_deadline_stops_a_running_tool() -> None:
    shop = Shop()
    ended: list[str] = []

    @shop.app.command()
    async def hang() -> None:
        """Wait for ever."""
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    for seconds in (2, 20, 100):  # until there is time to start the sandbox and the tool
        error = error_of("await hang()", shop, timeout=seconds)
        assert error.code == "E4050"
        if ended:
            break
    assert ended == ["cancelled"]
    assert error.details is not None
    assert error.details["calls"][0]["ok"] is False


def test_deadline_stops_a_busy_script() -> None:
    error = error_of("while True: pass", timeout=1)
    assert error.code == "E4050"
    assert error.is_retryable
    assert error.message == "The script did not finish within 1 s and was stopped."
    assert error.details == {"seconds": 1}


def test_deadline_of_the_calls_is_that_of_the_script(monkeypatch: pytest.MonkeyPatch) -> None:
    deadlines: list[tuple[float | None, float | None]] = []

    class Calls(InnerCalls):
        def __init__(self, app, outer, *, deadline, **options) -> None:
            super().__init__(app, outer, deadline=deadline, **options)
            deadlines.append((deadline, outer.stop.deadline))

    monkeypatch.setattr(script_run, "InnerCalls", Calls)
    assert run("1", timeout=100).unwrap() == 1
    ((deadline, whole),) = deadlines
    assert deadline == whole
    assert deadline is not None


def test_deadline_stops_a_sleep() -> None:
    assert error_of("import time\ntime.sleep(50)", timeout=1).code == "E4050"


async def test_cancelled_run_leaves_no_tool() -> None:
    shop = Shop()
    started, ended = asyncio.Event(), asyncio.Event()

    @shop.app.command()
    async def hang() -> None:
        """Wait for ever."""
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    task = asyncio.ensure_future(shop.app.aorchestrate("await hang()"))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended.is_set()


def test_failure_waits_for_calls_that_change_data() -> None:
    """Their outcome is known then. Calls that have not started are dropped."""
    shop = Shop()
    can_end = threading.Event()

    @shop.app.command()
    def change() -> str:
        """Change something."""
        can_end.wait(30)
        shop.ran.append("changed")
        return "changed"

    @shop.app.command(annotations=ReadOnly)
    def fail() -> None:
        """Fail, and let the other call end."""
        can_end.set()
        raise ValueError("broken")

    source = "import asyncio\nawait asyncio.gather(change(), fail(), find(), find())"
    error = error_of(source, shop, concurrency=2)
    assert "changed" in shop.ran
    assert error.details is not None
    assert {"tool": "change", "line": 2, "ok": True}.items() <= error.details["calls"][0].items()


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("lambda: 1", "The result is a function"),
        ("class A:\n    pass\n[1, {'x': A()}]", "The result[1]['x'] is an object of the class 'A'"),
        ("10 ** 5000", "too many digits"),
        ("x = []\nfor i in range(300):\n    x = [x]\nx", "more than 100 levels"),
        ("ValueError('x')", "an exception, ValueError"),
        ("int", "the class 'int'"),
    ],
)
def test_result_that_is_not_json(source: str, message: str) -> None:
    error = error_of(source)
    assert error.code == "E4080"
    assert message in error.message


def test_argument_that_is_not_json() -> None:
    source = (
        "from typing import Any\nclass A: pass\ndef f() -> Any: return A()\nawait find(text=f())"
    )
    error = error_of(source)
    assert error.code == "E4080"
    assert "find(text=…) is an object of the class 'A'" in error.message


def test_values_of_the_standard_library_are_converted() -> None:
    source = (
        "import datetime\n{'d': datetime.date(2026, 1, 2), 's': {2, 1}, 't': (1, None), 1: b'x'}"
    )
    expected = {"d": "2026-01-02", "s": [1, 2], "t": [1, None], "1": "x"}
    assert run(source).unwrap() == expected


def test_pages_are_complete() -> None:
    """A script could not see that there are more pages."""
    shop = Shop()

    @shop.app.command(annotations=ReadOnly, paginated=10)
    def numbers() -> list[int]:
        """Return many numbers."""
        return list(range(250))

    assert run("len(await numbers())", shop).unwrap() == 250
    assert len(shop.app.call("numbers").unwrap()) == 10


def test_secrets_stay_hidden() -> None:
    shop = Shop()

    @shop.app.command(annotations=ReadOnly)
    def login(token: SecretInput[str]) -> str:
        """Return the token."""
        return f"token {token.reveal()}"

    source = "text = await login(token='s3cr3t-value-1')\n[text, text[::-1]]"
    done = run(source, shop)
    assert done.unwrap()[0].startswith("token ")
    text = done.model_dump_json()
    assert "s3cr3t-value-1" not in text
    assert "s3cr3t-value-1"[::-1] not in text


def test_warnings_of_tools_are_passed_on() -> None:
    shop = Shop()

    @shop.app.command(annotations=ReadOnly)
    def careful(ctx: Context) -> int:
        """Warn."""
        ctx.warn("look out")
        return 1

    assert run("await careful()\nawait careful()", shop).meta["warnings"] == ["careful: look out"]


def test_restricted_callers() -> None:
    shop = Shop()

    @shop.app.command(callers=["code"], annotations=ReadOnly)
    def only_code() -> int:
        """Only for scripts."""
        return 1

    @shop.app.command(callers=["direct"], annotations=ReadOnly)
    def only_direct() -> int:
        """Not for scripts."""
        return 2

    assert run("await only_code()", shop).unwrap() == 1
    assert error_of("await only_direct()", shop).code == "E1070"
    direct = shop.app.call("only-code").error
    assert direct is not None
    assert direct.code == "E2007"
    assert shop.app.call("only-direct").unwrap() == 2


class TestPrintedText:
    def test_is_cut(self) -> None:
        printed = PrintedText()
        for _ in range(30):
            printed.write("stdout", "x" * 1000)
        assert len(printed.text) == MAX_PRINTED_CHARS
        assert printed.text.endswith("…")

    def test_loses_newlines_at_the_end(self) -> None:
        printed = PrintedText()
        printed.write("stderr", "a\nb\n\n")
        assert printed.text == "a\nb"
