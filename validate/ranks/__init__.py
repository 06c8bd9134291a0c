"""Programs that a launcher starts as ranks, in the image's own Python.

Each is a file in this folder of its own, which Python puts on the path of modules: a name of
another file of ours would hide a module that PyTorch imports.
"""
