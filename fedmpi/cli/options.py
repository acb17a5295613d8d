"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Set = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a setting; may be repeated.")
]
Mirror = Annotated[Path | None, typer.Option(help="Local stand-in for upstream archives (FEDMPI_MIRROR).")]
Cache = Annotated[Path | None, typer.Option("--data", help="Folder of prepared data (FEDMPI_DATA).")]
Offline = Annotated[bool | None, typer.Option("--offline", help="Never download (FEDMPI_OFFLINE=1).")]
Plugin = Annotated[
    list[Path] | None, typer.Option(help="File that defines algorithms, models, data, ...; may be repeated.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
