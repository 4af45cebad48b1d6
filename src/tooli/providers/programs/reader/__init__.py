"""The reader of programs. It runs in the interpreter of the program, which has no tooli.

Its modules use the standard library only and import each other by relative names.
"""
