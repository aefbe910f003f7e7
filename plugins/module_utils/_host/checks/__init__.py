# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""What is wrong with networks: alone, in their directory, on their host, and for a runtime that would use them now.

Public face: advisories, directory, network, readiness, view.
"""
