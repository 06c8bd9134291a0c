"""Build with BuildKit through the Engine API: request, context, progress, causes of failures.

Others use `buildkit.build`, `context`, `vertex_events` and `causes`.
"""
