"""Check other containers and machines from here, through testinfra."""
