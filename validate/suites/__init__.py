"""Hold the suites of checks: a file for each suite, or several if one would be too long."""
