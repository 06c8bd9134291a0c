"""imagegen: images for distributed GPU training that are known to work."""

__version__ = "0.1.0"
