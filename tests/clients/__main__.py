"""Installs the clients, and says where, before pytest takes the terminal."""

import sys

from tests.clients import acp
from tests.clients.client import CLIENTS, ClientUnavailable, install

for kind in CLIENTS:
    try:
        found = " ".join(install(kind))
    except ClientUnavailable as why:
        found = f"its tests will be skipped: {why}"
    sys.stdout.write(f"{kind.NAME} {kind.VERSION}: {found}\n")
    sys.stdout.flush()
for kind in acp.PACKAGES:
    try:
        where = " ".join(acp.install(kind))
    except ClientUnavailable as why:
        where = f"its tests will be skipped: {why}"
    sys.stdout.write(f"{acp.PACKAGES[kind]}: {where}\n")
    sys.stdout.flush()
