"""Run the command line for `python -m validate`."""

import sys

from validate.cli import main

sys.exit(main(sys.argv[1:]))
