"""Resolve constraints with the catalog: find pins, or say why there are none and what fits instead.

Others use `resolve.resolve_cells`, `conflict.conflict_of` and `alternatives.nearest`.
"""
