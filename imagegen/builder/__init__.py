"""Build recipes on an engine: from stale cells to tagged images.

`scheduler.build_family` builds cells side by side, `until.build_until` one cell up to a component,
`stale.find_stale` and `up_to_date` say what needs no build. Out come BuildRecords.
"""
