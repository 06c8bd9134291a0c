"""Find out where this process may write."""

import os

from validate.probes.files import under


def is_read_only(root: str, path: str) -> bool:
    """Return whether a path, or the place where it would be, is mounted read-only."""
    while not os.path.lexists(under(root, path)) and path not in ("", "/"):
        path = os.path.dirname(path)
    try:
        return bool(os.statvfs(under(root, path)).f_flag & os.ST_RDONLY)
    except OSError:
        return False


def why_not_writable(root: str, folder: str) -> str:
    """Say in words why no file can be made in a folder; empty if one can."""
    path = under(root, folder)
    if not os.path.isdir(path):
        return "no folder"
    if is_read_only(root, folder):
        return "read-only"
    if not os.access(path, os.W_OK | os.X_OK):
        return "not writable for user {}".format(os.geteuid())
    return "full" if _is_full(path) else ""


def _is_full(path: str) -> bool:
    found = os.statvfs(path)
    return (found.f_blocks > 0 and not found.f_bfree) or (found.f_files > 0 and not found.f_ffree)
