# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What a pod becomes, compared with what containerd 1.6.20, 1.7.24 and 2.1.9 handed to a plugin, and CRI-O's source."""

from __future__ import annotations

import pytest

from ansible_collections.podwire.cni.plugins.module_utils._host.attachments.pod import pod_conventions
from ansible_collections.podwire.cni.plugins.module_utils._host.attachments.request import parse_attachments
from ansible_collections.podwire.cni.plugins.module_utils._host.errors import HostError
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.attachments.attach_host import web
from ansible_collections.podwire.cni.tests.unit.plugins.module_utils._host.refusals import fails_with

PORTS = [
    {"host_port": 8080, "container_port": 80, "host_ip": "127.0.0.1"},
    {"host_port": 5353, "container_port": 53, "protocol": "udp"},
    {"container_port": 9000},
]
ANNOTATIONS = {"k8s.v1.cni.cncf.io/networks": '[{"name":"storage"}]', "example.com/odd": 'a=b;c,d "q" <&> \u2028\n'}
POD = {
    "name": "web",
    "namespace": "shop",
    "uid": "4711",
    "annotations": ANNOTATIONS,
    "ports": PORTS,
    "ingress_bandwidth": "10M",
    "egress_bandwidth": "20M",
    "dns": {"servers": ["10.0.0.10"], "searches": ["cluster.local"], "options": ["ndots:5"]},
    "cgroup_path": "/kubepods/pod-x",
}
ALL = {"kubernetes.io/ingress-bandwidth": "10M", "kubernetes.io/egress-bandwidth": "20M", **ANNOTATIONS}
ARGS = [
    ("IgnoreUnknown", "1"),
    ("K8S_POD_NAMESPACE", "shop"),
    ("K8S_POD_NAME", "web"),
    ("K8S_POD_INFRA_CONTAINER_ID", "c0ffee"),
    ("K8S_POD_UID", "4711"),
]


def of(pod, **keys):
    return pod_conventions({**pod, **keys}, "c0ffee", "pod")


def test_containerd_hands_over_what_was_recorded():
    found = of(POD)
    assert found.args == ARGS
    assert found.capability_args == {
        "bandwidth": {
            "IngressRate": 10000000,
            "IngressBurst": 4294967295,
            "EgressRate": 20000000,
            "EgressBurst": 4294967295,
        },
        "cgroupPath": "/kubepods/pod-x",
        "dns": {"Servers": ["10.0.0.10"], "Searches": ["cluster.local"], "Options": ["ndots:5"]},
        "io.kubernetes.cri.pod-annotations": ALL,
        "portMappings": [
            {"HostPort": 8080, "ContainerPort": 80, "Protocol": "tcp", "HostIP": "127.0.0.1"},
            {"HostPort": 5353, "ContainerPort": 53, "Protocol": "udp", "HostIP": ""},
        ],
    }


def test_containerd_sends_null_for_a_pod_without_annotations_and_nothing_else():
    found = of({"name": "web"})
    assert found.capability_args == {"io.kubernetes.cri.pod-annotations": None}
    assert dict(found.args) == {
        "IgnoreUnknown": "1",
        "K8S_POD_NAMESPACE": "default",
        "K8S_POD_NAME": "web",
        "K8S_POD_INFRA_CONTAINER_ID": "c0ffee",
        "K8S_POD_UID": "",
    }


def test_the_id_of_the_sandbox_may_be_another_one_than_that_of_the_container():
    assert dict(of(POD, infra_container_id="pause").args)["K8S_POD_INFRA_CONTAINER_ID"] == "pause"


def test_labels_have_the_form_of_the_conventions():
    assert of({"name": "web"}, labels={"app": "web"}).capability_args["labels"] == [{"key": "app", "value": "web"}]


def test_one_limit_leaves_the_other_direction_unlimited():
    assert of({"name": "web"}, egress_bandwidth="1k").capability_args["bandwidth"] == {
        "IngressRate": 0,
        "IngressBurst": 0,
        "EgressRate": 1000,
        "EgressBurst": 4294967295,
    }


# Kubernetes' own quantities: text -> value, rounded up.
QUANTITIES = {
    "1000": 1000,
    "1k": 1000,
    "1Ki": 1024,
    "10M": 10**7,
    "1.5M": 1500000,
    "1.5Ki": 1536,
    ".5M": 500000,
    "5.k": 5000,
    "1e3": 1000,
    "1E3": 1000,
    "+2e+3": 2000,
    "1000500m": 1001,
    "1e6": 10**6,
    "1P": 10**15,
    "1T": 10**12,
    "1000000000000n": 1000,
}


@pytest.mark.parametrize("text", QUANTITIES)
def test_quantities(text):
    rate = of({"name": "web"}, ingress_bandwidth=text).capability_args["bandwidth"]["IngressRate"]
    assert rate == QUANTITIES[text]


@pytest.mark.parametrize(
    "text", ["", "M", "1MB", "1 M", "-1M", "1e", "1e4000", "1" * 100, "1.2.3", "0x10", "1\n", "\u0661k"]
)
def test_what_is_no_quantity(text):
    with pytest.raises(HostError, match=r"[.]annotations[.]kubernetes[.]io/ingress-bandwidth: .* is not a quantity"):
        of({"name": "web", "annotations": {"kubernetes.io/ingress-bandwidth": text}})


@pytest.mark.parametrize("text", ["0", "999", "1.1P", "2P", "1E"])
def test_what_containerd_refuses_as_unreasonable(text):
    with pytest.raises(HostError, match=r"[^.]+[.]ingress_bandwidth: .* between 1k and 1P"):
        of({"name": "web"}, ingress_bandwidth=text)


def entry(**keys):
    return [dict(web(), **keys)]


def test_an_entry_gets_the_conventions_and_its_own_arguments():
    asked = {"args": {"IP": "10.88.0.9"}, "capability_args": {"ips": ["10.88.0.9/16"]}}
    [wanted] = parse_attachments(entry(container_id="c0ffee", pod=POD, **asked))
    assert wanted.args == [*ARGS, ("IP", "10.88.0.9")]
    assert wanted.capability_args == {**of(POD).capability_args, "ips": ["10.88.0.9/16"]}


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        ({"pod": dict(POD, name="")}, "name is empty"),
        ({"pod": dict(POD, name="a;b")}, "K8S_POD_NAME contains"),
        ({"pod": dict(POD, namespace="a=b")}, "K8S_POD_NAMESPACE contains"),
        ({"pod": dict(POD, uid="a\0b")}, "K8S_POD_UID contains"),
        ({"pod": dict(POD, annotations={"a": 1})}, "annotations: the value of 'a' is int; write it in quotes"),
        ({"pod": dict(POD, labels={"a": True})}, "labels: the value of 'a' is bool"),
        ({"pod": POD, "args": {"K8S_POD_UID": "1"}}, "K8S_POD_UID comes from the pod and from args"),
        ({"pod": POD, "capability_args": {"dns": {}}}, "dns comes from the pod and from capability_args"),
        (
            {"pod": dict(POD, annotations={"kubernetes.io/ingress-bandwidth": "1M"})},
            "ingress_bandwidth: it is 10M, and the annotation kubernetes.io/ingress-bandwidth is 1M",
        ),
    ],
)
def test_what_is_refused_before_anything_runs(keys, text):
    with fails_with("bad_pod") as caught:
        parse_attachments(entry(**keys))
    assert text in caught.value.msg and caught.value.msg.startswith("attachments[0].pod")


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        ({"ports": [{"host_port": 70000, "container_port": 80}]}, "HostPort: expected a whole number"),
        ({"ports": [{"host_port": 8080, "container_port": 0}]}, "ContainerPort: expected a whole number"),
        ({"ports": [{"host_port": 8080, "container_port": 80, "host_ip": "x"}]}, "HostIP: expected an IP address"),
        ({"dns": {"servers": ["x"]}}, "Servers[0]: expected an IP address"),
    ],
)
def test_values_are_checked_as_those_of_capability_args(keys, text):
    with pytest.raises(HostError) as caught:
        parse_attachments(entry(pod={"name": "web", **keys}))
    assert (caught.value.code, text in caught.value.msg) == ("bad_capability_args", True)


def test_a_secret_in_an_annotation_is_not_shown():
    with pytest.raises(HostError) as caught:
        parse_attachments(entry(pod={"name": "web", "annotations": {"token": ["s3cret"]}}))
    assert "s3cret" not in caught.value.msg


def test_a_detachment_needs_no_sound_pod():
    [wanted] = parse_attachments(entry(pod=dict(POD, name=""), state="absent"))
    assert wanted.args == []
