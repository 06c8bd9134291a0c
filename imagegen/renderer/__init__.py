"""Render pins and a layer order as a recipe: Dockerfile, context, digest, image.json.

Others use `renderer.Renderer` and `provenance`.
"""
