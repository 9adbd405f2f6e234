"""Tilewright under xarray: the chunk manager that xarray finds by the entry point ``xarray.chunkmanagers``.

``xr.set_options(chunk_manager="tilewright")``, or ``chunked_array_type="tilewright"`` in a call, makes chunked variables arrays of Tilewright. Where no other
chunk manager is installed, xarray takes this one without being told. Nobody needs to import this module.

- ``_manager.py``: what xarray asks of every chunk manager.
- ``_calls.py``: functions of blocks whose results may have types that Tilewright does not have.
- ``_hooks.py``: the few functions of xarray that ask for dask by name, with what they do for our arrays.
- ``_groupby.py``: reductions of groups, in one pass over the array.
- ``_map_blocks.py``: ``xr.map_blocks``.
"""

from ._manager import TilewrightManager

__all__ = ["TilewrightManager"]
