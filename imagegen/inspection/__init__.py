"""Look into any image: what differs between two, its bill of materials, what a build left.

Others use `diff.difference`, `sbom_files.write_sboms` and `leftovers.leftovers`.
"""
