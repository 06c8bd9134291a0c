"""The benchmark trains for a moment under mpirun, as a real launch does, and is judged."""
