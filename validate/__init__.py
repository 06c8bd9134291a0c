"""validate: is this container fit to train, and if not, what do I do?

Runs inside an image, on Python 3.6 and later, with nothing but the standard library, pytest and
pytest-testinfra, in an environment of its own. What it expects stands in /etc/imagegen/image.json.

`cli` reads the command line; `catalogue` and `requirements` choose what runs; `pytest_run` runs it,
with `pytest_plugin`, `prefetch` and `testinfra_timeout`; `report` shows it. `suites` and `probes`
are the checks, made of `check`, `expected`, `fixtures` and `process`. `outside` does all this in
other containers, and `host_checks` are those that `imagegen validate` makes on the host.
"""

__version__ = "0.1.0"
