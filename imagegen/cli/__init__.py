"""Define the command line: one small file for each command, with the name of the command.

`main.main` is the entry point; `options` has what several commands share.
"""
