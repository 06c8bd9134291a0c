"""Registries: push images, read digests and labels, move tags.

Others use `push`.
"""
