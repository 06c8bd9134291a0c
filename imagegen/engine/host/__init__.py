"""The machine that the tool runs on: its programs, package archives, downloads.

Others use `host`, `download`, `probe` and `archives`.
"""
