# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Each module as Ansible packs it, in an interpreter of its own: all that it imports must be in its payload.

Elsewhere, modules run in forks of a process that has imported everything.
"""

from __future__ import annotations

from ansible_collections.podwire.cni.tests.host.host import COLLECTION

NETWORK = {"name": "pwp", "conflist": {"cniVersion": "1.0.0", "plugins": [{"type": "loopback"}]}}
ATTACHMENT = {"network": "pwp", "container_id": "a", "netns": "pwp-a"}
SUBSETS = ["conf", "plugins", "attachments", "leases", "kernel", "audit", "garbage", "runtime", "readiness"]
NETNS = {"names": ["pwp-a"]}


def test_every_module_finds_in_its_payload_what_it_imports(controller, generations):
    controller = controller({"all": {"hosts": {"here": {"ansible_connection": "local"}}}})
    plugins = {"src": str(generations["new"]), "remote_src": True, "plugins": ["loopback"]}
    arguments = {
        "cni_plugins": plugins,
        "cni_conf": {"networks": [NETWORK]},
        "cni_netns": NETNS,
        "cni_attach": {"attachments": [ATTACHMENT]},
        "cni_host": {
            "plugins": plugins,
            "networks": {"networks": [NETWORK]},
            "netns": NETNS,
            "attachments": {"attachments": [ATTACHMENT]},
            "gather": SUBSETS,
            "audit": True,
        },
        "cni_info": {"gather": SUBSETS},
        "cni_smoke": {},
        "cni_gc": {},
        "cni_report": {"dir": str(controller.folder / "report"), "inspect": True},
    }
    assert sorted(arguments) == sorted(path.stem for path in (COLLECTION / "plugins" / "modules").glob("cni_*.py"))
    tasks = [{f"podwire.cni.{name}": given, "check_mode": True} for name, given in arguments.items()]
    run = controller.play(*tasks, real=True, options=["--diff"])
    assert [entry.action for entry in run.results] == [f"podwire.cni.{name}" for name in arguments]
