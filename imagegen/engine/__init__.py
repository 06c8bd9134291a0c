"""The only importer of `docker`, and the only room that starts processes or opens sockets.

`client` is the connection. Sub-rooms: `builds` (BuildKit), `images`, `containers`, `registry`,
`machine` (QEMU), `host` (programs, downloads and archives of this machine).
"""
