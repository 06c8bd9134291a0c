"""Containers: start one, run commands in it, remove it whatever happens.

Others use `containers.running`, `terminal.shell` and `surroundings`.
"""
