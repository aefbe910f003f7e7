# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What is wrong with networks: alone, in their directory, on their host, and between hosts.

Public face: advisories, causes, chain, directory, fault, formats, ipam, lans, multus, network, nomad, other_programs,
plugins, repository, view.
"""
