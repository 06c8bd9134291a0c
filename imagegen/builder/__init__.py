"""Build the images of stale cells on an engine.

`scheduler.build_family` builds many cells at the same time. `until.build_until` builds one cell up
to a component. `up_to_date.find_stale` finds the cells that have to be built. The results are
BuildRecords.
"""
