#!/bin/sh
# Starts runtime.py and sees it do a turn, or sees it do one more and ends it: runtime.sh start|end
set -eu
cd "$(dirname "$0")"
touch log

turns() { wc -l <log; }

# One that has not begun yet: the second that ends from now on.
wait_for_turn() {
  begun=$(turns)
  deadline=$(($(date +%s) + 300))
  while [ "$(turns)" -lt $((begun + 2)) ]; do
    if [ "$(date +%s)" -gt "$deadline" ]; then
      systemctl status runtime
      exit 1
    fi
    sleep 1
  done
}

case $1 in
  start)
    # What ends it waits until the turn is over, and leaves the plugins alone.
    systemd-run --collect --unit=runtime --property=KillMode=process --property=TimeoutStopSec=300 \
      --property=StandardOutput="append:$PWD/log" --property=StandardError="append:$PWD/log" \
      python3 "$PWD/runtime.py" /etc/cni/net.d/10-pods.conflist /opt/cni/bin
    wait_for_turn
    ;;
  end)
    wait_for_turn
    systemctl stop runtime
    ;;
esac
