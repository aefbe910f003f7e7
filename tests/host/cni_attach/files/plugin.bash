# Copyright (c) 2026 the podwire.cni authors; SPDX-License-Identifier: GPL-3.0-or-later
# Sourced (BASH_ENV) by copies of bash that play CNI plugins: modules run only ELF files. What they do depends on their
# name. They write to the directory they are in.

[ -n "${CNI_COMMAND-}" ] || return 0
unset BASH_ENV
folder=${0%/*}
name=${0##*/}

pass_result_on() {
  exec python3 -c 'import json, sys; print(json.dumps(json.load(sys.stdin)["prevResult"]))'
}

case "$name-$CNI_COMMAND" in
  *-VERSION)
    printf '{"cniVersion": "1.0.0", "supportedVersions": ["0.4.0", "1.0.0"]}'
    ;;
  record-*)
    exec python3 -c '
import json, os, sys
conf = json.load(sys.stdin)
said = {"command": os.environ["CNI_COMMAND"], "args": os.environ["CNI_ARGS"], "runtimeConfig": conf.get("runtimeConfig")}
with open(sys.argv[1], "a") as stream:
    print(json.dumps(said), file=stream)
if said["command"] == "ADD":
    print(json.dumps(conf["prevResult"]))
' "$folder/record.log"
    ;;
  hang-ADD)
    echo "about to hang" >&2
    sleep 1000 &
    echo $! >"$folder/hang.child"
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
  leaky-ADD)
    exec "${CNI_PATH%%:*}/bridge"
    ;;
  mute-ADD)
    exit 3
    ;;
  flood-ADD)
    exec yes
    ;;
  hold-ADD)
    sleep 1000 &
    echo $! >"$folder/hold.child"
    echo "left one behind" >&2
    printf '{"cniVersion": "1.0.0"}'
    ;;
  meet-ADD)
    # After the first one, ends well only when two of it run at the same time.
    met=("$folder"/meet.*)
    least=3
    [ -e "${met[0]}" ] || least=1
    : >"$folder/meet.$CNI_CONTAINERID"
    for ((tries = 0; tries < 1500; tries++)); do
      met=("$folder"/meet.*)
      [ ${#met[@]} -lt "$least" ] || break
      sleep 0.02
    done
    [ ${#met[@]} -ge "$least" ] || exit 1
    printf '{"cniVersion": "1.0.0"}'
    ;;
  slow-ADD)
    if [ -e "$folder/be-slow" ]; then
      echo $$ >"$folder/slow.pid.new"
      mv "$folder/slow.pid.new" "$folder/slow.pid"
      exec sleep 1000
    fi
    pass_result_on
    ;;
  swap-ADD)
    source "$folder/swap.sh"
    pass_result_on
    ;;
  swapdel-ADD)
    pass_result_on
    ;;
  swapdel-DEL)
    source "$folder/swapdel.sh"
    ;;
  stubborn-ADD)
    pass_result_on
    ;;
  stubborn-DEL)
    [ ! -e "$folder/be-stubborn" ] || { echo "not now" >&2; exit 1; }
    ;;
esac
exit 0
