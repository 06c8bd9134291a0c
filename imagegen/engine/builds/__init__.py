"""Build with BuildKit through the Engine API: request, context, progress, causes of failures.

Other rooms use `buildkit.build`, `context`, `vertex_events` and `causes`.
"""
