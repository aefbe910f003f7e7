# shellcheck shell=bash
# Tests the report of the playbook drift in a real browser. Sourced by ./run.

# The browser is Debian's. The driver is in tests/requirements-browser.txt; it includes no browser, but a node that needs libatomic1.
packages_to_browse=(chromium-headless-shell fonts-dejavu-core libatomic1)

browser() { start 'the report in Chromium' run_browser; }

# Prints the path of a Chromium; fails if there is none.
find_chromium() {
  type -P chromium-headless-shell || type -P chromium || type -P chromium-browser
}

run_browser() {
  if find_chromium >/dev/null; then packages_to_browse=(libatomic1); fi
  (install_packages "${packages_to_browse[@]}") || true
  if ! CHROMIUM=$(find_chromium); then
    skipped "no Chromium on this machine, and ${packages_to_browse[*]} cannot be installed"
    return
  fi
  export CHROMIUM
  use_environment browser "$root/tests/requirements-browser.txt"
  cd "$snapshot"
  note "$("$CHROMIUM" --version 2>/dev/null || true)"
  PYTHONPATH=$snapshots:$snapshot/tests/browser count_tests \
    python -m pytest -q --color=no --basetemp="$step_directory/files" tests/browser
}

# Runs a program that needs a browser: with_browser PROGRAM [ARGUMENT...]
with_browser() {
  install_packages "${packages_to_run[@]}" "${packages_to_browse[@]}"
  use_environment browser "$root/tests/requirements-browser.txt"
  link_collection
  CHROMIUM=$(find_chromium) PYTHONPATH=$linked python "$@"
}

take_pictures() { with_browser "$root/tests/browser/pictures.py" "$root/docs/images"; }

bench_report() { with_browser "$root/tests/browser/durations.py"; }
