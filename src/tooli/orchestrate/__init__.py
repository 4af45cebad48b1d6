"""Scripts that call the tools of an app: `orchestrate run` and `app.orchestrate(…)`.

    script ─▶ script_check ─▶ script_run ─▶ inner_calls ─▶ Call ▸ stages ▸ Outcome
               (stubs)        (sandbox)

A script runs in a worker process of pydantic-monty, which has no access to files, processes, the
network or the environment. What it may reach are the tools. Each call of a tool is an ordinary
Call with the caller, the options and the deadline of the call that runs the script.
"""
