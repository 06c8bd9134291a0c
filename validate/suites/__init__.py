"""Suites are the checks: a file a suite, or more where one file would be too long."""
