# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Loads for forks of ansible-playbook (preloaded.py) what each run would: the collection, plugins with their options.

Ansible's importer compiles the collection in each process. Each run installs its own one, so the one of here goes.
"""

from __future__ import annotations

from ansible.plugins import loader as plugins
from ansible.utils.collection_loader._collection_finder import _AnsibleCollectionFinder
from preloaded import import_all

plugins.init_plugin_loader()
parts = (f"podwire.cni.plugins.{kind}.*" for kind in ("action", "filter", "lookup", "plugin_utils"))
import_all([f"ansible_collections.{name}" for name in ("ansible.builtin", "podwire.cni.plugins.modules", *parts)])
# Plugins of variables are found once, with the places of a run.
for kind in ("become", "cache", "callback", "connection", "inventory", "shell", "strategy"):
    list(getattr(plugins, f"{kind}_loader").all(class_only=True))
_AnsibleCollectionFinder._remove()
