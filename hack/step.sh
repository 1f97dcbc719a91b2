# Sourced by test.sh and ci.sh: the steps of a run, each with its name and its time, and what the run could not show.

# A step or a test that has to skip something on this machine adds a line to this file. test.sh within ci.sh shares it.
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

# beside runs commands at once, for such as mostly wait, and fails where one of them does.
beside() {
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
