# shellcheck shell=bash
# Runs steps, several at once. Prints a line for each step, the whole log of a failed step, and a summary. Sourced by ./run.

# The files of this run: its results, and its snapshot of the tree. Several runs may be active at the same time.
work=
results=
steps=0

begin_steps() {
  work=$(mktemp -d "$cache/run.XXXXXX")
  results=$work/results
  mkdir "$results"
  trap end_steps EXIT
}

# Kills the steps of an interrupted run, each of which is a process group, and removes its files.
end_steps() {
  local step
  for step in $(jobs -rp); do
    kill -- "-$step" 2>/dev/null || true
  done
  rm -rf "$work"
}

# Starts a step in the background, as soon as a processor is free: start NAME COMMAND [ARGUMENT...]
# COMMAND may call passed, failed, skipped and note. Without the first three, its exit status counts as one check.
start() {
  while [ "$(jobs -rp | wc -l)" -ge "$(nproc)" ]; do
    wait -n || true
  done
  steps=$((steps + 1))
  set -m
  run_step "$steps" "$@" &
  set +m
}

run_step() {
  local number=$1 name=$2 status=0 begun=$SECONDS
  shift 2
  step_directory=$results/step.$(printf '%03d' "$number")
  mkdir "$step_directory"
  printf '%s\n' "$name" >"$step_directory/name"
  set +e
  (
    # In a condition, bash ignores set -e in everything that it calls, and every step would pass.
    ignored=$(
      set -e
      false
      echo yes
    )
    [ -z "$ignored" ] || die "the step '$name' was started in a condition (if, &&, ||)"
    set -euo pipefail
    "$@"
  ) >"$step_directory/log" 2>&1 </dev/null
  status=$?
  set -e
  [ "$status" -eq 0 ] && [ ! -e "$step_directory/passed" ] && [ ! -e "$step_directory/skipped" ] && passed 1
  [ "$status" -ne 0 ] && [ ! -e "$step_directory/failed" ] && failed 1
  report_step "$name" "$status" $((SECONDS - begun)) >"$step_directory/report"
  # Print the report in one piece, even if other steps end at the same time.
  flock "$results" cat "$step_directory/report"
}

report_step() {
  local name=$1 status=$2 seconds=$3 word=ok
  [ ! -e "$step_directory/skipped" ] || [ -e "$step_directory/passed" ] || word=skip
  [ "$status" -eq 0 ] || word=FAILED
  printf '%-6s %-44s %4d s  %s\n' "$word" "$name" "$seconds" "$(paste -sd '~' "$step_directory/note" 2>/dev/null | sed 's/~/; /g')"
  [ "$status" -eq 0 ] || sed 's/^/    | /' "$step_directory/log"
}

# For use in a step.
passed() { printf '%s\n' "$1" >>"$step_directory/passed"; }
failed() { printf '%s\n' "$1" >>"$step_directory/failed"; }
skipped() { printf '%s\n' "$*" >>"$step_directory/skipped"; }
note() { printf '%s\n' "$*" >>"$step_directory/note"; }

# Runs pytest and counts its tests, even if some of them fail: count_tests COMMAND [ARGUMENT...]
count_tests() {
  local log=$step_directory/pytest status=0 result
  "$@" | tee "$log" || status=$?
  # ansible-test runs pytest several times.
  while read -r result; do
    count passed passed "$result"
    count failed '(failed|errors?)' "$result"
    note "$result"
  done < <(sed -nE 's/^(=+ )?([0-9]+ (passed|failed|errors?)\b.* in [0-9.]+s( \([0-9:]+\))?)( =+)?$/\2/p' "$log")
  return "$status"
}

# Calls FUNCTION with each number before WORD in TEXT: count FUNCTION WORD TEXT
count() {
  local number
  grep -oE "[0-9]+ $2\\b" <<<"$3" | while read -r number _; do "$1" "$number"; done || true
}

# Prints all lines that steps wrote to files of this name.
lines_of() { find "$results" -mindepth 2 -maxdepth 2 -name "$1" -exec cat {} +; }

total() { lines_of "$1" | awk '{ sum += $1 } END { print sum + 0 }'; }

# Waits for the steps and prints the summary. Fails if a step failed.
summarize() {
  local directory failures skips
  wait
  failures=$(total failed)
  skips=$(lines_of skipped | wc -l)
  say
  for directory in "$results"/step.*; do
    [ ! -e "$directory/failed" ] || say "failed: $(cat "$directory/name")"
    [ ! -e "$directory/skipped" ] || sed "s/^/skipped: $(cat "$directory/name"): /" "$directory/skipped"
  done
  say "$(total passed) passed, $failures failed, $skips skipped"
  [ "$failures" -eq 0 ]
}
