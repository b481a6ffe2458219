"""Which way leads from this machine to another: the address and the interface that it goes by.

gloo takes the interface that the host's own name resolves to, which in a container is often the
loopback, and then peers cannot be reached.
"""

from __future__ import annotations

import fcntl
import socket
import struct
from contextlib import suppress
from ipaddress import IPv6Address, ip_address
from pathlib import Path
from typing import NamedTuple

_SIOCGIFADDR = 0x8915  # Linux: the address of an interface


class Way(NamedTuple):
    """How this machine reaches another.

    Attributes:
        address: Of this machine, as the other sees it.
        interface: Its name; "" where the system does not say.
    """

    address: str
    interface: str


def way_to(host: str, port: int) -> Way:
    """Return the way to a host; nothing is sent.

    Raises:
        OSError: The name is not known (yet), or there is no route.
    """
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, kind, protocol) as probe:
        probe.connect(address)
        mine = str(probe.getsockname()[0])
    return Way(mine, interface_of(mine))


def interface_of(address: str) -> str:
    """Return the name of the interface that has an address, or ""."""
    if isinstance(ip_address(address.partition("%")[0]), IPv6Address):
        return _interface_of_v6(IPv6Address(address.partition("%")[0]))
    wanted = socket.inet_aton(address)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for _, name in socket.if_nameindex():
            with suppress(OSError):  # an interface without an address
                request = struct.pack("256s", name.encode()[:15])
                if fcntl.ioctl(probe.fileno(), _SIOCGIFADDR, request)[20:24] == wanted:
                    return name
    return ""


def answers(host: str, port: int, *, timeout: float = 2.0) -> bool:
    """Say whether something listens there."""
    try:
        with socket.create_connection((host, port), timeout):
            return True
    except OSError:
        return False


def _interface_of_v6(address: IPv6Address) -> str:
    with suppress(OSError):
        for line in Path("/proc/net/if_inet6").read_text().splitlines():
            fields = line.split()
            if int(fields[0], 16) == int(address):
                return fields[5]
    return ""


def own_name(host: str, address: str) -> str:
    """Return this machine's name in the domain that a host's name is in, or "".

    Pods of a job are `JOB-node-0-0.JOB`, `JOB-node-0-1.JOB`, …: by name their order is that of
    their numbers, by address it is any.
    """
    _, dot, domain = host.partition(".")
    if not dot or host.replace(".", "").isdigit():
        return ""
    mine = f"{socket.gethostname().partition('.')[0]}.{domain}"
    with suppress(OSError):
        if any(found[4][0] == address for found in socket.getaddrinfo(mine, None)):
            return mine
    return ""
