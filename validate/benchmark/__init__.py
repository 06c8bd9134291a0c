"""Train for a moment under mpirun, as a real launch does, and judge the result."""
