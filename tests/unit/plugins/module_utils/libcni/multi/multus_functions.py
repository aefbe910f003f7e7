# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: BSD-2-Clause
"""The rules of libcni.multi against what Multus' own functions answered.

The answers are in multus_cases.json: inputs and outputs, no code. ``about`` in it names the functions and the commits.
The unit tests and tests/real/peer judge the cases with `judge`.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

from ansible_collections.podwire.cni.plugins.module_utils.libcni import gojson, types
from ansible_collections.podwire.cni.plugins.module_utils.libcni.errors import CNIError
from ansible_collections.podwire.cni.plugins.module_utils.libcni.multi import (
    configuration,
    definitions,
    delegates,
    pod,
    runtime,
    selection,
    status,
)


def load_cases(path=None):
    """Return the cases in a file; by default the one that MULTUS_CASES names, or else the one beside this file."""
    with open(path or os.environ.get("MULTUS_CASES") or Path(__file__).with_name("multus_cases.json"), "rb") as stream:
        return json.load(stream)["cases"]


# Answers of Multus that this package does not copy.
FOR_THE_FIRST = "what the runtime sends for one interface is for the first network; dns and others reach every network"
BIG_NUMBER = "Go passes integers through float64; here they are exact"


def deviation(case):
    """Return why this package answers something else, None if it must not."""
    given = case["input"]
    sent = given.get("runtime_config") or {}
    of_first = {"ips", "mac", "portMappings", "deviceID", "infinibandGUID"}.intersection(sent)
    if case["function"] == "runtime" and (set(sent) & {"dns", "cgroupPath"} or (of_first and not given["master"])):
        return FOR_THE_FIRST
    if re.search(r"\b9007199254740993\b", json.dumps(given)):
        return BIG_NUMBER
    return None


# ---- inputs


def a_selection(given):
    """Return the element of an annotation; the cases have some that no annotation could make."""
    if given is None:
        return None
    return selection.parse_networks(json.dumps([given]), "")[0]


def a_delegate(given):
    return delegates.load_delegate(
        json.dumps(given["config"]).encode() if "config" in given else given["text"].encode(),
        a_selection(given.get("element")),
    )


def write_files(given, folder):
    for name, text in given.get("files", {}).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def with_folder(value, folder):
    return json.loads(json.dumps(value).replace("@dir", str(folder)))


# ---- outputs


def shown(delegate, ifname=None):
    asked = delegate.selection or selection.NetworkSelection()
    out = {
        "name": delegate.name,
        "is_list": delegate.is_list,
        "type": delegate.type,
        "config": json.loads(delegate.data),
        "master": delegate.first,
    }
    requests = {
        "ifname": ifname,
        "interface": asked.interface or None,
        "mac": asked.mac or None,
        "ips": asked.ips,
        "port_mappings": asked.port_mappings,
        "bandwidth": asked.bandwidth,
        "default_route": delegate.default_route,
        "infiniband_guid": asked.infiniband_guid or None,
        "device_id": delegate.device_id or None,
    }
    out.update({key: value for key, value in requests.items() if value is not None})
    return out


def annotation(given, _folder):
    return list(map(element, selection.parse_networks(given["annotation"], given["namespace"])))


def element(asked):
    """Return a selection as Go writes it: without empty values, and of some without those that are not given."""
    values = {key: getattr(asked, attribute) for key, attribute in selection._ATTRIBUTES.items()}
    kept = ("bandwidth", "cni-args", "default-route")
    return {k: value for k, value in values.items() if value or k == "name" or (value is not None and k in kept)}


def names_of(found, ifname):
    return [one.interface(index, ifname) for index, one in enumerate(found)]


def interface_names(given, _folder):
    made = []
    for one in given["delegates"]:
        asked = selection.NetworkSelection(interface=one["interface"])
        made.append(delegates.Delegate(b"", "x", "bridge", asked))
        made[-1].first = one["master"]
    return names_of(made, given["ifname"])


def delegate(given, _folder):
    return shown(a_delegate(given))


def a_runtime(given, _folder):
    one = a_delegate(given)
    one.first = given["master"]
    args = runtime.parse_pod_args(given.get("CNI_ARGS", ""))
    incoming = runtime.decode_capabilities(given.get("runtime_config"))
    found = runtime.network_capabilities(incoming, one, "cid", given["ifname"])
    # MAC and IP are added by another function of Multus.
    one.selection = None
    return {
        "args": [list(pair) for pair in runtime.network_args(args, one)],
        "capability_args": found,
        "device_info_file": found.get("CNIDeviceInfoFile", ""),
    }


def nad_config(given, folder):
    write_files(given, folder)
    definition = definitions.NetworkDefinition("default", given["name"], given["text"])
    return {"text": definition.configuration(str(folder)).decode()}


def file_config(given, folder):
    write_files(given, folder)
    return {"text": definitions.configuration_from_files(given["name"], str(folder)).decode()}


def statuses_of(given):
    result = types.create_from_bytes(json.dumps(given["result"]).encode())
    return status.network_statuses(result, given["name"], given["default"])


def network_status(given, _folder):
    return statuses_of(given) or None


def network_status_text(given, _folder):
    return status.network_status_text([entry for one in given["statuses"] for entry in statuses_of(one)])


def netconf(given, _folder):
    text = given["text"] if "text" in given else json.dumps(given["config"])
    found = configuration.load_multus_conf(text.encode())
    names = names_of(found.delegates, "eth0")
    return {
        "auxiliaryCNIChainName": found.auxiliary_chain,
        "clusterNetwork": found.cluster_network,
        "cniDir": found.cni_dir,
        "confDir": found.conf_dir,
        "defaultNetworks": found.default_networks or None,
        "delegates": [shown(one, name) for one, name in zip(found.delegates, names)],
        "globalNamespaces": found.global_namespaces,
        "multusNamespace": found.multus_namespace,
        "namespaceIsolation": found.namespace_isolation,
        "readinessindicatorfile": found.readiness_file,
        "systemNamespaces": found.system_namespaces or None,
    }


def a_pod(given, folder):
    write_files(given, folder)
    given = with_folder(given, folder)
    found = configuration.load_multus_conf(json.dumps(given["config"]).encode())
    here = pod.Pod(given["pod"]["namespace"], given["pod"]["name"], given["pod"]["annotations"])
    every = {
        (one["namespace"], one["name"]): definitions.NetworkDefinition(one["namespace"], one["name"], one["config"])
        for one in given["nads"]
    }
    networks = pod.pod_networks(found, here, every)
    names = names_of(networks.delegates, "eth0")
    return {
        "added_by_annotation": networks.requested,
        "delegates": [shown(one, name) for one, name in zip(networks.delegates, names)],
    }


FUNCTIONS = {
    "annotation": annotation,
    "interface names": interface_names,
    "delegate": delegate,
    "runtime": a_runtime,
    "nad config": nad_config,
    "file config": file_config,
    "network status": network_status,
    "network status text": network_status_text,
    "netconf": netconf,
    "pod": a_pod,
}


def plain(value):
    return json.loads(gojson.dumps(value))


def with_place(value, folder):
    return json.loads(json.dumps(value).replace(str(folder), "@dir"))


def judge(case, folder):
    """Run a case in an empty directory. Return the documented deviation if there is one; raise `AssertionError`."""
    reason = deviation(case)
    try:
        found = plain(FUNCTIONS[case["function"]](case["input"], folder))
    except CNIError as exc:
        assert case["compare"] != "output", str(exc)
        return None
    found, wanted = with_place(found, folder), case["expected"].get("output")
    assert case["compare"] == "output", found
    if reason is None:
        assert found == wanted, f"{found!r} instead of {wanted!r}"
    else:
        assert found != wanted, f"the same as Multus, although {reason}"
    return reason
