"""Probes read the world for the checks (/proc, /sys, ELF files, commands) and judge nothing."""
