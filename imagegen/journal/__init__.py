"""What imagegen did, in SQLite: runs, steps, validations, publications; locks between processes.

Others use `journal.open_journal`, `run` and `locks`.
"""
