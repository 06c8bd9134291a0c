"""The command line: one small file for each verb, named after the verb.

`main.main` is the entry point; `options` has what several verbs share.
"""
