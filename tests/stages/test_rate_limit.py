"""The stage `rate_limit`."""

from __future__ import annotations

import pytest
from tests.stages.stage_calls import make_call, make_context, pass_through

from tooli import TemporaryError
from tooli.core.call import Call, Caller
from tooli.errors import DependencyError
from tooli.stages import rate_limit
from tooli.stages.rate_limit import limit_rate


@pytest.fixture(autouse=True)
def _new_limiter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_limit, "_limiter", None)


def send(call: Call, **settings: str) -> None:
    stage = limit_rate(make_context(call, **settings))
    assert stage is not None
    pass_through(stage, call)


def test_local_callers_are_not_limited() -> None:
    assert limit_rate(make_context(make_call(rate_limit="1/minute"))) is None


def test_call_beyond_the_limit_is_rejected() -> None:
    call = make_call(surface="http", rate_limit="2/minute")
    send(call)
    send(call)
    with pytest.raises(TemporaryError, match="may be called 2 times a minute") as caught:
        send(call)
    assert caught.value.code == "E4029"
    assert caught.value.details is not None
    assert caught.value.details["rate_limit"] == "2/minute"
    assert 1 <= caught.value.details["retry_after"] <= 60


def test_limit_of_the_settings_applies_as_well() -> None:
    call = make_call(surface="mcp", rate_limit="9/minute")
    send(call, rate_limit="1/minute")
    with pytest.raises(TemporaryError, match="1 times a minute"):
        send(call, rate_limit="1/minute")


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"address": "10.0.0.1"}, {"address": "10.0.0.2"}),
        ({"address": "2001:db8::1"}, {"address": "2001:db8:0:1::1"}),
        ({"address": "10.0.0.1", "principal": "ada"}, {"address": "10.0.0.1"}),
        ({}, {"address": "10.0.0.1"}),
    ],
)
def test_callers_are_counted_separately(first: dict[str, str], second: dict[str, str]) -> None:
    call = make_call(surface="http", rate_limit="1/minute")
    send(call.replace(caller=Caller("http", **first)))
    send(call.replace(caller=Caller("http", **second)))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"address": "2001:db8::1"}, {"address": "2001:db8::ffff"}),
        ({"address": "2001:db8::1%eth0"}, {"address": "2001:db8::2"}),
        ({"address": "::ffff:10.0.0.1"}, {"address": "10.0.0.1"}),
        ({"address": "a:b:c"}, {"address": "a:b:c"}),
        ({"address": "1.1.1.1", "principal": "ada"}, {"address": "2.2.2.2", "principal": "ada"}),
    ],
)
def test_one_caller_is_counted_once(first: dict[str, str], second: dict[str, str]) -> None:
    call = make_call(surface="http", rate_limit="1/minute")
    send(call.replace(caller=Caller("http", **first)))
    with pytest.raises(TemporaryError):
        send(call.replace(caller=Caller("http", **second)))


def test_missing_package_is_a_dependency_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_package() -> None:
        raise ImportError

    monkeypatch.setattr(rate_limit, "RateLimiter", no_package)
    with pytest.raises(DependencyError, match="the package `limits` is not installed"):
        send(make_call(surface="http", rate_limit="1/minute"))
