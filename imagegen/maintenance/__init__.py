"""Look after a machine: what it lacks for building (`doctor`), what may be removed (`prune`)."""
