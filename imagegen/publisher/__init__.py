"""Push validated images by digest, then move their tags.

Others use `publish.publish`.
"""
