"""The stage `settings_check`."""

from __future__ import annotations

import pytest
from tests.stages.stage_calls import make_call, make_context

from tooli import InputError
from tooli.config.layers import SettingFault
from tooli.stages.settings_check import reject_invalid_settings


def test_call_is_rejected_before_it_runs() -> None:
    fault = SettingFault("allow_paths", "must be a list", "tooli.toml")
    stage = reject_invalid_settings(make_context(make_call(), faults=[fault]))
    with pytest.raises(InputError, match="allow_paths"):
        next(stage(make_call()))
