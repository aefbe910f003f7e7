# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Keeps TCP connections open between network namespaces, and tells whether they still work.

streams.py serve NETNS:PORT... NAME=NETNS,ADDRESS:PORT...    echo what ports receive, and open connections
streams.py check                                             send something through each connection; print JSON
"""

from __future__ import annotations

import ctypes
import json
import os
import selectors
import socket
import sys
import threading
import time

SOCKET = "/run/streams.sock"
CLONE_NEWNET = 0x40000000
# An emulated machine.
TIMEOUT = 30.0
OPENING = 120.0


def inside(netns, act):
    """Return what *act* returns in a network namespace."""
    with open("/proc/self/ns/net") as own, open(netns) as other:
        enter(other)
        try:
            return act()
        finally:
            enter(own)


def enter(namespace):
    if ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), f"setns: {os.strerror(ctypes.get_errno())}")


def echo(listeners):
    """Send back what the connections to *listeners* bring."""
    selector = selectors.DefaultSelector()
    for listener in listeners:
        selector.register(listener, selectors.EVENT_READ, True)
    while True:
        for key, _events in selector.select():
            if key.data:
                selector.register(key.fileobj.accept()[0], selectors.EVENT_READ, False)
                continue
            try:
                data = key.fileobj.recv(4096)
                if data:
                    key.fileobj.sendall(data)
                    continue
            except OSError:
                pass
            selector.unregister(key.fileobj)
            key.fileobj.close()


def opened(netns, target):
    """Return a connection, as soon as it can be opened."""
    address, _colon, port = target.rpartition(":")
    deadline = time.monotonic() + OPENING
    while True:
        try:
            return inside(netns, lambda: socket.create_connection((address, int(port)), TIMEOUT))
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.5)


def state(connection):
    """Tell whether a connection still works."""
    word = f"{time.monotonic_ns()}\n".encode()
    try:
        connection.sendall(word)
        heard = b""
        while not heard.endswith(word):
            more = connection.recv(4096)
            if not more:
                return "closed"
            heard += more
    except OSError as error:
        return str(error)
    return "alive"


def serve(*words):
    places = [word.rpartition(":") for word in words if "=" not in word]
    listeners = [
        inside(netns, lambda port=port: socket.create_server(("", int(port)))) for netns, _colon, port in places
    ]
    threading.Thread(target=echo, args=(listeners,), daemon=True).start()
    connections = {}
    for name, _equals, way in (word.partition("=") for word in words if "=" in word):
        netns, _comma, target = way.partition(",")
        connections[name] = opened(netns, target)
    with socket.socket(socket.AF_UNIX) as asked:
        asked.bind(SOCKET)
        os.chmod(SOCKET, 0o600)
        asked.listen()
        while True:
            with asked.accept()[0] as caller:
                answer = {name: state(connection) for name, connection in connections.items()}
                caller.sendall(json.dumps(answer).encode())


def check():
    deadline = time.monotonic() + OPENING
    with socket.socket(socket.AF_UNIX) as caller:
        while True:
            try:
                caller.connect(SOCKET)
                break
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.5)
        with caller.makefile() as answer:
            print(answer.read())


if __name__ == "__main__":
    {"serve": serve, "check": check}[sys.argv[1]](*sys.argv[2:])
