"""Give arguments the names of their parameters, if the caller used the ASCII aliases."""

from __future__ import annotations

from tooli.schema.param_aliases import ascii_aliases

TYPE_CHECKING = False

if TYPE_CHECKING:
    from tooli.core.call import Call, StageRun


def rename_aliases(call: Call) -> StageRun:
    """Replace ASCII aliases of parameters by the names of the parameters."""
    arguments = dict(call.arguments)
    for alias, name in ascii_aliases(call.tool).items():
        if alias in arguments and name not in arguments:
            arguments[name] = arguments.pop(alias)
    return (yield call.replace(arguments=arguments))
