"""Run a command in a process that the kernel confines: Landlock, seccomp, bubblewrap."""
