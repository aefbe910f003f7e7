# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What containerd hands to the plugins of a pod: CNI_ARGS and capability arguments.

Sources: containerd internal/cri/server/sandbox_run.go:cniNamespaceOpts with containerd/go-cni types.go, compared with
what 1.6.20, 1.7.24 and 2.1.9 send (1.6 has no cgroupPath); kubernetes pkg/util/bandwidth/utils.go and apimachinery
pkg/api/resource/quantity.go.
"""

from __future__ import annotations

import re
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ..errors import HostError
from .capability_args import check_capability_args

ANNOTATIONS = "io.kubernetes.cri.pod-annotations"
CONVENTIONAL = frozenset((ANNOTATIONS, "labels", "cgroupPath", "dns"))
"""The capabilities that a runtime hands to every network, so that it is no mistake if no plugin reads them."""
_BANDWIDTH = "kubernetes.io/{}-bandwidth"
_WAYS = ("ingress", "egress")
_QUANTITY = re.compile(
    r"\+?(?=\.?[0-9])([0-9]{0,40})(?:\.([0-9]{0,40}))?(?:[eE]([+-]?[0-9]{1,3})|(Ki|Mi|Gi|Ti|Pi|Ei|n|u|m|k|M|G|T|P|E)?)"
)
_SUFFIXES = {"n": -3, "u": -2, "m": -1, "": 0, "k": 1, "M": 2, "G": 3, "T": 4, "P": 5, "E": 6}
_LARGEST = 2**63 - 1


class PodConventions(NamedTuple):
    """``args`` are the pairs of CNI_ARGS, ``capability_args`` any JSON by capability."""

    args: List[Tuple[str, str]]
    capability_args: Dict[str, Any]


def arguments_of(
    pod: Mapping[str, Any],
    container_id: str,
    args: Sequence[Tuple[str, str]],
    capability_args: Mapping[str, Any],
    where: str,
) -> PodConventions:
    """Return the same as :func:`pod_conventions` with the *args* and *capability_args* that are given beside the pod.

    Raises HostError ``bad_pod`` if one of them is among those of the pod, and ``bad_capability_args``.
    """
    pod_args, pod_capability_args = pod_conventions(pod, container_id, where)
    pairs = ("args", dict(args), dict(pod_args)), ("capability_args", capability_args, pod_capability_args)
    for option, given, own in pairs:
        twice = sorted(set(given) & set(own))
        if twice:
            raise _bad(where, f"{twice[0]} comes from the pod and from {option}; remove it from {option}")
    check_capability_args(pod_capability_args, where)
    return PodConventions([*pod_args, *args], {**pod_capability_args, **capability_args})


def pod_conventions(pod: Mapping[str, Any], container_id: str, where: str) -> PodConventions:
    """Return what containerd, for *pod* (the options in POD_ARGUMENTS), hands to the plugins of each of its networks.

    Raises HostError ``bad_pod``, which names the place below *where*.
    """
    args = [
        ("IgnoreUnknown", "1"),
        ("K8S_POD_NAMESPACE", pod.get("namespace") or "default"),
        ("K8S_POD_NAME", pod["name"]),
        ("K8S_POD_INFRA_CONTAINER_ID", pod.get("infra_container_id") or container_id),
        ("K8S_POD_UID", pod.get("uid") or ""),
    ]
    for key, value in args:
        if any(char in value for char in ";=\0"):
            raise _bad(where, f"the value of {key} contains ';', '=' or NUL, which CNI_ARGS cannot carry")
    if not pod["name"]:
        raise _bad(where, "name is empty; a pod has a name")
    annotations = _annotations(pod, where)
    capability_args: Dict[str, Any] = {ANNOTATIONS: annotations or None}
    if pod.get("labels"):
        # No runtime sends labels; this is the form that CONVENTIONS.md describes for them.
        labels = _texts(pod["labels"], f"{where}.labels")
        capability_args["labels"] = [{"key": key, "value": value} for key, value in labels.items()]
    if pod.get("cgroup_path"):
        capability_args["cgroupPath"] = pod["cgroup_path"]
    rates = {way: _rate(pod, annotations.get(_BANDWIDTH.format(way)), way, where) for way in _WAYS}
    capability_args.update(_of_go_cni(pod, rates))
    return PodConventions(args, capability_args)


def _of_go_cni(pod: Mapping[str, Any], rates: Mapping[str, Optional[int]]) -> Dict[str, Any]:
    """Return what go-cni's structures become: keys in capitals, all of them present."""
    arguments: Dict[str, Any] = {}
    ports = [
        {
            "HostPort": port["host_port"],
            "ContainerPort": port["container_port"],
            "Protocol": port.get("protocol") or "tcp",
            "HostIP": port.get("host_ip") or "",
        }
        for port in pod.get("ports") or []
        if port.get("host_port")
    ]
    if ports:
        arguments["portMappings"] = ports
    if any(rate is not None for rate in rates.values()):
        # Go's MaxUint32 stands for no limit.
        arguments["bandwidth"] = {
            f"{way.capitalize()}{name}": value if rates[way] else 0
            for way in _WAYS
            for name, value in (("Rate", rates[way]), ("Burst", 2**32 - 1))
        }
    if pod.get("dns") is not None:
        # An empty list arrives as null.
        arguments["dns"] = {key: pod["dns"].get(key.lower()) or None for key in ("Servers", "Searches", "Options")}
    return arguments


def _annotations(pod: Mapping[str, Any], where: str) -> Dict[str, str]:
    """Return the annotations of the pod, with those that mean its bandwidth."""
    annotations = _texts(pod.get("annotations") or {}, f"{where}.annotations")
    for way in _WAYS:
        value, name = pod.get(f"{way}_bandwidth"), _BANDWIDTH.format(way)
        if value and annotations.setdefault(name, value) != value:
            text = f"it is {value}, and the annotation {name} is {annotations[name]}; give one of them"
            raise _bad(f"{where}.{way}_bandwidth", text)
    return annotations


def _texts(values: Mapping[Any, Any], where: str) -> Dict[str, str]:
    for key, value in values.items():
        if not isinstance(key, str) or not isinstance(value, str):
            # The value may be a secret.
            raise _bad(where, f"the value of {key!r} is {type(value).__name__}; write it in quotes")
    return dict(values)


def _rate(pod: Mapping[str, Any], text: Optional[str], way: str, where: str) -> Optional[int]:
    """Return bits per second, None if the pod has no such limit."""
    if text is None:
        return None
    option = f"{way}_bandwidth"
    place = f"{where}.{option if pod.get(option) else 'annotations.' + _BANDWIDTH.format(way)}"
    exact = _quantity(text)
    if exact is None:
        raise _bad(place, f"{text[:40]!r} is not a quantity; write, for example, 10M (bits per second)")
    top, bottom = exact
    rate = min(-(-top // bottom), _LARGEST)
    if not 1000 <= rate <= 10**15:
        raise _bad(place, f"{text[:40]!r} is not between 1k and 1P (bits per second), and containerd refuses the pod")
    return rate


def _quantity(text: str) -> Optional[Tuple[int, int]]:
    """Return a quantity of Kubernetes as the fraction (top, bottom), None if it is none."""
    match = _QUANTITY.fullmatch(text)
    if match is None:
        return None
    whole, part, exponent, suffix = match.groups()
    top, bottom = int(whole + (part or "")), 10 ** len(part or "")
    if suffix and suffix.endswith("i"):
        return top << (10 * _SUFFIXES[suffix[0].replace("K", "k")]), bottom
    power = int(exponent) if exponent else 3 * _SUFFIXES[suffix or ""]
    return (top * 10**power, bottom) if power >= 0 else (top, bottom * 10**-power)


def _bad(where: str, text: str) -> HostError:
    return HostError(f"{where}: {text}", code="bad_pod")
