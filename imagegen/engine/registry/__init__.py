"""Push images to registries, read digests and labels there, and move tags.

Other rooms use `remote_images`.
"""
