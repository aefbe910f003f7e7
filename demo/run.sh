#!/usr/bin/env bash
# The demo; called inside tests/private.sh by `./run demo`. Every fact that it shows is tested: it fails when one is not so.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
scratch=$(mktemp -d /run/podwire-demo.XXXXXX)

export ANSIBLE_CALLBACK_PLUGINS=$PWD/demo/callback_plugins ANSIBLE_STDOUT_CALLBACK=steps ANSIBLE_PIPELINING=true
bold='' green='' red='' plain=''
if [ -t 1 ] && [ -z "${NO_COLOR-}" ]; then
  bold=$'\e[1m' green=$'\e[32m' red=$'\e[31m' plain=$'\e[0m'
  export ANSIBLE_FORCE_COLOR=true
else
  export ANSIBLE_NOCOLOR=true
fi

number=0

# Begins a chapter: chapter TITLE [LINE...]
chapter() {
  number=$((number + 1))
  printf '\n%s%d. %s%s\n' "$bold" "$number" "$1" "$plain"
  [ $# -eq 1 ] || printf '%s\n' "${@:2}"
}

# Shows a command and what it prints, which is in $scratch/output afterwards.
run() {
  printf '\n  %s$ %s%s\n' "$bold" "$*" "$plain"
  local status=0
  bash -o pipefail -c "$*" >"$scratch/output" 2>&1 || status=$?
  sed -E '/^[[:space:]]*$/d; s/^/  /' "$scratch/output"
  return "$status"
}

# Says whether a fact is so, and ends the demo if not: fact DESCRIPTION COMMAND [ARGUMENT...]
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

# Prints what is on the host of all that bootstrap touches, but for the collection's own memory and empty directories.
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

# Tries a command for five seconds.
in_time() {
  local end=$((SECONDS + 5))
  until "$@"; do
    [ "$SECONDS" -lt "$end" ] || return 1
    sleep 0.1
  done
}

bootstrap='ansible-playbook -i demo/inventory.yml podwire.cni.bootstrap -e cni_hosts=demo'
teardown='ansible-playbook -i demo/inventory.yml podwire.cni.teardown -e cni_hosts=demo'

chapter 'An empty host' \
  'All of this happens in mount, network and process namespaces that end with the demo. What the host is to be like' \
  'is in demo/group_vars/all.yml. Ansible is shown with the steps that the modules plan, and no more.'
state >"$scratch/before"
run 'ls /etc/cni /opt/cni' || true
run 'ip -brief link'
fact 'no configurations, no plugins, no interface but lo' test "$(cat "$scratch/before")" = 'interface lo:'

chapter 'The plan' 'Check mode works on a host where nothing is yet, and changes nothing.'
run "$bootstrap --check --diff"
fact 'four tasks would change the host' printed ' changed=4 failed=0'
fact 'none of them did' state_is "$scratch/before"
grep -E '^  [-+~] ' "$scratch/output" >"$scratch/planned"

chapter 'The run' "The warning is about Debian's portmap 1.1.1, whose CHECK can never pass for a container with a port mapping."
run "$bootstrap"
fact 'it took the steps that were planned, and no others' diff "$scratch/planned" <(grep -E '^  [-+~] ' "$scratch/output")
run 'cat /etc/cni/net.d/20-spare.conflist'

chapter 'The containers' 'Two network namespaces, as a container runtime would make them.'
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
fact "the host's port 8080 leads there" printed 'Hello from the container web'

chapter 'The second run' 'The same command again.'
run "$bootstrap"
fact 'nothing was changed' printed ' changed=0 failed=0'

chapter 'Drift' 'Somebody deletes the address of web and edits a configuration.'
run "ip -n web address delete $web/24 dev eth0"
run 'sed -i s/10.89.0.0/10.99.0.0/ /etc/cni/net.d/20-spare.conflist'
run "$bootstrap --check --diff"
fact 'both are found' printed ' changed=2 failed=0'
run "$bootstrap"
fact 'both are repaired' printed ' changed=2 failed=0'
fact "web is back at $web" test "$(address_of web)" = "$web"
run 'curl --silent --show-error http://127.0.0.1:8080/'
fact 'it can be reached again' printed 'Hello from the container web'
fact 'the configuration says what it said' grep -q 10.89.0.0/24 /etc/cni/net.d/20-spare.conflist

chapter 'Teardown' 'Takes away what the collection has put there, and nothing else.'
run "$teardown"
fact 'attachments, networks, plugins and namespaces are removed' printed ' changed=4 failed=0'
run 'ip link delete demo0'
fact 'but for that bridge, which its plugin leaves, the host is as it was' state_is "$scratch/before"
run "$teardown"
fact 'there is nothing left to remove' printed ' changed=0 failed=0'

printf '\n%sAll of this was so.%s Now read demo/group_vars/all.yml, and docs/getting-started.md.\n' "$bold" "$plain"
