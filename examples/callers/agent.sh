#!/bin/sh
# Call a tooli program from a shell.
set -eu
file_tools=${FILE_TOOLS:-file-tools}

# One call:
TOOLI_CALLER=my-agent $file_tools find-files '*.py'

# A session: all calls have the same ID.
export TOOLI_CALLER=my-agent TOOLI_CALLER_VERSION=1.0 TOOLI_SESSION_ID="session-$$"
$file_tools find-files '*.py'
$file_tools detect-context
