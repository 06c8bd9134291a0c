"""Read a matrix file `matrices/<name>.yaml` as cells, checked against the catalog.

Others use `reader.read_matrix`.
"""
