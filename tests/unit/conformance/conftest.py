# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path.append(str(ROOT))
# What the suite adds itself as soon as it is imported.
sys.path.append(str(ROOT / "plugins" / "module_utils"))
