# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: BSD-2-Clause
from __future__ import annotations

from .cli import main

if __name__ == "__main__":
    raise SystemExit(main())
