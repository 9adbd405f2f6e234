"""How arrays look in a notebook: a table, and a picture of the blocks."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._array import Array

#: The longer side of the picture, in pixels.
SIDE = 120
#: More lines than this would be a blot.
MOST_LINES = 30


def picture(array: Array) -> str:
    """An HTML table with a drawing of the last two axes, cut into blocks."""
    if array._tensor.is_open:
        # How long the axes are depends on elements, and a picture computes nothing.
        return f"<code>{html.escape(repr(array))}</code>"
    chunk = tuple(max(lengths, default=0) for lengths in array.chunks)
    n_blocks = 1
    for lengths in array.chunks:
        n_blocks *= len(lengths)
    block_bytes = array.itemsize
    for n in chunk:
        block_bytes *= n
    rows = [
        ("shape", str(array.shape)),
        ("block", str(chunk)),
        ("blocks", f"{n_blocks:,}"),
        ("bytes", f"{readable(array.nbytes)}, {readable(block_bytes)} a block"),
        ("type", str(array.dtype)),
        ("state", "computed" if array._tensor.is_computed else "lazy"),
    ]
    cells = "".join(f"<tr><th>{name}</th><td>{html.escape(value)}</td></tr>" for name, value in rows)
    return f"<table><tr><td><table>{cells}</table></td><td>{_drawing(array)}</td></tr></table>"


def readable(n: float) -> str:
    """Bytes for people."""
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if n < 1024 or unit == "TiB":
            return f"{n:.0f} {unit}" if unit == "B" else f"{n:.2f} {unit}"
        n /= 1024
    return ""


def _drawing(array: Array) -> str:
    chunks = array.chunks[-2:]
    if not chunks or array.size == 0:
        return ""
    if len(chunks) == 1:
        chunks = ((1,), chunks[0])
    height, width = (sum(lengths) for lengths in chunks)
    scale = SIDE / max(height, width)
    # A thin array stays visible.
    h, w = max(height * scale, 12.0), max(width * scale, 12.0)
    lines = []
    for lengths, extent, size, vertical in ((chunks[0], height, h, False), (chunks[1], width, w, True)):
        at = [0.0]
        for length in lengths:
            at.append(at[-1] + length / extent * size)
        shown = at if len(at) <= MOST_LINES else at[:: len(at) // MOST_LINES] + [size]
        for p in shown:
            ends = (p, 0, p, h) if vertical else (0, p, w, p)
            lines.append('<line x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}"/>'.format(*ends))
    return (
        f'<svg width="{w + 2:.0f}" height="{h + 2:.0f}" viewBox="-1 -1 {w + 2:.1f} {h + 2:.1f}">'
        f'<rect width="{w:.1f}" height="{h:.1f}" fill="#4c78a8" fill-opacity="0.2"/>'
        f'<g stroke="#4c78a8" stroke-width="1">{"".join(lines)}</g></svg>'
    )
