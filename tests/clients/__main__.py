"""Installs the clients, and says where, before pytest takes the terminal."""

import sys
from collections.abc import Callable, Sequence
from functools import partial

from tests.clients import acp
from tests.clients.client import CLIENTS, ClientUnavailable, install
from tests.clients.mcp_clients import INSPECTOR, SDK, install_inspector, install_sdk

INSTALLS: dict[str, Callable[[], Sequence[str]]] = {
    f"{kind.NAME} {kind.VERSION}": partial(install, kind) for kind in CLIENTS
}
INSTALLS |= {SDK: lambda: (str(install_sdk()),), INSPECTOR: lambda: tuple(install_inspector())}

for name, make in INSTALLS.items():
    try:
        found = " ".join(make())
    except ClientUnavailable as why:
        found = f"its tests will be skipped: {why}"
    sys.stdout.write(f"{name}: {found}\n")
    sys.stdout.flush()
for kind in acp.PACKAGES:
    try:
        where = " ".join(acp.install(kind))
    except ClientUnavailable as why:
        where = f"its tests will be skipped: {why}"
    sys.stdout.write(f"{acp.PACKAGES[kind]}: {where}\n")
    sys.stdout.flush()
