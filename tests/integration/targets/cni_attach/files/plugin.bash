# Sourced (BASH_ENV) by copies of bash that play CNI plugins; what they do depends on their name. PLUGIN_DIR is theirs to write to.

[ -n "${CNI_COMMAND-}" ] || return 0
unset BASH_ENV
name=${0##*/}

pass_result_on() {
  exec python3 -c 'import json, sys; print(json.dumps(json.load(sys.stdin)["prevResult"]))'
}

case "$name-$CNI_COMMAND" in
  *-VERSION)
    printf '{"cniVersion": "1.0.0", "supportedVersions": ["0.4.0", "1.0.0"]}'
    ;;
  hang-ADD)
    echo "about to hang" >&2
    sleep 1000 &
    echo $! >"$PLUGIN_DIR/hang.child"
    wait
    ;;
  die-ADD)
    echo "about to die" >&2
    kill -KILL $$
    ;;
  garbage-ADD)
    echo "half a { result"
    echo "out of words" >&2
    exit 1
    ;;
  babble-ADD)
    echo "no result at all"
    ;;
  mute-ADD)
    exit 3
    ;;
  flood-ADD)
    exec yes
    ;;
  hold-ADD)
    sleep 1000 &
    echo $! >"$PLUGIN_DIR/hold.child"
    echo "left one behind" >&2
    printf '{"cniVersion": "1.0.0"}'
    ;;
  meet-ADD)
    # Ends well only when two of it run at the same time.
    : >"$PLUGIN_DIR/meet.$CNI_CONTAINERID"
    for ((tries = 0; tries < 300; tries++)); do
      met=("$PLUGIN_DIR"/meet.*)
      [ ${#met[@]} -lt 2 ] || break
      sleep 0.1
    done
    [ ${#met[@]} -ge 2 ] || exit 1
    printf '{"cniVersion": "1.0.0"}'
    ;;
  slow-ADD)
    if [ -e "$PLUGIN_DIR/be-slow" ]; then
      echo $$ >"$PLUGIN_DIR/slow.pid.new"
      mv "$PLUGIN_DIR/slow.pid.new" "$PLUGIN_DIR/slow.pid"
      exec sleep 1000
    fi
    pass_result_on
    ;;
  stubborn-ADD)
    pass_result_on
    ;;
  stubborn-DEL)
    [ ! -e "$PLUGIN_DIR/be-stubborn" ] || { echo "not now" >&2; exit 1; }
    ;;
esac
exit 0
