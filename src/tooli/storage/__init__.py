"""State that outlives a process: keys, tokens, approvals, the audit log, idempotency keys."""
