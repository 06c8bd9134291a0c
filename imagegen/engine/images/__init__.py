"""Find, tag, remove and read images on the engine; make base images.

Other rooms use `local_images`, `bases`, `contents`, `inventory`, `layers` and `engine_contents`.
"""
