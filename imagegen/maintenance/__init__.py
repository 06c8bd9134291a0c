"""Find what a machine lacks for building (`doctor`), and what may be removed (`prune`)."""
