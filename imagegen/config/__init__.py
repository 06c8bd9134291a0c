"""Read the settings and files of a run: payload and overlay roots, YAML, schemas, cache, network.

Others use `payload`, `yamlfile`, `document`, `schema_check`, `schemas`, `files`, `cache`, `network`
and `state`.
"""
