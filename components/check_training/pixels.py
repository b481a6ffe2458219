"""Small pictures of samples as PNG: what takes 7,800 bytes as names of colours takes some 800."""

from __future__ import annotations

import base64
import re
import struct
import zlib

_COLOUR = re.compile("#[0-9a-fA-F]{6}")
_SIGNATURE = b"\x89PNG\r\n\x1a\n"


def png_of(pixels: list[list[str]], *, side: int) -> str:
    """Return a PNG in base64; empty where the pixels are no picture.

    Args:
        pixels: Rows of "#rrggbb", all of one length.
        side: Pixels of its longer side at most; a larger one is shown by every n-th pixel.
    """
    width = len(pixels[0]) if pixels else 0
    if not width or any(len(row) != width for row in pixels):
        return ""
    every = -(-max(width, len(pixels)) // side)
    chosen = [row[::every] for row in pixels[::every]]
    if not all(_COLOUR.fullmatch(str(colour)) for row in chosen for colour in row):
        return ""
    lines = (b"\0" + bytes.fromhex("".join(c[1:] for c in row)) for row in chosen)
    header = struct.pack(">IIBBBBB", len(chosen[0]), len(chosen), 8, 2, 0, 0, 0)
    body = zlib.compress(b"".join(lines), 9)
    parts = _SIGNATURE + _chunk(b"IHDR", header) + _chunk(b"IDAT", body) + _chunk(b"IEND", b"")
    return base64.b64encode(parts).decode()


def _chunk(kind: bytes, content: bytes) -> bytes:
    """Length, kind, content, CRC (PNG specification, third edition, section 5.3)."""
    body = kind + content
    return struct.pack(">I", len(content)) + body + struct.pack(">I", zlib.crc32(body))
