"""Make the command line of a training launch.

Others use `launch.command`.
"""
