"""Test an app: run commands, compare interfaces, check snapshots.

invoke, run            run a command line, in this process or in a new one ─▶ CommandResult
Case, assert_parity    send one request through every interface ─▶ equal envelopes
assert_…_snapshot      compare schema, help and answers with reviewed files
assert_examples        check that the command accepts every example that it shows
assert_same_input      check that a command reads files and stdin alike
check_line             return the problems of a command line, without running it
"""

from __future__ import annotations

from tooli.testing.app_interfaces import (
    Case,
    HandshakeInterface,
    HttpInterface,
    Interface,
    InterfaceResponse,
    StatelessInterface,
    interfaces,
    register_interface,
)
from tooli.testing.assertions import (
    assert_envelope_snapshot,
    assert_examples,
    assert_help_snapshot,
    assert_parity,
    assert_schema_snapshot,
    check_line,
)
from tooli.testing.command_runner import CommandResult, invoke, run
from tooli.testing.input_round_trip import assert_same_input

__all__ = [
    "Case",
    "CommandResult",
    "HandshakeInterface",
    "HttpInterface",
    "Interface",
    "InterfaceResponse",
    "StatelessInterface",
    "assert_envelope_snapshot",
    "assert_examples",
    "assert_help_snapshot",
    "assert_parity",
    "assert_same_input",
    "assert_schema_snapshot",
    "check_line",
    "interfaces",
    "invoke",
    "register_interface",
    "run",
]
