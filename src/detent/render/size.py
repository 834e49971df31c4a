"""Sizes, for people."""

_UNITS = ("B", "kB", "MB", "GB", "TB")


def size_text(count: int) -> str:
    """512 B, 3.4 kB, 120 MB."""
    size, unit = float(count), 0
    while size >= 999.5 and unit < len(_UNITS) - 1:
        size, unit = size / 1000, unit + 1
    return f"{count} B" if not unit else f"{size:.1f} {_UNITS[unit]}" if size < 99.5 else f"{size:.0f} {_UNITS[unit]}"
