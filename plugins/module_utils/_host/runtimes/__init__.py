# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
"""Which network each container runtime uses, its settings, and whether it has loaded the network.

Public face: asking, cri, discover, effective, nomad, profiles, reading, runtime, settings, setup, through, toml,
unused.
"""
