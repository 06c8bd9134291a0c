"""Keep runs, steps, validations and publications in SQLite; lock cells between processes.

Other rooms use `journal.open_journal`, `run` and `locks`.
"""
