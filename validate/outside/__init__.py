"""Other containers and machines are checked from here, through testinfra."""
