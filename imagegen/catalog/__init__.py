"""Read `dockerfiles/{components,os,virtual}` as the catalog of what can be in images.

Others use `reader.read_catalog`.
"""
