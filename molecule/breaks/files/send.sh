#!/usr/bin/env bash
# Sends to the machine what the test needs: the collection with the tests, Ansible, and plugins of the other release. Runs beside
# Ansible, because these are thousands of files.
#
#   send.sh SSH COLLECTION ANSIBLE PLUGINS
set -euo pipefail

ssh=$1 collection=$2 ansible=$3 plugins=$4

pack() { tar --create --exclude=__pycache__ --exclude=integration_config.yml --owner=0 --group=0 "$@"; }

{
  pack --transform='s,^,ansible_collections/podwire/cni/,' --directory="$collection" galaxy.yml meta plugins pyproject.toml \
    tests/private.sh tests/conftest.py tests/host tests/tools
  pack --transform='s,^,lib/,' --directory="$(dirname "$ansible")" ansible
  pack --transform='s,^[.],plugins,' --directory="$plugins" .
} | gzip -1 | $ssh 'sudo sh -c "mkdir -p /srv/breaks && cd /srv/breaks && gzip -d | tar --extract --ignore-zeros"'
