"""Read what the tool knows: `dockerfiles/{components,os,virtual}` becomes a Catalog.

Others use `reader.read_catalog`.
"""
