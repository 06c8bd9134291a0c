"""Look into any image: what differs between two, its bill of materials, what a build left.

Others use `diff.difference`, `diff_tables.show`, `sbom_files.write_sboms`, `leftovers.leftovers`.
"""
