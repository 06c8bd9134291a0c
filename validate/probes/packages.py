"""Ask the distribution's package database for what a library does not say itself."""

from typing import Dict

from validate.process import run


def owner_version(path: str, env: Dict[str, str]) -> str:
    """Return the upstream version of the dpkg package that a file belongs to; empty without one.

    Of `1:1.13.1+dfsg-4` that is `1.13.1`: without epoch, repacking mark and Debian revision.
    """
    owner = run(["dpkg-query", "--search", path], env=env)
    package = owner.out.partition(":")[0].strip()
    if not owner.ok or not package:
        return ""
    version = run(["dpkg-query", "--show", "--showformat", "${Version}", package], env=env)
    upstream = version.out.strip().partition(":")[2] or version.out.strip()
    return upstream.rpartition("-")[0].partition("+")[0] if version.ok else ""
