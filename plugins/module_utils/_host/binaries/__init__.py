# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Plugin binaries of a host: where they come from, which release they are, who uses them.

Public face: archive, checksum, download, outcome, packages, request, source, store, types, usable.
"""
