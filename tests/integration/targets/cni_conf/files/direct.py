# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Calls the module cni_conf in a child process, without the time that Ansible takes around it."""

from __future__ import annotations

import contextlib
import json
import os
import sys

from ansible.module_utils.testing import patch_module_args

from ansible_collections.podwire.cni.plugins.modules import cni_conf


def render(mtu):
    """Return the text of the network `loop` with that MTU; a large one, so that a torn file is likely to be seen."""
    plugins = [{"type": "loopback", "mtu": mtu, "padding": "x" * 300000, "end": mtu}]
    return json.dumps({"cniVersion": "1.0.0", "name": "loop", "plugins": plugins}, indent=2) + "\n"


def start(conf_dir, **network):
    """Start the module in a child process and return its process id."""
    pid = os.fork()
    if pid:
        return pid
    arguments = {"conf_dir": conf_dir, "validate": [], "networks": [dict({"name": "loop"}, **network)]}
    with open(os.devnull, "w") as null, contextlib.redirect_stdout(null), patch_module_args(arguments):
        try:
            cni_conf.main()
        except SystemExit as ended:
            os._exit(ended.code or 0)
        finally:
            sys.stderr.flush()
            os._exit(70)


def succeed(conf_dir, **network):
    """Run the module to its end, which has to be a good one."""
    _pid, status = os.waitpid(start(conf_dir, **network), 0)
    if status != 0:
        sys.exit("the module ended with status %d" % status)
