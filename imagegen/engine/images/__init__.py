"""Images on the engine: find, tag and remove them, bases, what is in them, what is left over.

Others use `local_images`, `bases`, `contents`, `inventory`, `private_keys` and `engine_contents`.
"""
