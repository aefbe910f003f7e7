# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import re
import subprocess
from functools import partial

import pytest

from ansible_collections.podwire.cni.tests.host.host import PYTHON, sh, wait_until

WEB = {
    "network": "pwademo",
    "container_id": "web",
    "netns": "pwa-web",
    "capability_args": {"portMappings": [{"hostPort": 18066, "containerPort": 80, "protocol": "tcp"}]},
}
WEB_TOO = {"network": "pwatwo", "container_id": "web", "netns": "/run/netns/pwa-web", "ifname": "eth1"}
DB = {"network": "pwademo", "container_id": "db", "netns": "pwa-db"}

# Without a proxy that the environment names.
FETCH = """\
import sys
from urllib.request import ProxyHandler, build_opener
print(build_opener(ProxyHandler({})).open(sys.argv[1], timeout=10).read().decode(), end="")
"""


def fetch(url, *wrapper):
    done = subprocess.run([*wrapper, PYTHON, "-c", FETCH, url], check=True, capture_output=True, text=True)
    return done.stdout


def web_reaches(address):
    return "1 received" in sh(f"ip netns exec pwa-web ping -c 1 -W 5 {address}", check=False)


@pytest.fixture
def served(host, work):
    """What a web server in the namespace pwa-web serves as /greeting."""
    (work / "served").mkdir()
    (work / "served" / "greeting").write_text("from the container\n")
    with (work / "server.log").open("w") as log:
        server = subprocess.Popen(
            ["ip", "netns", "exec", "pwa-web", PYTHON, "-m", "http.server", "80", "--directory", work / "served"],
            stdout=log,
            stderr=log,
        )
    try:
        wait_until(lambda: sh("ip netns exec pwa-web ss -Hltn sport = :80"))
        yield "from the container\n"
    finally:
        server.kill()
        server.wait()


def addresses(row):
    return [address.split("/")[0] for address in row["ips"]]


def test_two_containers_are_attached_and_detached(change, files, namespaces, leases, served, work):
    """One of the containers is on two networks and has a port."""
    attached = change([WEB, WEB_TOO, DB], ["add"] * 3, ["added"] * 3).run["attachments"]
    first, second = attached[0]["ips"]
    assert first.startswith("10.66.0.")
    assert second.startswith("fd66::")
    assert attached[1]["ips"][0].startswith("10.67.0.")
    inside = sh("ip -n pwa-web -json address")
    assert [one for one in addresses(attached[0]) + addresses(attached[1]) if f'"{one}"' not in inside] == []

    in_db = ("ip", "netns", "exec", "pwa-db")
    assert fetch("http://10.66.0.1:18066/greeting") == served
    assert fetch(f"http://{addresses(attached[0])[0]}/greeting", *in_db) == served
    assert fetch("http://10.66.0.1:18066/greeting", *in_db) == served
    # A new address of IPv6 takes a moment.
    for address in addresses(attached[2]):
        wait_until(partial(web_reaches, address))

    detached = change(
        [
            {"network": "pwademo", "container_id": "web", "state": "absent"},
            {"network": "pwatwo", "container_id": "web", "ifname": "eth1", "state": "absent"},
        ],
        ["del"] * 2,
        ["deleted"] * 2,
    )
    assert [step["target"] for step in detached.run["actions"]] == ["pwatwo/web/eth1", "pwademo/web/eth0"]
    # Interfaces, rules, leases and cache entries of the container are gone, those of the other are there.
    rules = sh("iptables-save; ip6tables-save")
    assert "18066" not in rules
    assert not re.search(r"id:\s..web", rules)
    assert re.search(r"id:\s..db", rules)
    paths = [str(path.relative_to(work)) for path in files()]
    assert "cache/results/pwademo-db-eth0" in paths
    assert [path for path in paths if "-web-eth" in path] == []
    assert [path for path in files() if leases in path.parents and re.search(r"\bweb\b", path.read_text())] == []

    namespaces()
    change([{**DB, "state": "absent"}], ["del"], ["deleted"])
    assert [path for path in files() if not re.match(r"lock$|last_reserved_ip\.", path.name)] == []
