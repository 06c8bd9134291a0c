"""The only place that prints: live tables, plain lines, JSON lines.

`console.make_console` makes the console of a run; `progress` and `live` show builds that run.
"""
