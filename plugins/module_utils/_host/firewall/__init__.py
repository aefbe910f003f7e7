# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Rules of CNI plugins in iptables and nftables: their owners, and their removal.

Public face: chains, change, dump, kinds, order, owners, tools.
"""
