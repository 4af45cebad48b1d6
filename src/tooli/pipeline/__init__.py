"""Run a call: stages, binding, drivers, failures, dry runs, and the presentation of outcomes."""
