# shellcheck shell=bash
# Runs the molecule scenarios (molecule/) on virtual machines. Sourced by ./run.

packages_for_machines=(
  debian-archive-keyring e2fsprogs mmdebstrap openssh-client python3 python3-venv qemu-system-x86 qemu-utils uidmap util-linux
)

# Every run has its own directory, so that runs at the same time do not interfere. A run that has died does not hold its lock.
molecule_runs=$cache/molecule
molecule_run=

vm() { XDG_CACHE_HOME=$(dirname "$cache") "$(choose_python)" "$root/playbooks/vm/vm.py" "$@"; }

prepare_molecule() {
  install_packages "${packages_for_machines[@]}"
  use_environment molecule "$root/tests/requirements-molecule.txt"
  XDG_CACHE_HOME=$(dirname "$cache")
  export XDG_CACHE_HOME ANSIBLE_HOME=$cache/home/.ansible
  use_private_home
  link_collection
  # Pods and containers run busybox, because the machines cannot reach a registry.
  fetch_runtimes
  PODWIRE_BUSYBOX=$(runtimes)/bin/busybox
  # Fetch the release of the plugins that the package of a machine does not have.
  fetch_plugins bookworm forky
  PODWIRE_PLUGINS=$cache/plugins
  # Scenarios write reports here, for inspection.
  PODWIRE_REPORTS=$cache/reports
  export PODWIRE_BUSYBOX PODWIRE_PLUGINS PODWIRE_REPORTS
  say "$(ansible --version | sed -n 1p), $(NO_COLOR=1 molecule --version | sed -n 1p)"
}

scenarios() { find "$root/molecule" -mindepth 2 -maxdepth 2 -name molecule.yml -printf '%h\n' | sed 's|.*/||' | sort; }

# Checks that molecule accepts the configuration of each scenario, by listing them.
read_scenarios() {
  use_environment molecule "$root/tests/requirements-molecule.txt"
  cd "$snapshot"
  MOLECULE_EPHEMERAL_DIRECTORY=$step_directory/molecule PYTHONDONTWRITEBYTECODE=1 molecule -c molecule/config.yml list
}

# Destroys the machines of runs that ended without doing so.
sweep_molecule_runs() {
  local run
  for run in "$molecule_runs"/run.*; do
    [ -d "$run" ] && flock --nonblock "$run/lock" true && remove_molecule_run "$run"
  done
  return 0
}

remove_molecule_run() {
  vm destroy "$1" >/dev/null
  rm -rf "$1"
}

begin_molecule_run() {
  mkdir -p "$molecule_runs"
  sweep_molecule_runs
  molecule_run=$(mktemp -d "$molecule_runs/run.XXXXXX")
  exec {molecule_lock}>"$molecule_run/lock"
  flock "$molecule_lock"
  trap 'remove_molecule_run "$molecule_run"' EXIT
}

destroy_machines() {
  say "Destroying the virtual machines of all runs"
  vm destroy "$molecule_runs" >/dev/null
  rm -rf "$molecule_runs"
}

# Stops every virtual machine that has its files in the cache.
end_machines() { [ ! -d "$cache/vm" ] || vm destroy "$cache" >/dev/null; }

# Prints the images that scenarios need, in the form that vm.py expects.
images_of() {
  python - "$root/molecule" "$@" <<'END'
import json, pathlib, sys
import yaml

molecule, scenarios = pathlib.Path(sys.argv[1]), sys.argv[2:]
shared = yaml.safe_load((molecule / "config.yml").read_text())["platforms"]
images = []
for scenario in scenarios:
    for machine in (yaml.safe_load((molecule / scenario / "molecule.yml").read_text()) or {}).get("platforms", shared):
        image = machine.get("vm_image", machine.get("image", machine["name"]))
        images.append(image if isinstance(image, str) else json.dumps(image))
print("\n".join(dict.fromkeys(images)))
END
}

run_scenario() {
  local scenario=$1
  mkdir "$molecule_run/$scenario"
  cd "$root" || return
  MOLECULE_EPHEMERAL_DIRECTORY=$molecule_run/$scenario molecule -c molecule/config.yml test --no-command-borders --scenario-name "$scenario"
}

run_molecule() {
  local scenario status begun report=() failures=0
  case ${1-} in
    destroy)
      destroy_machines
      return
      ;;
    --all)
      mapfile -t < <(scenarios)
      set -- "${MAPFILE[@]}"
      ;;
    '') die "no scenario given; there are: $(scenarios | paste -sd ' '); --all runs all of them" ;;
  esac
  for scenario in "$@"; do
    [ -f "$root/molecule/$scenario/molecule.yml" ] || die "no such scenario: $scenario (there are: $(scenarios | paste -sd ' '))"
  done
  prepare_molecule
  begin_molecule_run
  mapfile -t < <(images_of "$@")
  vm build "${MAPFILE[@]}" >/dev/null
  for scenario in "$@"; do
    begun=$SECONDS status=0
    say "Scenario $scenario"
    (run_scenario "$scenario") </dev/null || status=$?
    if [ "$status" -eq 0 ]; then
      report+=("ok     $scenario  $((SECONDS - begun)) s")
    else
      report+=("FAILED $scenario  $((SECONDS - begun)) s")
      failures=$((failures + 1))
    fi
  done
  say
  printf '%s\n' "${report[@]}"
  say "$(($# - failures)) passed, $failures failed"
  [ "$failures" -eq 0 ]
}
