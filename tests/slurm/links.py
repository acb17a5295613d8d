"""Networks of their own for virtual nodes: a bridge, and a link of a known rate for each node."""

from __future__ import annotations

import secrets
import socket
import subprocess
from pathlib import Path


class Links:
    """A network namespace per node, joined by a bridge; `tag` tells one cluster's from another's.

    Parameters
    ----------
    nodes : list of str
        Their host names.
    rate : str
        What each link carries both ways, as `tc tbf` has it, such as 1gbit; "open": no limit.
    tag : str
        Prefix of all names; a fresh one where it is empty.
    """

    def __init__(self, nodes: list[str], rate: str, tag: str = "") -> None:
        self.nodes, self.rate = nodes, rate
        self.tag = tag or f"fm{secrets.token_hex(2)}"
        number = int(self.tag[2:], 16)
        self.subnet = f"10.{200 + number % 50}.{number % 250}"

    @property
    def host_address(self) -> str:
        """The address of this machine on the bridge."""
        return f"{self.subnet}.254"

    def address(self, name: str) -> str:
        """Return the address of a node."""
        return f"{self.subnet}.{self.nodes.index(name) + 1}"

    def make(self, folder: Path) -> None:
        """Make bridge, namespaces and links, and a host table in `folder`."""
        bridge = f"{self.tag}.br"
        _ip("link", "add", bridge, "type", "bridge")
        _ip("addr", "add", f"{self.host_address}/24", "dev", bridge)
        _ip("link", "set", bridge, "up")
        hosts = [f"{self.host_address} {socket.gethostname().partition('.')[0]}", "127.0.0.1 localhost"]
        for name in self.nodes:
            self._make_node(name, bridge)
            hosts.append(f"{self.address(name)} {name}")
        (folder / "hosts").write_text("\n".join(hosts) + "\n")

    def _make_node(self, name: str, bridge: str) -> None:
        space, link = f"{self.tag}.{name}", f"{self.tag}.v{name}"
        _ip("netns", "add", space)
        _ip("link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", space)
        _ip("link", "set", link, "master", bridge, "up")
        _ip("-n", space, "addr", "add", f"{self.address(name)}/24", "dev", "eth0")
        _ip("-n", space, "link", "set", "lo", "up")
        _ip("-n", space, "link", "set", "eth0", "up")
        if self.rate != "open":
            limit = ["root", "tbf", "rate", self.rate, "burst", f"{_burst(self.rate)}b", "latency", "50ms"]
            _run("tc", "qdisc", "add", "dev", link, *limit)
            _run("ip", "netns", "exec", space, "tc", "qdisc", "add", "dev", "eth0", *limit)

    def inside(self, name: str, folder: Path, command: list[str]) -> list[str]:
        """Return the command in the node's network, with its host name and the cluster's host table.

        Not `ip netns exec`, which hides /sys/fs/cgroup.
        """
        inner = f"hostname {name}; mount --bind {folder}/hosts /etc/hosts; exec {' '.join(command)}"
        enter = ["nsenter", f"--net=/run/netns/{self.tag}.{name}", "unshare", "--uts", "--mount"]
        return [*enter, "bash", "-c", inner]

    def remove(self) -> None:
        """Remove what `make` made, as far as it is there."""
        for name in self.nodes:
            _ip("link", "del", f"{self.tag}.v{name}", check=False)
            _ip("netns", "del", f"{self.tag}.{name}", check=False)
        _ip("link", "del", f"{self.tag}.br", check=False)


def _burst(rate: str) -> int:
    """Return the bytes that may pass at once: two milliseconds of the rate, and some packets at least.

    What a link saves while ranks compute is then little beside a model.
    """
    number, unit = float(rate[:-4]), {"kbit": 1e3, "mbit": 1e6, "gbit": 1e9}[rate[-4:]]
    return max(16_000, int(number * unit / 8 * 0.002))


def _run(*command: str, check: bool = True) -> None:
    subprocess.run(command, capture_output=True, check=check)


def _ip(*arguments: str, check: bool = True) -> None:
    _run("ip", *arguments, check=check)
