"""One description of a training launch becomes the command line to paste.

Others use `launch.command`.
"""
