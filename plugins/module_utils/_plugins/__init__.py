# Copyright: (c) 2026, the podwire.cni authors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The collection's own CNI plugins. Each file is one; `libcni.bundle` makes an executable of it.

`debug`, `route` and `hooks` are chained plugins: they need another plugin's result, and hand it on with the keys that
they do not know. `multinet` runs other networks.
"""
