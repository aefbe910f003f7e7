# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: BSD-2-Clause

import sys

from .command import main

sys.exit(main(sys.argv[1:]))
