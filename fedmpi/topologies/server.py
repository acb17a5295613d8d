"""The server averages what all clients send."""

from __future__ import annotations

from typing import ClassVar, Literal

from fedmpi.config.options import Options


class ServerOptions(Options):
    """Clients send updates to a server, and get its models."""

    name: Literal["server"] = "server"

    gossips: ClassVar[bool] = False
    directed: ClassVar[bool] = False
