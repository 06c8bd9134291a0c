"""The only importer of `docker`, and the only room that starts processes or opens sockets.

`endpoint` says where an engine may listen, `client` is the connection, and `without_sdk` asks the
two questions of short commands. Sub-rooms: `builds` (BuildKit), `images`, `containers`, `registry`,
`machine` (QEMU), `host` (programs, downloads and archives of this machine).
"""
