"""The settings and files of this run: payload and overlay roots, YAML, schemas, cache, network.

Others use `payload`, `yamlfile`, `document`, `schema_check`, `schemas`, `files`, `cache`, `network`
and `state`.
"""
