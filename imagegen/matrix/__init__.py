"""Read a matrix file: `matrices/<name>.yaml` becomes cells, checked against the catalog.

Others use `reader.read_matrix`.
"""
