"""Define the frozen records that the stages pass on, one file for each stage.

Nothing here reads, writes or prints.
"""
