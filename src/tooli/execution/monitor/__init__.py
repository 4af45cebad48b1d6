"""Watch what a command touches through the interpreter's audit hook."""
