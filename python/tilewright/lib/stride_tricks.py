"""Views of the same elements under other shapes."""

from .._manipulation import broadcast_arrays, broadcast_shapes, broadcast_to
from .._signal import sliding_window_view

__all__ = ["broadcast_arrays", "broadcast_shapes", "broadcast_to", "sliding_window_view"]
