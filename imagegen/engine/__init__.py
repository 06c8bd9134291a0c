"""The engine room: the only package that imports `docker` and starts processes."""
