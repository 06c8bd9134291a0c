"""The settings and files of this run: payload and overlay roots, YAML, schemas, cache, network.

Others use `payload`, `yamlfile`, `cache`, `network` and `schemas`.
"""
