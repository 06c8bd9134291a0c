"""Measure for the checks (/proc, /sys, ELF files, commands) without judging the result."""
