#!/usr/bin/env bash
# Runs on the machine, as root: breaks everything of the chains whose tests pytest selects by EXPRESSION, and runs other tests
# of what some kernels lack.
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
  tests/host/footprint/test_breaks.py tests/host/cni_attach/test_lower.py tests/host/experiments/test_{findings,sound}.py \
  -k "$1 or test_lower or another_in_the_copy or excludes or all_kinds or layer_3"
