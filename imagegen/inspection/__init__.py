"""Inspect any image: compare it with another, list its contents (SBOM), find what its build left.

Other rooms use `diff.difference`, `diff_tables.show`, `sbom_files.write_sboms`,
`leftovers.leftovers`.
"""
