"""validate: is this container fit to train, and if not, what do I do?

Runs inside an image, on Python 3.6 and later, with nothing but the standard library, pytest and
pytest-testinfra, in an environment of its own. What it expects stands in /etc/imagegen/image.json.
"""

__version__ = "0.1.0"
