# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Tells $HANDSHAKE, a socket, when a task begins and ends, and has the playbook wait for an answer each time."""

from __future__ import annotations

import os
import socket

from ansible.plugins.callback import CallbackBase

DOCUMENTATION = """
name: handshake
type: notification
short_description: Let a program watch each task, and go on when it says so
description: For the measurements with real runtimes of this collection.
"""


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "notification"
    CALLBACK_NAME = "handshake"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self):
        super().__init__()
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(os.environ["HANDSHAKE"])

    def _ask(self):
        self._socket.sendall(b".")
        self._socket.recv(1)

    def v2_playbook_on_task_start(self, task, is_conditional):
        self._ask()

    def v2_runner_on_ok(self, result):
        self._ask()
