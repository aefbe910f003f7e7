# shellcheck shell=bash
# The checks of `./run test`. All of them read a snapshot of the tree, so that what they write (and what is edited meanwhile) meets
# nobody. Sourced by ./run.

snapshots=$cache/snapshot
snapshot=$snapshots/ansible_collections/podwire/cni

# Prints the files that git tracks or would track, each ended by a NUL.
tracked_files() {
  local path
  git -C "$root" ls-files -z --cached --others --exclude-standard --deduplicate |
    while IFS= read -r -d '' path; do
      [ ! -e "$root/$path" ] || printf '%s\0' "$path"
    done
}

# Copies them. The copy is a git work tree itself, because ansible-test and reuse ask git for the files.
take_snapshot() {
  rm -rf "$snapshots"
  mkdir -p "$snapshot"
  tracked_files | tar --create --directory "$root" --null --files-from - | tar --extract --directory "$snapshot"
  git -C "$snapshot" init --quiet
  git -C "$snapshot" add --all
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
  start 'ansible-lint' run_ansible_lint
  finish
}

ruff_check() { cd "$snapshot" && ruff check --no-cache .; }
ruff_format() { cd "$snapshot" && ruff format --no-cache --check --diff .; }
run_yamllint() { cd "$snapshot" && yamllint --strict .; }
run_reuse() { cd "$snapshot" && reuse lint; }
run_changelog() { cd "$snapshot" && antsibull-changelog lint; }

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

sanity() { step 'ansible-test sanity' run_sanity; }

# ansible-test fetches a script that installs pip, from a host of its own, unless it finds one in its cache. This one installs the
# pip that comes with Python.
provide_pip() {
  local package version
  package=$(python -c 'import ansible_test; print(*ansible_test.__path__)')
  mkdir -p "$HOME/.ansible/test/cache"
  sed -nE "s/^ *pip='([0-9.]+)',$/\\1/p" "$package/_internal/python_requirements.py" | while read -r version; do
    say 'import ensurepip; ensurepip.bootstrap(upgrade=True, default_pip=True)' \
      >"$HOME/.ansible/test/cache/get_pip_${version//./_}.py"
  done
}

run_sanity() {
  cd "$snapshot"
  provide_pip
  local log=$step_directory/sanity
  ansible-test sanity --color no --requirements 2>&1 | tee "$log"
  passed "$(grep -c '^Running sanity test' "$log")"
}
