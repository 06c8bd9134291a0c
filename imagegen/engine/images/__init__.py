"""Images on the engine: find, tag and remove them, bases, what is in them, what is left over.

Others use `store`, `bases`, `inventory`, `contents`, `layer_keys` and `leftovers`.
"""
