"""Use the machine that the tool runs on: its programs, package archives and downloads.

Other rooms use `host`, `download`, `probe` and `archives`.
"""
