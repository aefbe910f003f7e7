#!/usr/bin/env bash
# The demo; called inside tests/private.sh by `./run demo`. It tests every fact that it shows, and fails if one is false.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
scratch=$(mktemp -d /run/podwire-demo.XXXXXX)

export ANSIBLE_STDOUT_CALLBACK=podwire.cni.steps ANSIBLE_PIPELINING=true
bold='' green='' red='' plain=''
if [ -t 1 ] && [ -z "${NO_COLOR-}" ]; then
  bold=$'\e[1m' green=$'\e[32m' red=$'\e[31m' plain=$'\e[0m'
  export ANSIBLE_FORCE_COLOR=true
else
  export ANSIBLE_NOCOLOR=true
fi

number=0

# Prints the heading of a chapter: chapter TITLE [LINE...]
chapter() {
  number=$((number + 1))
  printf '\n%s%d. %s%s\n' "$bold" "$number" "$1" "$plain"
  [ $# -eq 1 ] || printf '%s\n' "${@:2}"
}

# Prints a command, runs it and prints its output, which stays in $scratch/output.
run() {
  printf '\n  %s$ %s%s\n' "$bold" "$*" "$plain"
  local status=0
  bash -o pipefail -c "$*" >"$scratch/output" 2>&1 || status=$?
  sed -E '/^[[:space:]]*$/d; s/^/  /' "$scratch/output"
  return "$status"
}

# Tests a fact with a command, and ends the demo if it fails: fact DESCRIPTION COMMAND [ARGUMENT...]
fact() {
  if "${@:2}" >"$scratch/fact" 2>&1; then
    printf '  %s[ok]%s %s\n' "$green" "$plain" "$1"
  else
    printf '  %s[FAILED]%s %s\n' "$red" "$plain" "$1"
    sed 's/^/    /' "$scratch/fact"
    exit 1
  fi
}

printed() { sed 's/\x1b\[[0-9;]*m//g' "$scratch/output" | grep -Eq -- "$1"; }

# Prints everything on the host that bootstrap touches, except the collection's own state and empty directories.
state() {
  local directory
  for directory in /etc/cni /opt/cni /var/lib/podwire/cni /run/netns; do
    [ ! -d "$directory" ] || find "$directory" -type f
  done | sort
  ip -oneline link show | awk '{ print "interface", $2 }'
  iptables-save | grep -e '"demo"' -e '10\.88\.' || true
}
state_is() { diff "$1" <(state); }

address_of() { ip -n "$1" -4 -oneline address show dev eth0 | awk '{ sub("/.*", "", $4); print $4 }'; }

# Repeats a command until it succeeds, for at most five seconds.
in_time() {
  local end=$((SECONDS + 5))
  until "$@"; do
    [ "$SECONDS" -lt "$end" ] || return 1
    sleep 0.1
  done
}

# It outlives the namespaces of the demo.
report=${PODWIRE_DEMO_REPORT:-$scratch/cni-report}
rm -rf "$report"
bootstrap='ansible-playbook -i demo/inventory.yml podwire.cni.bootstrap -e cni_hosts=demo'
teardown='ansible-playbook -i demo/inventory.yml podwire.cni.teardown -e cni_hosts=demo'

chapter 'An empty host' \
  'Everything runs in mount, network and process namespaces that end with the demo. demo/group_vars/all.yml describes the' \
  'desired state of the host. The output of Ansible is reduced to the steps that the modules plan.'
state >"$scratch/before"
run 'ls /etc/cni /opt/cni' || true
run 'ip -brief link'
fact 'there are no networks, no plugins and no interfaces except lo' test "$(cat "$scratch/before")" = 'interface lo:'

chapter 'The plan' 'Check mode works on an empty host, and changes nothing.'
run "$bootstrap --check --diff"
fact 'one task would change the host' printed ' changed=1 unreachable=0 failed=0'
fact 'it needs no warnings about what it would install itself' test -z "$(grep -F '[missing_' "$scratch/output")"
fact 'none of them changed it' state_is "$scratch/before"
grep -E '^  [-+~] ' "$scratch/output" >"$scratch/planned"

chapter 'The run'
run "$bootstrap"
fact 'it took exactly the planned steps' diff "$scratch/planned" <(grep -E '^  [-+~] ' "$scratch/output")
run 'cat /etc/cni/net.d/20-spare.conflist'

chapter 'The containers' 'Two network namespaces, as a container runtime would create them.'
run 'ip -n web -brief -4 address'
run 'ip -n client -brief -4 address'
web=$(address_of web)
client=$(address_of client)
fact "web has $web, client has $client" test -n "$web" -a -n "$client" -a "$web" != "$client"
run 'ip netns exec client ping -q -c 2 -i 0.2 10.88.0.1'
fact 'client reaches its gateway' printed ' 0% packet loss'
run "ip netns exec client ping -q -c 2 -i 0.2 $web"
fact 'client reaches web' printed ' 0% packet loss'
ip netns exec web /usr/bin/python3 demo/web.py >/dev/null 2>&1 &
fact 'web serves HTTP on its port 80' in_time curl --silent --max-time 1 "http://$web/"
run 'curl --silent --show-error http://127.0.0.1:8080/'
fact 'port 8080 of the host leads to web' printed 'Hello from the container web'

chapter 'The second run' 'The same command again.'
run "$bootstrap"
fact 'nothing changed' printed ' changed=0 unreachable=0 failed=0'

chapter 'Drift' 'Someone deletes the address of web and edits a conflist.'
run "ip -n web address delete $web/24 dev eth0"
run 'sed -i s/10.89.0.0/10.99.0.0/ /etc/cni/net.d/20-spare.conflist'
run "ansible-playbook -i demo/inventory.yml podwire.cni.drift --diff -e cni_report_dir=$report"
fact 'both changes are reported' test "$(grep -cE '^  [-+~] ' "$scratch/output")" = 2
fact 'the report says so, too' printed 'The host needs attention: 1 with drift .*'
run "$bootstrap"
fact 'both are repaired' printed ' changed=1 unreachable=0 failed=0'
fact "web has $web again" test "$(address_of web)" = "$web"
run 'curl --silent --show-error http://127.0.0.1:8080/'
fact 'web is reachable again' printed 'Hello from the container web'
fact 'the conflist has its subnet again' grep -q 10.89.0.0/24 /etc/cni/net.d/20-spare.conflist

chapter 'Teardown' 'Removes what the collection installed, and nothing else.'
run "$teardown"
fact 'attachments, networks, plugins and namespaces are removed' printed ' changed=1 unreachable=0 failed=0'
run 'ip link delete demo0'
fact 'without the bridge, which its plugin leaves, the host is as it was before' state_is "$scratch/before"
run "$teardown"
fact 'there is nothing left to remove' printed ' changed=0 unreachable=0 failed=0'

# Whoever called sudo wants to read it.
[ -z "${SUDO_UID-}" ] || chown -R "$SUDO_UID:${SUDO_GID-$SUDO_UID}" "$report"
printf '\n%sAll checks passed.%s Look at the drift report of chapter 6 in a browser:\n\n  %s\n' "$bold" "$plain" "$report/report.html"
printf '\nTry the same on a host of yours. This changes nothing on it (docs/getting-started.md):\n\n  %s\n' \
  'ansible-playbook -i INVENTORY podwire.cni.bootstrap -e cni_hosts=HOST --check --diff'
