# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
# Sourced (BASH_ENV) by a copy of bash that plays a CNI plugin: it notes what GC tells it. PLUGIN_DIR is its to write to.

[ -n "${CNI_COMMAND-}" ] || return 0
unset BASH_ENV
case "$CNI_COMMAND" in
  VERSION) printf '{"cniVersion": "1.1.0", "supportedVersions": ["1.0.0", "1.1.0"]}' ;;
  GC)
    cat >>"$PLUGIN_DIR/told"
    [ ! -e "$PLUGIN_DIR/be-broken" ] || { printf '{"cniVersion": "1.1.0", "code": 99, "msg": "out of order"}'; exit 1; }
    ;;
  ADD)
    if [ -e "$PLUGIN_DIR/be-slow" ]; then
      echo $$ >"$PLUGIN_DIR/slow.pid.new"
      mv "$PLUGIN_DIR/slow.pid.new" "$PLUGIN_DIR/slow.pid"
      exec sleep 1000
    fi
    printf '{"cniVersion": "1.1.0"}'
    ;;
esac
exit 0
