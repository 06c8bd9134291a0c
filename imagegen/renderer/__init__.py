"""Pins and a layer order become a Recipe: Dockerfile, context, digest, image.json.

Others use `renderer.Renderer` and `provenance`.
"""
