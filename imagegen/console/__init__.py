"""Print: live tables, plain lines, JSON lines. No other room prints.

`console.make_console` makes the console of a run; `progress` and `live` show the builds of a run.
"""
