#!/usr/bin/env bash
# Stands in for the managed host's Python; see process.py.
exec /usr/bin/python3 -I "$(dirname "${BASH_SOURCE[0]}")/process.py" "$@"
