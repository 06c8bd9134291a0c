"""Push validated images by digest, then move their tags.

Other rooms use `publish.publish`.
"""
