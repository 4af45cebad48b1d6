"""The table of stages, and the choice of those that apply to a call.

Every call passes the stages of `STAGES` that apply to it, outermost first. To add a stage, write
a function in `tooli/stages` and add one row here. A call takes the fast path (`ONLY_BIND`) if no
stage other than `bind` applies to it.

The table is in this file because every call loads the package anyway, and one more file would add
0.1 ms to every start. The rows name their stages as text, so that a stage is imported only for a
call that may need it.
"""

from __future__ import annotations

import os
import sys
from _operator import attrgetter

from tooli.core import Record
from tooli.core._hot_tables import AGENT_SESSION_VARIABLES

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence
    from typing import Any, TypeAlias

    from tooli.core import AppState
    from tooli.core.call import Call, Caller, Options, Stage, StageRun
    from tooli.core.protocols import App
    from tooli.core.tool import Tool
    from tooli.storage.state_files import MemoryFailureHistory

    StageRow: TypeAlias = tuple[str, str, tuple[str, ...], tuple[str, ...]]
    """Name, location, `when`, `unless`.

    The location is `module:function`. A generator function is the stage itself, such as
    `apply_plan`. Any other function is a factory, such as `limit_rate`: it takes the
    `StageContext` of a call and returns a stage, or None if the call does not need one. The flag
    `_CO_GENERATOR` of the code object distinguishes them.

    `when` and `unless` list attributes of the `StageContext`. The stage applies if one of `when`
    is true (or `when` is empty) and none of `unless` is true. The row of `apply_plan` has
    `when=("options.apply",)` and `unless=("options.dry_run",)`: it applies to calls with `--apply`
    that are not dry runs.

    `value:name` reads the item or attribute `name` of a value that may be None or empty. For
    example, `options.result_options:filter` is true if there are `result_options` and their
    `filter` is set. `_read_conditions` reads only the attribute before the colon.
    """

_DRY_RUN = ("options.dry_run",)
_POLICY_OFF = ("is_policy_off",)
_AUDITED = ("is_strict", "tool.behavior.destructive", "tool.guard.may_need_approval")
_PATH_RULES = (
    "state.path_settings:allow_paths",
    "state.path_settings:deny_paths",
    "state.path_settings:work_dir",
)
_HAS_SIZE_LIMIT = ("tool.limits.max_tokens", "options.result_options:has_size_limit")
_IS_PAGED = (
    "tool.limits.page_size",
    "tool.limits.returns_page",
    "options.result_options:is_paged",
)

STAGES: tuple[StageRow, ...] = (
    # Identify the caller and limit its calls.
    (
        "settings_check",
        "tooli.stages.auth:reject_invalid_settings",
        ("state.security_settings:faults",),
        (),
    ),
    (
        "ignored_settings",
        "tooli.stages.auth:report_ignored_settings",
        ("state.security_settings:ignored",),
        (),
    ),
    (
        "audit_log",
        "tooli.stages.audit:select_audit_log",
        ("state.security_settings:audit_log",),
        (),
    ),
    ("limit_audit", "tooli.stages.audit:record_limits", _AUDITED, _POLICY_OFF),
    (
        "rate_limit",
        "tooli.stages.rate_limit:limit_rate",
        ("tool.limits.rate_limit", "state.security_settings:rate_limit"),
        ("approved",),  # the call was counted when it requested the approval
    ),
    (
        "repeated_failures",
        "tooli.pipeline:track_failures",
        ("can_track_failures",),
        (),
    ),
    ("identity_audit", "tooli.stages.audit:record_identity_denials", _AUDITED, _POLICY_OFF),
    (
        "authentication",
        "tooli.stages.auth:authenticate_caller",
        ("state.security_settings", "tool.guard.scopes"),
        (),
    ),
    ("audience", "tooli.stages.auth:check_audience", ("tool.guard.audience",), ()),
    ("callers", "tooli.stages.auth:check_callers", ("tool.guard.callers",), ()),
    (
        "authorization",
        "tooli.stages.auth:authorize",
        ("is_strict", "tool.guard.scopes"),
        _POLICY_OFF,
    ),
    (
        "removal",
        "tooli.stages.removal:refuse_removed",
        ("tool.guidance.sunset", "tool.guidance.deprecated_version"),
        (),
    ),
    # Read the arguments. A caller that the stages above reject learns nothing about them.
    (
        "argument_names",
        "tooli.stages.argument_names:rename_aliases",
        ("has_aliases",),
        (),
    ),
    (
        "secret_tracking",
        "tooli.stages.handles:track_secrets",
        ("tool.may_have_secrets",),
        _POLICY_OFF,
    ),
    (
        "record_flow",
        "tooli.stages.record_selection:open_record_flow",
        (
            "options.result_options",
            "options.idempotency_key",
            "omits_details",
            "tool.limits.page_size",
            "tool.limits.returns_page",
            "tool.limits.max_tokens",
        ),
        (),
    ),
    ("work_dir", "tooli.stages.path_rules:resolve_work_dir", _PATH_RULES, ()),
    (
        "file_rules",
        "tooli.stages.path_rules:set_file_rules",
        (*_PATH_RULES, "tool.guard.isolation", "state.security_settings:isolation"),
        (),
    ),
    ("callbacks", "tooli.stages.callbacks:run_callbacks", ("tool.route",), ()),
    ("bind", "tooli.pipeline.drivers:bind", (), ()),
    # Check whether the call may run.
    ("denial_audit", "tooli.stages.audit:record_denials", _AUDITED, _POLICY_OFF),
    ("path_rules", "tooli.stages.path_rules:enforce_path_rules", _PATH_RULES, ()),
    (
        "secret_reading",
        "tooli.stages.handles:read_secrets",
        ("tool.may_have_secrets",),
        _POLICY_OFF,
    ),
    (
        "pre_validation",
        "tooli.stages.validation:run_own_checks",
        ("tool.pre_validate", "tool.checked_params"),
        (),
    ),
    ("validation", "tooli.stages.validation:answer_valid", ("options.validate",), ()),
    (
        "approval",
        "tooli.stages.approval:require_approval",
        ("tool.behavior.destructive", "tool.guard.may_need_approval"),
        (),
    ),
    ("dry_run", "tooli.stages.plans:answer_with_plan", _DRY_RUN, ()),
    # Change the result. The plan of a dry run is not changed.
    (
        "output_schema",
        "tooli.stages.result_meta:add_output_schema",
        ("options.detailed", "caller.session"),
        _DRY_RUN,
    ),
    ("size_limit", "tooli.stages.pages:limit_size", _HAS_SIZE_LIMIT, _DRY_RUN),
    (
        "python_eval",
        "tooli.orchestrate.python_eval:evaluate_result",
        ("options.python_eval",),
        _DRY_RUN,
    ),
    (
        "concise",
        "tooli.stages.record_selection:omit_details",
        ("omits_details",),
        (*_DRY_RUN, "options.result_options:fields"),
    ),
    (
        "field_selection",
        "tooli.stages.record_selection:select_fields",
        ("options.result_options:fields",),
        _DRY_RUN,
    ),
    ("pagination", "tooli.stages.pages:paginate", (*_HAS_SIZE_LIMIT, *_IS_PAGED), _DRY_RUN),
    (
        "filter",
        "tooli.stages.record_selection:filter_records",
        ("options.result_options:filter",),
        _DRY_RUN,
    ),
    (
        "page_unwrap",
        "tooli.stages.pages:unwrap_page",
        ("tool.limits.returns_page",),
        _DRY_RUN,
    ),
    (
        "next_steps",
        "tooli.stages.result_meta:add_next_steps",
        ("tool.guidance.may_return_next", "options.detailed"),
        _DRY_RUN,
    ),
    # Run the function. The stages above also change a stored result that `idempotency` returns.
    (
        "idempotency",
        "tooli.stages.idempotency:run_once",
        ("options.idempotency_key",),
        _DRY_RUN,
    ),
    ("apply_plan", "tooli.stages.plans:apply_plan", ("options.apply",), _DRY_RUN),
    ("run_audit", "tooli.stages.audit:record_run", _AUDITED, _POLICY_OFF),
    (
        "dependencies",
        "tooli.stages.injection:inject_dependencies",
        ("tool.has_dependencies", "tool.settings"),
        (),
    ),
    ("questions", "tooli.stages.questions:answer_questions", ("answers_questions",), ()),
    (
        "capabilities",
        "tooli.stages.capabilities:enforce_capabilities",
        (
            "tool.guard.capabilities",
            "tool.guard.app_permissions",
            "state.security_settings:allow_paths",
            "state.security_settings:deny_paths",
            "state.security_settings:record_capabilities",
        ),
        (),
    ),
    (
        "isolation",
        "tooli.stages.isolation:isolate",
        ("tool.guard.isolation", "state.security_settings:isolation"),
        (),
    ),
    (
        "timeout",
        "tooli.stages.timeout:enforce_timeout",
        (
            "options.timeout",
            "tool.limits.timeout",
            "tool.limits.stops_itself",
            "tool.guard.isolation",
            "state.security_settings",
        ),
        (),
    ),
    ("lifespan", "tooli.stages.shared_resources:open_lifespans", ("tool.lifespans",), ()),
    ("handles", "tooli.stages.handles:open_handles", ("tool.has_handles",), ()),
    (
        "claims",
        "tooli.pipeline.single_use_claims:start_claims",
        ("tool.behavior.destructive", "tool.guard.may_need_approval", "options.apply"),
        _DRY_RUN,
    ),
)
"""All stages, outermost first."""

CONFINEMENT_STAGES = ("capabilities", "isolation", "timeout")
"""The stages that confine the function while it runs."""


class StageContext(Record):
    """The facts about a call that decide which stages apply to it.

    `failure_history` is the failure history of the server that received the call. It is None for
    a call that no server received.
    """

    tool: Tool
    options: Options
    state: AppState
    caller: Caller
    find_tool: Callable[[str], Tool | None]
    approved: bool = False
    failure_history: MemoryFailureHistory | None = None
    is_any_call = True  # the condition of a stage with an empty `when`

    @property
    def is_strict(self) -> bool:
        """True under the security policy `strict`."""
        return self.state.effective_policy(self.tool) == "strict"

    @property
    def is_policy_off(self) -> bool:
        """True under the security policy `off`."""
        return self.state.effective_policy(self.tool) == "off"

    @property
    def has_aliases(self) -> bool:
        """True if parameters have ASCII aliases, because model providers refuse their names."""
        return not "".join(self.tool.param_names).isascii()

    @property
    def omits_details(self) -> bool:
        """True if a concise result is requested and the tool may have detail fields.

        Only pydantic models and `Detail` mark detail fields. If neither is loaded, there are none.
        """
        return self.options.concise and (
            "pydantic" in sys.modules or "tooli.schema.detail_fields" in sys.modules
        )

    @property
    def can_track_failures(self) -> bool:
        """True if failures of this caller can be distinguished from those of other callers."""
        caller = self.caller
        if self.failure_history is None:
            return caller.session is not None or caller.category is not None
        if caller.session is not None or caller.principal is not None:
            return True
        return caller.address is None  # the only client of the process

    @property
    def answers_questions(self) -> bool:
        """True if options answer or refuse the questions of a function that Python code calls."""
        return (self.options.yes or self.options.no_input) and self.caller.is_in_process

    def select(self, names: Sequence[str]) -> tuple[Stage, ...]:
        """Return the stages with these names that apply to the call."""
        rows = [row for row in STAGES if row[0] in names]
        return tuple(_load_stages(rows, self, _read_conditions(self)))


# ------------------------------------------------------------------ selection


def select_stages(context: StageContext) -> tuple[Stage, ...]:
    """Return the stages that apply to a call, outermost first.

    Returns `ONLY_BIND` if no other stage applies.
    """
    only_bind = load_location("tooli.pipeline.drivers:ONLY_BIND")
    conditions = _read_conditions(context)
    if not conditions:
        return only_bind
    custom_stages = context.tool.custom_stages
    if not custom_stages:
        stages = tuple(_load_stages(STAGES, context, conditions))
        return stages if len(stages) > 1 else only_bind
    ordered: list[Stage] = []
    for row in STAGES:
        anchored = [custom for custom in custom_stages if custom.anchor == row[0]]
        ordered += [custom.stage for custom in anchored if not custom.is_after]
        ordered += _load_stages((row,), context, conditions)
        ordered += [custom.stage for custom in anchored if custom.is_after]
    return tuple(ordered)


def prepare_call(
    app: App, call: Call, failure_history: MemoryFailureHistory | None
) -> tuple[Call, tuple[Stage, ...]]:
    """Return a call with the state that the app adds to it, and the stages that apply to it."""
    state = app._state
    if not (state.security_settings_loaded or state.has_cli_settings):
        from tooli.config import load_security_settings

        load_security_settings(state)
    tool = state.restrict(app._resolve_handoffs(call.tool))
    if tool.guidance.problem is not None:
        call.warnings.append(tool.guidance.problem)
    stages = select_stages(
        StageContext(
            tool, call.options, state, call.caller, app.find, call.approved, failure_history
        )
    )
    policy = state.effective_policy(tool)
    if len(stages) > 1:  # the stage `bind` alone fills neither `meta` nor `secrets`
        data = _find_session_data(call)
        call = call.replace(tool=tool, policy=policy, meta={}, secrets=[], **data)
    elif (
        tool is not call.tool
        or policy != call.policy
        or any([param.kind == "injected" for param in tool.params])
    ):
        # `ctx.artifact` fills `meta`
        call = call.replace(tool=tool, policy=policy, meta={}, **_find_session_data(call))
    return call, stages


def _find_session_data(call: Call) -> dict[str, Any]:
    """Return the fields for `ctx.state`: the data of the session, or data for this call only."""
    if call.session_data is not None:
        return {}
    kept = None if call.request is None else call.request.session_data
    return {"session_data": {} if kept is None else kept, "keeps_session": kept is not None}


_conditions: tuple[object, tuple[str, ...], Any] = (None, (), None)
"""Cache of `_read_conditions`: the table, its conditions, and a function that reads them."""


def _read_conditions(context: StageContext) -> frozenset[str]:
    """Return the conditions of the table that may hold for a call.

    An empty set means the fast path. Only the part of a condition before the colon is read. One C
    function reads all values in about 3 µs.
    """
    global _conditions
    table, paths, read = _conditions
    if table is not STAGES:
        unique_paths = {"tool.custom_stages": None}
        for name, _, when, _ in STAGES:
            unique_paths.update(dict.fromkeys(when if when or name == "bind" else ("is_any_call",)))
        paths = tuple(unique_paths)
        read = attrgetter(*[path.partition(":")[0] for path in paths])
        _conditions = (STAGES, paths, read)
    values = read(context)
    if not any(values):
        return frozenset()
    return frozenset([path for path, value in zip(paths, values, strict=True) if value])


def _load_stages(
    rows: Sequence[StageRow], context: StageContext, conditions: frozenset[str]
) -> Generator[Stage, None, None]:
    """Yield the stage of each row that applies to a call.

    `conditions` are the conditions that may hold, as `_read_conditions` returns them.
    """
    for name, location, when, unless in rows:
        if when:
            if conditions.isdisjoint(when):
                continue
            if not any([path in conditions and _is_true(context, path) for path in when]):
                continue
        if any([_is_true(context, path) for path in unless]):
            continue
        stage = load_location(location)
        if not stage.__code__.co_flags & _CO_GENERATOR:
            stage = stage(context)
        if stage is not None:
            _stage_names[stage.__code__] = name
            yield stage


_CO_GENERATOR = 0x20
_stage_names: dict[object, str] = {}  # names of the loaded stages, by code object


def stage_name(stage: object) -> str:
    """Return the name of a stage: the one in the table, or the name of its function."""
    code = getattr(stage, "__code__", None)
    return _stage_names.get(code) or getattr(stage, "__qualname__", None) or repr(stage)


def _is_true(context: StageContext, path: str) -> bool:
    first, _, rest = path.partition(":")
    value: Any = attrgetter(first)(context)
    if not value or not rest:
        return bool(value)
    value = value.get(rest) if hasattr(value, "get") else getattr(value, rest)
    return value is not None and value is not False


def load_location(location: str) -> Any:
    """Return the object that `module:name` names.

    It calls `__import__` instead of reading `sys.modules`, which may hold a module that another
    thread is still importing. `__import__` waits for that thread.
    """
    module_name, _, name = location.partition(":")
    return getattr(__import__(module_name, fromlist=(name,)), name)


# ------------------------------------------------------------------ repeated failures
#
# An agent on a command line starts a new process for each call, and most sessions have no failure
# yet. The modules of the stage that counts failures take 0.5 ms to load. `record_first_failure`
# replaces that stage in sessions without a failure, and loads the modules only after a failure.

_COUNT_ON_SERVER = "tooli.stages.repeated_failures:count_failures_on_server"
_COUNT_IN_FILES = "tooli.stages.repeated_failures:count_failures_in_files"
_RECORD_FAILURE = "tooli.stages.repeated_failures:record_failure"


def track_failures(context: StageContext) -> Stage | None:
    """Stop a caller that repeats a failing call.

    Returns None for a call that no server received, if the caller has no session.
    """
    if context.failure_history is not None:
        return load_location(_COUNT_ON_SERVER)(context)
    if context.caller.session is not None:
        return load_location(_COUNT_IN_FILES)
    sessions = _agent_sessions(context.caller)
    if not sessions:
        return None
    has_history = _may_have_failed_before(sessions)
    return load_location(_COUNT_IN_FILES) if has_history else record_first_failure


def record_first_failure(call: Call) -> StageRun:
    """Record a failure of a session that has not failed before."""
    outcome = yield call
    if hasattr(outcome, "error"):
        return load_location(_RECORD_FAILURE)(call, outcome)
    return outcome


def _agent_sessions(caller: Caller) -> list[str]:
    """Return the session names in the environment variables that agents set for a command line."""
    if caller.category != "ai_agent" or not caller.owns_process:
        return []
    return [os.environ[name] for name in AGENT_SESSION_VARIABLES if name in os.environ]


def _may_have_failed_before(sessions: Sequence[str]) -> bool:
    """False if the state folder certainly contains no failures of these sessions.

    The file of a session has the name that `safe_file_name` returns. That function is not imported
    here. If a session name may be hashed, this function checks whether the folder of all sessions
    exists.
    """
    env = os.environ.get
    state_dir = env("TOOLI_STATE_DIR")
    if not state_dir:
        state_dir = (env("XDG_STATE_HOME") or env("HOME", "") + "/.local/state") + "/tooli"
    plain = [name.isascii() and name.replace("-", "a").isalnum() for name in sessions]
    names = [f"/as-{name}.failures" if ok else "" for name, ok in zip(sessions, plain, strict=True)]
    names = [name if name == name.lower() and len(name) < 73 else "" for name in names]
    return os.name == "nt" or any([os.access(f"{state_dir}/loops{name}", 0) for name in names])
