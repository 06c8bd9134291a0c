"""Images on the engine: find, tag and remove them, bases, what is in them, what is left over.

Others use `store`, `bases`, `inventory`, `layer_keys` and `leftovers`.
"""
