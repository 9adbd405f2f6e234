"""NumPy's ``lib``: what other packages look for there."""

from . import stride_tricks

__all__ = ["stride_tricks"]
