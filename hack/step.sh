# Sourced by test.sh and ci.sh: runs the steps of a run, each with its name and its time, and lists
# what the run had to skip.

# A step or a test that skips something on this machine adds a line to this file. test.sh shares it
# when ci.sh runs it.
if [ -z "${NOT_SHOWN:-}" ]; then
  NOT_SHOWN=$(mktemp)
  export NOT_SHOWN
  trap 'rm -f "$NOT_SHOWN"' EXIT
fi

step() {
  local name=$1 started=$SECONDS
  shift
  printf '\n== %s\n' "$name"
  "$@"
  printf '== %s: %d s\n' "$name" $((SECONDS - started))
}

# parallel runs commands in parallel, if they mostly wait, and fails if one of them does.
parallel() {
  local command pid failed=0 running=()
  for command in "$@"; do
    $command &
    running+=($!)
  done
  for pid in "${running[@]}"; do
    wait "$pid" || failed=1
  done
  return "$failed"
}

finish() {
  if [ -s "$NOT_SHOWN" ]; then
    printf '\nPassed after %d s; NOT SHOWN:\n' "$SECONDS"
    sort -u "$NOT_SHOWN" | sed 's/^/  /'
  else
    printf '\nAll passed after %d s.\n' "$SECONDS"
  fi
}
