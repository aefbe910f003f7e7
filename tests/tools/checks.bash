# shellcheck shell=bash
# The checks of `./run test`. They use a snapshot of the tree, so that files which they write, and edits in the meantime, do no harm.
# Sourced by ./run.

snapshots=
snapshot=

# Prints the files that git tracks or would track, each terminated by a NUL.
tracked_files() {
  local path
  git -C "$root" ls-files -z --cached --others --exclude-standard --deduplicate |
    while IFS= read -r -d '' path; do
      [ ! -e "$root/$path" ] || printf '%s\0' "$path"
    done
}

# Copies the tracked files. The copy is a git work tree itself, because ansible-test and reuse ask git for the files.
take_snapshot() {
  snapshots=$work/snapshot
  snapshot=$snapshots/ansible_collections/podwire/cni
  mkdir -p "$snapshot"
  tracked_files | tar --create --directory "$root" --null --files-from - | tar --extract --directory "$snapshot"
  git -C "$snapshot" init --quiet
  git -C "$snapshot" add --all
  compile_collection "$snapshot"
  export ANSIBLE_COLLECTIONS_PATH=$snapshots
}

# Prints the names of the modules, without .py.
modules() { find "$snapshot/plugins/modules" -name '*.py' ! -name __init__.py -printf '%f\n' | sed 's/\.py$//' | sort; }

# --- lint

lint() {
  start 'ruff check' ruff_check
  start 'ruff format' ruff_format
  start 'mypy' run_mypy
  start 'yamllint' run_yamllint
  start 'shellcheck' run_shellcheck
  start 'licences (reuse)' run_reuse
  start 'changelog fragments' run_changelog
  start 'spelling (codespell)' run_codespell
  start 'words of the style guide' run_prose
  start 'ansible-lint' run_ansible_lint
  start 'configuration of the scenarios' read_scenarios
}

ruff_check() { cd "$snapshot" && ruff check --no-cache .; }
ruff_format() { cd "$snapshot" && ruff format --no-cache --check --diff .; }
run_yamllint() { cd "$snapshot" && yamllint --strict .; }
run_reuse() { cd "$snapshot" && reuse lint; }
run_changelog() { cd "$snapshot" && antsibull-changelog lint; }
run_codespell() { cd "$snapshot" && codespell; }
run_prose() { python "$snapshot/tests/tools/prose.py"; }

run_mypy() {
  cd "$snapshots"
  mypy --config-file "$snapshot/pyproject.toml" --cache-dir "$cache/mypy" ansible_collections/podwire/cni/plugins
}

run_shellcheck() {
  cd "$snapshot"
  grep --recursive --null --files-with-matches --exclude-dir .git -E '^#!.*\b(ba|da)?sh$' . |
    xargs -0 shellcheck --external-sources --check-sourced
}

run_ansible_lint() {
  cd "$snapshot"
  ansible-lint --nocolor --offline --profile production
}

# --- sanity

# Runs the sanity tests with the ansible-core of the environment, and with the newest one if another Python of this machine can run it.
sanity() {
  local newer
  start 'ansible-test sanity' run_sanity
  newer=$(newer_python)
  [ -z "$newer" ] || start 'ansible-test sanity, newest ansible-core' run_newest_sanity "$newer"
}

run_newest_sanity() {
  local version
  version=$(ansible-test --version)
  PYTHON=$1 use_environment newest "$root/tests/requirements-run.txt"
  if [ "$(ansible-test --version)" = "$version" ]; then
    note "$version on $(python -V), too"
    return
  fi
  run_sanity
}

# ansible-test downloads a script that installs pip, from its own host, unless it finds one in its cache. This function puts a script
# there that installs the pip that comes with Python.
provide_pip() {
  local package version
  package=$(python -c 'import ansible_test; print(*ansible_test.__path__)')
  mkdir -p "$HOME/.ansible/test/cache"
  sed -nE "s/^ *pip='([0-9.]+)',$/\\1/p" "$package/_internal/python_requirements.py" | while read -r version; do
    say 'import ensurepip; ensurepip.bootstrap(upgrade=True, default_pip=True)' \
      >"$HOME/.ansible/test/cache/get_pip_${version//./_}.py"
  done
}

# Runs one ansible-test at a time, because all of them create their environments in the same place.
ansible_test() { flock "$results/ansible-test" ansible-test "$@"; }

# Removes the messages of pip about its installations.
without_pip() {
  grep -vE '^(Looking in|Processing|Collecting| +Downloading| +━|Installing collected|Successfully|Using cached|WARNING: Location)'
}

run_sanity() {
  cd "$snapshot"
  provide_pip
  use_pythons
  local log=$step_directory/sanity line status=0 failures
  ansible_test sanity --color no --requirements 2>&1 | tee "$log" | without_pip || status=$?
  sed -nE 's/^WARNING: (Skipping sanity test .*)/\1/p' "$log" | sort -u | while read -r line; do skipped "$line"; done
  sed -nE 's/^Running sanity test "([^"]*)".*/\1/p' "$log" | sort -u >"$step_directory/names"
  failures=$(sed -nE 's/^FATAL: The ([0-9]+) sanity test.* failed.*/\1/p' "$log")
  passed "$(($(wc -l <"$step_directory/names") - ${failures:-0}))"
  [ -z "$failures" ] || failed "$failures"
  note "ansible-core $(ansible-test --version | sed 's/.* //'): $(paste -sd ' ' "$step_directory/names")"
  return "$status"
}

# --- units

units() {
  local version
  start "unit tests of a managed host, $(python -V)" run_units python tests/unit/plugins/module_utils
  for version in "${host_pythons[@]}"; do
    python -c "import sys; sys.exit('%d.%d' % sys.version_info[:2] == '$version')" &&
      start "unit tests of a managed host, Python $version" run_host_units "$version"
  done
  start 'unit tests of modules and controller' run_ansible_test_units
}

# Runs as root, because _host writes files for root. Runs in private namespaces, so that the machine does not change.
run_units() {
  local python=$1
  shift
  cd "$snapshot"
  PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$snapshots count_tests "$root/tests/private.sh" \
    "$python" -m pytest -q --color=no "$@"
}

# Tests the code for managed hosts on every Python that they may have, with only the requirements of the tests installed.
run_host_units() {
  local version=$1 python environment
  if ! python=$(find_python "$version"); then
    skipped "no python$version on this machine"
    return
  fi
  # The name of the directory depends on the requirements, so that another list creates another environment.
  environment=$cache/python$version-$(cksum <"$root/tests/requirements-host.txt" | tr -d ' ')
  lock
  if [ ! -e "$environment/.complete" ]; then
    rm -rf "$environment"
    if ! "$python" -m venv "$environment"; then
      skipped "$python cannot create a virtual environment"
      return
    fi
    "$environment/bin/python" -m pip install -qq --disable-pip-version-check --requirement "$root/tests/requirements-host.txt"
    touch "$environment/.complete"
  fi
  unlock
  # The tests on bad input take most of the time, and the main Python runs all of their examples.
  PODWIRE_EXAMPLES=8 run_units "$environment/bin/python" tests/unit/plugins/module_utils/libcni tests/unit/plugins/module_utils/_host
}

# Runs all other unit tests, with ansible-test.
run_ansible_test_units() {
  local version
  version=$(python -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  cd "$snapshot"
  # Uses a copy that root owns and that vanishes with the namespaces, because ansible-test writes to the tree. Uses one worker, because
  # the tests share the host of these namespaces.
  # shellcheck disable=SC2016 # the inner shell expands it
  count_tests "$root/tests/private.sh" bash -c '
    mkdir --parents ~/ansible_collections/podwire && cp --recursive . ~/ansible_collections/podwire/cni &&
      cd ~/ansible_collections/podwire/cni && exec ansible-test units "$@"' \
    bash --color no --python "$version" --num-workers 1 --exclude tests/unit/plugins/module_utils/
}

# --- integration

# Prints the names of the integration targets, without those that only serve others, whose names start with setup_.
targets() {
  find "$snapshot/tests/integration/targets" -mindepth 1 -maxdepth 1 -type d ! -name 'setup_*' -printf '%f\n' | sort
}

integration() {
  local target chosen=("$@")
  [ ${#chosen[@]} -gt 0 ] || mapfile -t chosen < <(targets)
  for target in "${chosen[@]}"; do
    [ -d "$snapshot/tests/integration/targets/$target" ] || die "no such integration target: $target; there are: $(targets | paste -sd ' ')"
  done
  [ ${#chosen[@]} -gt 0 ] || start 'integration: there are no targets' false
  fetch_plugins bookworm forky
  fetch_runtimes
  fetch_containerds trixie forky
  write_integration_config "$snapshot" /run/home/plugins/bookworm/usr/lib/cni /run/home/plugins/forky/usr/lib/cni
  for target in "${chosen[@]}"; do
    start "integration: $target" run_target "$target"
  done
}

# Writes the variables of the targets to the file that ansible-test reads: write_integration_config COLLECTION OLD_PLUGINS NEW_PLUGINS
write_integration_config() {
  cat >"$1/tests/integration/integration_config.yml" <<END
---
cni_test_plugins_old: $2
cni_test_plugins_new: $3
cni_test_runtimes: $(runtimes)
cni_test_containerds: [$(containerd_of trixie), $(containerd_of forky)]
cni_test_dir: "{{ output_dir }}"
END
}

# Runs a target as ansible-test does. The managed host is a namespace of this machine, with the distribution's Python. The plugins are
# copied, because modules run only files that root owns, and a user may own the cache.
run_target() {
  local target=$1 tests=$snapshot/tests/integration
  cat >"$step_directory/inventory" <<END
[testgroup]
testhost ansible_connection=local ansible_python_interpreter=/usr/bin/python3
END
  cat >"$step_directory/play.yml" <<END
- hosts: testhost
  gather_facts: true
  vars_files: [$tests/integration_config.yml]
  vars: {output_dir: /run/home/output}
  pre_tasks:
    - ansible.builtin.file: {path: "{{ output_dir }}", state: directory, mode: "0700"}
    - ansible.builtin.command: cp --recursive $cache/plugins /run/home/plugins
  roles: [$target]
END
  : >"$step_directory/ansible.cfg"
  cd "$tests"
  export ANSIBLE_CONFIG=$step_directory/ansible.cfg ANSIBLE_INVENTORY=$step_directory/inventory ANSIBLE_ROLES_PATH=$tests/targets ANSIBLE_NOCOLOR=1
  export PYTHONDONTWRITEBYTECODE=1
  "$root/tests/private.sh" ansible-playbook "$step_directory/play.yml" |
    tee "$step_directory/playbook"
  note "$(sed -nE 's/^testhost +: //p' "$step_directory/playbook" | tr -s ' ')"
}

# --- real runtimes

# Runs the short form of `./run runtimes`.
real_runtimes() {
  fetch_plugins bookworm
  fetch_containerds bookworm
  start 'containerd loads, predicts, runs a pod' run_real_runtimes
}

run_real_runtimes() {
  export PYTHONDONTWRITEBYTECODE=1
  ask_containerds "$snapshot" bookworm --short
}

# --- documentation

docs() {
  start 'antsibull-docs' run_antsibull_docs
  start 'ansible-doc of every module' run_ansible_doc
}

run_antsibull_docs() {
  cd "$snapshot"
  antsibull-docs lint-collection-docs --plugin-docs --validate-collection-refs self .
}

run_ansible_doc() {
  local module
  for module in $(modules); do
    ansible-doc --type module --json "podwire.cni.$module" | python -c '
import json, sys
[entry] = json.load(sys.stdin).values()
sys.exit(["missing: " + part for part in ("doc", "examples", "return") if not entry[part]] or 0)'
    passed 1
  done
  note "$(modules | paste -sd ' ')"
}

# --- build

build() {
  start 'build, install, ansible-doc of the installed' build_and_install
  start 'galaxy-importer' run_importer
}

build_and_install() {
  local work=$step_directory/build
  cd "$snapshot"
  ansible-galaxy collection build --output-path "$work" .
  export ANSIBLE_COLLECTIONS_PATH=$work/installed
  ansible-galaxy collection install --offline --collections-path "$work/installed" "$work"/podwire-cni-*.tar.gz
  ansible-doc --list --type module podwire.cni --json >"$work/modules"
  test "$(python -c 'import json, sys; print(*sorted(json.load(open(sys.argv[1]))), sep="\n")' "$work/modules")" = \
    "$(modules | sed 's/^/podwire.cni./')"
}

run_importer() {
  local work=$step_directory/build
  ansible-galaxy collection build --output-path "$work" "$snapshot"
  cd "$work"
  python -m galaxy_importer.main podwire-cni-*.tar.gz 2>&1 | tee log
  ! grep -E '^(WARNING|ERROR)' log
}
