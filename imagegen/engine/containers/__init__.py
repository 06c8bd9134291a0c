"""Start containers, run commands in them, and remove them in every case.

Other rooms use `containers.running`, `terminal.shell` and `surroundings`.
"""
