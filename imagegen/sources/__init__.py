"""Check what comes from outside: vendor parts, tarballs, mirrors, pip's index, lock files.

Others use `supply`, `reach`, `preflight`, `lock_file`, `locked_build` and `refresh`.
"""
