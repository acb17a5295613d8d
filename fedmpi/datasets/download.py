"""Fetching one archive from the upstream site."""

from __future__ import annotations

import http.client
import shutil
import urllib.error
import urllib.request
from pathlib import Path

from fedmpi.datasets.bounds import MOST_DOWNLOAD_BYTES, Bounded
from fedmpi.errors import BadInput

_TIMEOUT_S = 60.0


def fetch_archive(url: str, target: Path, folder: str) -> None:
    """Download `url` to the file `target`; in a mirror it belongs into `folder`.

    Raises
    ------
    BadInput
        No connection, an error status, fewer bytes than announced, or more than
        `fedmpi.datasets.bounds.MOST_DOWNLOAD_BYTES`; no file stays.
    """
    request = urllib.request.Request(url, headers={"User-Agent": "fedmpi"})
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as reply, target.open("wb") as file:
            shutil.copyfileobj(Bounded(reply, MOST_DOWNLOAD_BYTES, url), file, 1 << 20)
            announced = reply.headers.get("Content-Length")
        received = target.stat().st_size
        if announced is not None and int(announced) != received:
            raise http.client.HTTPException(f"{received} of {announced} bytes came")
    except BadInput:
        target.unlink(missing_ok=True)
        raise
    except (OSError, http.client.HTTPException, ValueError) as error:
        target.unlink(missing_ok=True)
        if isinstance(error, urllib.error.HTTPError):
            error.close()  # it holds the connection
        cause = f"{error.reason}" if isinstance(error, urllib.error.URLError) else f"{error}"
        raise BadInput(
            f"cannot download {url}: {cause}; put the file into DIR/{folder} and set FEDMPI_MIRROR=DIR, "
            "or run 'fedmpi data fetch' where there is internet (on a cluster: the login node)"
        ) from error
