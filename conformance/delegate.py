# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: BSD-2-Clause
"""The IPAM plugin of the sandbox: gives each call another address, and writes down what it was called with.

`subjects` installs this file as an executable. It imports nothing of libcni, so that it starts fast: a plugin under
test runs it with each call. Beside its directory are `leases`, a file for each address, and `calls`, a line of
JSON for each call.
"""

from __future__ import annotations

import fcntl
import json
import os
import sys

VERSIONS = ["0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"]
GATEWAY = "10.78.0.1"
# The first address is 10.78.1.1.
FIRST = 257


def main() -> int:
    """Answer one call and return the exit status."""
    home = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    verb = os.environ.get("CNI_COMMAND", "")
    if verb == "VERSION":
        _answer({"cniVersion": VERSIONS[-1], "supportedVersions": VERSIONS})
        return 0
    text = sys.stdin.read()
    with open(f"{home}/calls", "a", encoding="utf-8") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        env = {name: value for name, value in os.environ.items() if name.startswith("CNI_")}
        stream.write(json.dumps({"env": env, "stdin": text}) + "\n")
    conf = json.loads(text)
    version = conf.get("cniVersion", "0.1.0")
    owner = "{}-{}".format(os.environ.get("CNI_CONTAINERID", ""), os.environ.get("CNI_IFNAME", ""))
    lease = f"{home}/leases/{owner}"
    if verb == "ADD":
        if conf["ipam"].get("fail"):
            _answer({"cniVersion": version, "code": 100, "msg": "the configuration says fail"})
            return 1
        _answer(_result(version, _next_address(home), lease))
    elif verb == "CHECK" and not os.path.exists(lease):
        _answer({"cniVersion": version, "code": 101, "msg": f"no lease for {owner}"})
        return 1
    elif verb == "DEL" and os.path.exists(lease):
        os.unlink(lease)
    elif verb == "GC":
        valid = {"{containerID}-{ifname}".format(**entry) for entry in conf.get("cni.dev/valid-attachments", [])}
        for name in os.listdir(f"{home}/leases"):
            if name not in valid:
                os.unlink(f"{home}/leases/{name}")
    return 0


def _answer(document: dict) -> None:
    sys.stdout.write(json.dumps(document) + "\n")


def _next_address(home: str) -> str:
    with open(f"{home}/counter", "a+", encoding="ascii") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        stream.seek(0)
        number = int(stream.read() or FIRST)
        stream.truncate(0)
        stream.write(str(number + 1))
    return f"10.78.{number >> 8}.{number & 255}/16"


def _result(version: str, address: str, lease: str) -> dict:
    with open(lease, "w", encoding="ascii") as stream:
        stream.write(address)
    if version in VERSIONS[:2]:
        routes = [{"dst": "0.0.0.0/0"}]
        return {"cniVersion": version, "ip4": {"ip": address, "gateway": GATEWAY, "routes": routes}}
    entry = {"address": address, "gateway": GATEWAY}
    if version in VERSIONS[:5]:
        entry["version"] = "4"
    return {"cniVersion": version, "ips": [entry], "routes": [{"dst": "0.0.0.0/0"}], "dns": {}}


if __name__ == "__main__":
    raise SystemExit(main())
