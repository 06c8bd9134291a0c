"""Talk to the container engine, and run the programs of this machine.

This is the only room that imports `docker`, starts processes or opens sockets. `endpoint` finds the
addresses where an engine may listen, `client` makes the connection, and `without_sdk` sends the two
requests of short commands. Sub-rooms: `builds` (BuildKit), `images`, `containers`, `registry`,
`machine` (QEMU), `host` (programs, downloads and package archives of this machine).
"""
