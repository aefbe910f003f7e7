# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""A client for CRI, the interface that kubelet asks a runtime by: as much of it as the tests need.

The numbers of the fields are those of runtime/v1/api.proto.
"""

from __future__ import annotations

import json

import grpc

from ansible_collections.podwire.cni.tests.tools.protocol_buffers import field

TIMEOUT = 60.0


class CriError(Exception):
    """What the runtime answered instead."""


def message(data):
    """Return the fields of a message as lists of numbers and bytes."""
    fields, place = {}, 0

    def number():
        nonlocal place
        value = shift = 0
        while True:
            byte = data[place]
            place += 1
            value |= (byte & 127) << shift
            shift += 7
            if not byte & 128:
                return value

    while place < len(data):
        tag = number()
        value = number()
        if tag & 7 == 2:
            value, place = data[place : place + value], place + value
        fields.setdefault(tag >> 3, []).append(value)
    return fields


def text(fields, number):
    return fields.get(number, [b""])[0].decode()


def mapping(fields, number):
    """Return a map<string, string>."""
    pairs = [message(entry) for entry in fields.get(number, [])]
    return {text(pair, 1): text(pair, 2) for pair in pairs}


class Cri:
    def __init__(self, socket, timeout=TIMEOUT):
        self._timeout = timeout
        self._channel = grpc.insecure_channel("unix://" + socket)

    def call(self, method, request=b""):
        """Call a method of the RuntimeService; return the fields of the reply."""
        ask = self._channel.unary_unary("/runtime.v1.RuntimeService/" + method)
        try:
            return message(ask(request, timeout=self._timeout, wait_for_ready=True))
        except grpc.RpcError as error:
            raise CriError("%s: %s" % (method, error.details())) from error

    def status(self):
        """Return a (name, configuration) for each network that is loaded, and the last error of loading or ""."""
        information = mapping(self.call("Status", field(1, True)), 2)
        loaded = (json.loads(information.get("cniconfig") or "{}") or {}).get("Networks") or []
        networks = [entry["Config"] for entry in loaded if entry["IFName"] != "lo"]
        error = information.get("lastCNILoadStatus", "")
        return [(network["Name"], network["Source"]) for network in networks], "" if error == "OK" else error

    def run_pod(self, name, logs, handler="", annotations=()):
        """Run a pod sandbox; return its id. *logs* is the directory for logs of its containers."""
        metadata = field(1, name) + field(2, name + "-uid") + field(3, "default")
        config = field(1, metadata) + field(2, name) + field(3, logs)
        for key, value in dict(annotations).items():
            config += field(7, field(1, key) + field(2, value))
        config += field(8, b"")
        return text(self.call("RunPodSandbox", field(1, config) + field(2, handler)), 1)

    def pod(self, sandbox):
        """Return the addresses that the runtime says the pod has, and the plugins' result (``cniResult``)."""
        reply = self.call("PodSandboxStatus", field(1, sandbox) + field(2, True))
        network = message(message(reply[1][0]).get(5, [b""])[0])
        addresses = [text(network, 1)] + [text(message(more), 1) for more in network.get(2, [])]
        return addresses, json.loads(mapping(reply, 2)["info"])["cniResult"]

    def pods(self):
        """Return the ids of all pod sandboxes."""
        return [text(message(item), 1) for item in self.call("ListPodSandbox").get(1, [])]

    def stop_pod(self, sandbox):
        self.call("StopPodSandbox", field(1, sandbox))

    def remove_pod(self, sandbox):
        self.call("RemovePodSandbox", field(1, sandbox))
