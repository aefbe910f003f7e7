#!/usr/bin/env bash
# Runs on the machine, as root: breaks everything of the chains whose tests pytest selects by EXPRESSION.
#
#   break.sh EXPRESSION
set -euo pipefail

cd /srv/breaks/ansible_collections/podwire/cni
mkdir -p tests/integration
cat >tests/integration/integration_config.yml <<END
---
cni_test_plugins_old: /usr/lib/cni
cni_test_plugins_new: /srv/breaks/plugins
END
export PYTHONPATH=/srv/breaks:/srv/breaks/lib PODWIRE_BREAKS=all
exec tests/private.sh python3 -m pytest --basetemp=/run/home/pytest -W ignore::pytest.PytestUnknownMarkWarning -v \
  tests/host/footprint/test_breaks.py -k "$1"
