"""Define the events that a run emits, and the sinks that take them.

`events` has the records, `sinks` hands one stream to several sinks, `stream` writes events as JSON
lines and reads them again, `progress` follows how far a run is.
"""
