"""The settings and files of this run: payload and overlay roots, YAML, schemas, cache, network.

Others use `payload`, `yamlfile`, `schema_check`, `cache`, `network` and `schemas`.
"""
