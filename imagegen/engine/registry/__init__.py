"""Registries: push images, read digests and labels, move tags.

Others use `remote_images`.
"""
