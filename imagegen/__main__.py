"""`python -m imagegen`: the same as the console script."""

from imagegen.cli.main import main

main()
