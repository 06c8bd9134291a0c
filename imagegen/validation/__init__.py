"""Launch an image, run `validate` in it, keep the record; reuse earlier results.

Other rooms use `in_container.validate_image`, `reuse.validate_open`, `outside`,
`image_secrets` and `soft_roce`.
"""
