"""Results are limited after the call has ended."""

from __future__ import annotations

from tooli import Tooli
from tooli.core.call import Call, Caller, Ok
from tooli.records.call_options import ResultOptions
from tooli.serving.late_limits import limit_value


def test_list_is_cut_and_has_a_cursor_for_the_rest() -> None:
    app = Tooli("shop")

    @app.command()
    def rows(count: int = 300) -> list[int]:
        """Show the rows."""
        return list(range(count))

    call = Call(app.find("rows"), {}, Caller("mcp"), [], meta={"other": 1})
    limits = ResultOptions(max_bytes=500, has_default_sizes=True)
    limited, outcome = limit_value(call, list(range(300)), limits)
    assert isinstance(outcome, Ok)
    shown = len(outcome.value)
    assert 0 < shown < 300
    assert limited.meta["truncated"]["shown"] == shown
    assert limited.meta["other"] == 1
    assert call.meta == {"other": 1}
    cursor = limited.meta["page"]["next_cursor"]
    assert app.call("rows", cursor=cursor, limit=0).unwrap() == list(range(shown, 300))


def test_printed_text_has_no_cursor() -> None:
    app = Tooli("shop")

    @app.command()
    def show() -> None:
        """Print a text."""

    call = Call(app.find("show"), {}, Caller("mcp"), [])
    limited, outcome = limit_value(call, "abc\n" * 300, ResultOptions(max_bytes=500))
    assert isinstance(outcome, Ok)
    assert outcome.value.endswith("abc\n")
    assert "page" not in limited.meta
