"""Check whether this container is fit to train, and say what to do if it is not.

It runs inside an image, on Python 3.6 and later, in a Python environment of its own: the standard
library, pytest and pytest-testinfra. /etc/imagegen/image.json says what it expects.

`cli` reads the command line; `catalogue` and `requirements` choose what runs; `pytest_run` runs it,
with `pytest_plugin`, `prefetch` and `testinfra_timeout`; `report` shows it. `suites` holds the
checks and `probes` what they measure with; both use `check`, `expected`, `fixtures` and `process`.
`outside` runs the checks in other containers, and `host_checks` describes the checks that `imagegen
validate` makes on the host.
"""

__version__ = "0.1.0"
