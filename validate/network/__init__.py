"""Measure how fast ranks exchange data, and find the host or the link that holds a job up."""
