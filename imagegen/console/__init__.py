"""The only place that prints: live tables, plain lines, JSON lines.

`console.make_console` makes the console of a run; `progress` shows builds that run.
"""
