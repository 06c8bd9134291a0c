"""Define the events that a run emits, and the sinks that take them.

All stages report through this one stream. `events` has the records, `sinks` gives one stream to
several sinks, `stream` writes events as JSON lines and reads them again, `progress` follows how far
a run is.
"""
