"""The archive of a unit: the same content gives the same bytes."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping

_TIME = (1980, 1, 1, 0, 0, 0)


def archive(content: Mapping[str, str | bytes]) -> bytes:
    """A zip archive of files by path."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as made:
        for path, data in content.items():
            entry = zipfile.ZipInfo(path, _TIME)
            entry.compress_type, entry.create_system = zipfile.ZIP_DEFLATED, 3
            entry.external_attr = (0o755 if path.startswith("binaries/") else 0o644) << 16
            made.writestr(entry, data.encode("utf-8") if isinstance(data, str) else data)
    return buffer.getvalue()
