# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Which containers are alive, according to every source that can know.

Public face: live, namespaces, sources.
"""
