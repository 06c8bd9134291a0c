"""Run each command: one page for each, which calls its stages from top to bottom.

No other room knows more than one stage.
"""
