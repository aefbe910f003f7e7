# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Compares with Multus: multus_peer.py RECORDER PLUGINS [--cases FILE].

First the functions: the cases that the unit tests run, too (or those in FILE). Then podwire-multinet with real plugins
and recorders as delegates, against what the binary of Multus did in the same scenes (multus_scenes.json). Run it in
tests/private.sh, with the collection in PYTHONPATH. The exit status is 1 for a difference that is not documented.
"""

from __future__ import annotations

import argparse
import base64
import collections
import json
import os
import shutil
import subprocess
import sys
import tempfile
import typing as t
from pathlib import Path

from ansible_collections.podwire.cni.plugins.module_utils import libcni
from ansible_collections.podwire.cni.plugins.module_utils.libcni import bundle
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils.libcni.multi import multus_functions as functions

HERE = Path(__file__).resolve().parent
SCENES = json.loads((HERE / "multus_scenes.json").read_text(encoding="utf-8"))["scenes"]
ANNOTATIONS = "io.kubernetes.cri.pod-annotations"
ARGS = [("IgnoreUnknown", "1"), ("K8S_POD_NAMESPACE", "default"), ("K8S_POD_NAME", "web")]
FAILURE = {"cniVersion": "1.0.0", "code": 999, "msg": "planned failure", "details": "d"}

# Where podwire-multinet does something else (docs/podwire-multinet.md): scene and step -> why, and what differs.
_AGAIN = "DEL without a record deletes the networks that the pod would get now; Multus deletes nothing"
_KEPT = "what a failed DEL leaves is deleted by the next one; Multus has forgotten it, and its lease leaks"
_CHECKED = (
    "CHECK includes all networks, also behind one that fails; Multus ends at the first, and skips the annotation's"
)
_BOTH = ["rec2 DEL plain net2", "rec DEL cluster eth0"]
DIFFERENCES: dict[tuple[str, str], tuple[str, dict[str, t.Any]]] = {
    ("three delegates", "CHECK after net1 was deleted"): (
        _CHECKED,
        {"calls": ["rec CHECK cluster eth0", "rec2 CHECK plain net2"]},
    ),
    ("three delegates", "DEL again"): (_AGAIN, {"calls": _BOTH}),
    ("the third delegate fails, and so does the first one's DEL", "DEL with a repaired configuration"): (
        _KEPT,
        {"links": [], "leases": [], "calls": _BOTH},
    ),
    ("ADD twice", "ADD again"): (
        "a second ADD is refused, and takes nothing down; Multus deletes eth0 of the running pod",
        {"links": ["eth0", "net1"], "leases": ["cluster/10.20.0.2", "storage/10.30.0.10"], "calls": []},
    ),
    ("annotation", "CHECK"): (_CHECKED, {"calls": ["rec CHECK cluster eth0", "rec2 CHECK plain net3"]}),
    ("annotation", "CHECK after net1 was deleted"): (
        _CHECKED,
        {"fails": True, "calls": ["rec CHECK cluster eth0", "rec2 CHECK plain net3"]},
    ),
}


def sh(script: str) -> str:
    """Run a script that has to succeed, and return what it printed."""
    return subprocess.run(["bash", "-ec", script], text=True, capture_output=True, check=True).stdout


def compare_functions(cases: list[dict[str, t.Any]]) -> int:
    """Judge the cases of functions, print the agreement of each, and return the number of differences."""
    seen: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    documented: collections.Counter[str] = collections.Counter()
    for case in cases:
        with tempfile.TemporaryDirectory() as folder:
            try:
                reason = functions.judge(case, Path(folder))
            except AssertionError as error:
                seen[case["function"]]["different"] += 1
                print(f"multus: {case['function']}, case {case['id']} ({case['name']}): {error}")
                continue
        seen[case["function"]]["documented" if reason else "identical"] += 1
        documented.update([reason] if reason else [])
    for name, count in sorted(seen.items()):
        print(f"multus: {name}: {', '.join(f'{number} {word}' for word, number in sorted(count.items()))}")
    for reason, number in documented.items():
        print(f"multus: {number} times: {reason}")
    return sum(count["different"] for count in seen.values())


class Scene:
    """A host with one pod: a cluster network (bridge and recorder), a macvlan, a recorder, and a second bridge."""

    def __init__(self, work: Path, recorder: str, plugins: str, name: str) -> None:
        self.name = name
        self.records, self.script = work / "records", work / "script"
        self.records.mkdir()
        self.bin = work / "bin"
        shutil.copytree(plugins, self.bin)
        for alias in ("rec", "rec2"):
            shutil.copy2(recorder, self.bin / alias)
        source = HERE.parents[2] / "plugins" / "module_utils" / "_plugins" / "multinet.py"
        bundle.write(bundle.bundle(str(source)), str(self.bin / "podwire-multinet"))
        os.environ.update(PEER_RECORD=str(self.records), PEER_SCRIPT=str(self.script))
        self.cni = libcni.CNIConfig([str(self.bin)], str(work / "cache"), timeout=120)
        self.annotation = "storage, second@data0, plain" if name == "annotation" else ""
        self.network = self._network()
        self.tell()

    def _network(self) -> libcni.NetworkConfigList:
        def bridge(number: int, subnet: str) -> dict[str, t.Any]:
            ipam = {"type": "host-local", "ranges": [[{"subnet": subnet}]]}
            return {
                "type": "bridge", "bridge": f"mbr{number}", "isGateway": True, "isDefaultGateway": True, "ipam": ipam
            }  # fmt: skip

        version = {"cniVersion": "1.0.0"}
        ipam = {"type": "host-local", "ranges": [[{"subnet": "10.30.0.0/24", "rangeStart": "10.30.0.10"}]]}
        cluster = {**version, "name": "cluster", "plugins": [bridge(0, "10.20.0.0/24"), {"type": "rec"}]}
        others = {
            "storage": {**version, "name": "storage", "type": "macvlan", "master": "par0", "ipam": ipam},
            "second": {**version, "name": "second-conf", "plugins": [bridge(1, "10.50.0.0/24")]},
            "plain": {**version, "name": "plain", "type": "rec2"},
        }
        delegates = [cluster] if self.annotation else [cluster, others["storage"], others["plain"]]
        if self.annotation:
            folder = Path("/etc/cni/multinet/nads/default")
            folder.mkdir(parents=True)
            for name, network in others.items():
                nad = {"kind": "NetworkAttachmentDefinition", "metadata": {"name": name}, "spec": {"config": network}}
                (folder / f"{name}.json").write_text(json.dumps(nad), encoding="utf-8")
        if self.name == "ADD twice":
            delegates = delegates[:2]
        plugin = {"type": "podwire-multinet", "capabilities": {ANNOTATIONS: True}, "delegates": delegates}
        conf = {**version, "name": "pods", "plugins": [plugin]}
        return libcni.network_conf_from_bytes(json.dumps(conf).encode())

    def tell(self, *failures: str) -> None:
        """Write the answers of the recorders; those in *failures* (plugin/VERB) fail."""
        result = {"cniVersion": "1.0.0", "ips": [{"address": "10.40.0.2/24"}]}
        answers: dict[str, list[dict[str, t.Any]]] = {
            "rec/ADD": [{"passthrough": True}],
            "rec2/ADD": [{"stdout": _base64(result)}],
        }
        answers.update({name: [{"stdout": _base64(FAILURE), "exit": 1}] for name in failures})
        self.script.write_text(json.dumps(answers), encoding="utf-8")

    def prepare(self, step: str) -> None:
        """Bring about what a scene or the name of a step says."""
        failures = []
        if self.name.startswith("the third delegate fails"):
            failures.append("rec2/ADD")
        if self.name.endswith("first one's DEL") and "repaired" not in step:
            failures.append("rec/DEL")
        self.tell(*failures)
        if "net1 was deleted" in step:
            sh("ip -n pod1 link delete net1")
        if "annotation has changed" in step:
            self.annotation = "plain"

    def run(self, step: dict[str, t.Any]) -> dict[str, t.Any]:
        """Run a step as a runtime does, and return what happened in the form of multus_scenes.json."""
        self.prepare(step["step"])
        before = set(os.listdir(self.records))
        given = {ANNOTATIONS: {"k8s.v1.cni.cncf.io/networks": self.annotation} if self.annotation else None}
        attachment = libcni.RuntimeConf("cid1", "/run/netns/pod1", "eth0", ARGS, given)
        verbs = {
            "ADD": self.cni.add_network_list,
            "CHECK": self.cni.check_network_list,
            "DEL": self.cni.del_network_list,
        }
        error = ""
        try:
            verbs[step["verb"]](self.network, attachment)
        except libcni.CNIError as exc:
            error = str(exc)
        leases = Path("/var/lib/cni/networks")
        rows = json.loads(sh("ip -n pod1 -json link"))
        return {
            "fails": bool(error),
            "error": error,
            "links": [row["ifname"] for row in rows if row["ifname"] != "lo"],
            "leases": [str(path.relative_to(leases)) for path in sorted(leases.glob("*/10.*"))],
            "calls": [self._call(name) for name in sorted(set(os.listdir(self.records)) - before)],
        }

    def _call(self, name: str) -> str:
        record = json.loads((self.records / name).read_text(encoding="utf-8"))
        env = dict(_text(pair).split("=", 1) for pair in record["env"])
        network = json.loads(_text(record["stdin"]))["name"]
        return f"{record['plugin']} {record['command']} {network} {env['CNI_IFNAME']}"


def _base64(value: t.Any) -> str:
    return base64.b64encode(json.dumps(value).encode()).decode()


def _text(encoded: str) -> str:
    return base64.b64decode(encoded).decode()


def compare_scenes(recorder: str, plugins: str) -> int:
    """Run the scenes, print the differences, and return the number of those that are not documented."""
    different, met = 0, set()
    for name, steps in SCENES.items():
        sh("ip netns add pod1; ip link add par0 type veth peer name par1; ip link set par0 up; ip link set par1 up")
        with tempfile.TemporaryDirectory() as work:
            scene = Scene(Path(work), recorder, plugins, name)
            for step in steps:
                reason, changes = DIFFERENCES.get((name, step["step"]), ("", {}))
                wanted = {**{key: value for key, value in step.items() if key not in ("step", "verb")}, **changes}
                found = scene.run(step)
                wrong = {key: (found[key], value) for key, value in wanted.items() if found[key] != value}
                for key, (had, want) in wrong.items():
                    print(f"multus: {name}, {step['step']}: {key} {had}, instead of {want} {found['error']}")
                different += bool(wrong)
                met.update([reason] if reason and not wrong else [])
        sh(
            "ip netns delete pod1; for name in mbr0 mbr1 par0; do ip link delete $name || true; done; "
            "rm -rf /var/lib/cni /etc/cni"
        )
    print(f"multus: {sum(map(len, SCENES.values()))} steps with real plugins, {different} different")
    for reason in sorted(met):
        print(f"multus: documented: {reason}")
    # A difference that does not occur is not one.
    unmet = {reason for reason, _changes in DIFFERENCES.values()} - met
    for reason in sorted(unmet):
        print(f"multus: did not occur: {reason}")
    return different + len(unmet)


def main() -> int:
    """Compare the functions, then the plugin."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recorder", help="program made from tests/real/peer/recorder")
    parser.add_argument("plugins", help="directory of containernetworking-plugins")
    parser.add_argument("--cases", help="another file of cases, in the form of multus_cases.json")
    args = parser.parse_args()
    different = compare_functions(functions.load_cases(args.cases))
    return 1 if compare_scenes(args.recorder, args.plugins) + different else 0


if __name__ == "__main__":
    sys.exit(main())
