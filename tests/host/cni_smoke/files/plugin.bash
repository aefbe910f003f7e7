# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
# Sourced (BASH_ENV) by copies of bash that play CNI plugins; what they do depends on their name. PLUGIN_DIR is theirs to write to,
# REAL_PLUGINS where real ones are.

[ -n "${CNI_COMMAND-}" ] || return 0
unset BASH_ENV
name=${0##*/}

pass_result_on() {
  exec python3 -c 'import json, sys; print(json.dumps(json.load(sys.stdin)["prevResult"]))'
}

# Tell whether this is the call that be-slow names, such as "ADD 2".
is_slow() {
  local calls="$PLUGIN_DIR/slow.$CNI_COMMAND"
  echo >>"$calls"
  [ "$(cat "$PLUGIN_DIR/be-slow" 2>/dev/null)" = "$CNI_COMMAND $(wc -l <"$calls")" ]
}

case "$name-$CNI_COMMAND" in
  *-VERSION)
    printf '{"cniVersion": "1.0.0", "supportedVersions": ["0.4.0", "1.0.0"]}'
    ;;
  refuse-ADD)
    echo "got very-secret-token" >&2
    printf '{"cniVersion": "1.0.0", "code": 120, "msg": "not with very-secret-token"}'
    exit 1
    ;;
  stubborn-ADD)
    pass_result_on
    ;;
  stubborn-DEL)
    [ ! -e "$PLUGIN_DIR/be-stubborn" ] || { echo "not now" >&2; exit 1; }
    ;;
  leaky-ADD)
    exec "$REAL_PLUGINS/bridge"
    ;;
  slow-*)
    if is_slow; then
      echo $$ >"$PLUGIN_DIR/slow.pid.new"
      mv "$PLUGIN_DIR/slow.pid.new" "$PLUGIN_DIR/slow.pid"
      exec sleep 1000
    fi
    [ "$CNI_COMMAND" != ADD ] || pass_result_on
    ;;
  single-ADD)
    mkdir "$PLUGIN_DIR/single" 2>/dev/null || { printf '{"cniVersion": "1.0.0", "code": 101, "msg": "only one"}'; exit 1; }
    pass_result_on
    ;;
  single-DEL)
    rmdir "$PLUGIN_DIR/single" 2>/dev/null
    ;;
  unmap-ADD)
    iptables -t nat -F CNI-HOSTPORT-DNAT
    pass_result_on
    ;;
  vendor-ADD)
    printf '%s' "$CNI_ARGS" >"$PLUGIN_DIR/vendor.args"
    printf '{"cniVersion": "1.0.0"}'
    ;;
esac
exit 0
