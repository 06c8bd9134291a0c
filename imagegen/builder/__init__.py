"""Build recipes on an engine: from stale cells to tagged images.

`scheduler.build_family` builds cells side by side, `until.build_until` one cell up to a component,
`up_to_date.find_stale` says what needs no build. Out come BuildRecords.
"""
