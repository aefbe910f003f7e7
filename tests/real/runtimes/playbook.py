# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Ansible against this machine, whose Python is the distribution's."""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
LOCALHOST = ("-i", "localhost,", "-c", "local", "-e", "ansible_python_interpreter=/usr/bin/python3")


def module(name, arguments):
    """Run a module, which must not fail."""
    done = subprocess.run(
        ["ansible", *LOCALHOST, "localhost", "-m", name, "-a", json.dumps(arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    if done.returncode != 0:
        sys.exit(done.stdout.decode())


@contextlib.contextmanager
def running(tasks, remote_tmp, state):
    """Run a playbook that waits before and after each of its tasks.

    Gives two functions: one lets it go on; one tells whether it waits, after some seconds or as soon as it does.
    """
    with open(state + "/playbook.json", "w") as stream:
        json.dump([{"hosts": "all", "gather_facts": False, "tasks": tasks}], stream)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(state + "/handshake")
    listener.listen(1)
    environment = {
        **os.environ,
        "HANDSHAKE": state + "/handshake",
        "ANSIBLE_CALLBACK_PLUGINS": HERE + "/callback_plugins",
        "ANSIBLE_CALLBACKS_ENABLED": "handshake",
        "ANSIBLE_PIPELINING": "true",
        "ANSIBLE_REMOTE_TMP": remote_tmp,
    }
    with open(state + "/playbook.log", "w+") as log:
        process = subprocess.Popen(
            ["ansible-playbook", *LOCALHOST, state + "/playbook.json"], env=environment, stdout=log, stderr=log
        )
        try:
            connection = _accept(listener, process)

            def waiting(seconds):
                if not select.select([connection], [], [], seconds)[0]:
                    return False
                if not connection.recv(1):
                    raise EOFError
                return True

            yield lambda: connection.sendall(b"."), waiting
            if process.wait() != 0:
                raise EOFError
        except (EOFError, ConnectionError):
            process.wait()
            log.seek(0)
            sys.exit("the playbook has ended:\n" + log.read()[-4000:])
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait()
            listener.close()
            os.unlink(state + "/handshake")


def _accept(listener, process):
    while not select.select([listener], [], [], 1)[0]:
        if process.poll() is not None:
            raise EOFError
    return listener.accept()[0]
