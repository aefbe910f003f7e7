# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

"""Virtual machines for tests: images, saved states, clones. Runs on the controller; standard library only."""
