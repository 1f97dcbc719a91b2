# Sourced by test.sh and ci.sh: the steps of a run, each with its name and its time.

step() {
  local name=$1 started=$SECONDS
  shift
  printf '\n== %s\n' "$name"
  "$@"
  printf '== %s: %d s\n' "$name" $((SECONDS - started))
}

finish() { printf '\nAll passed after %d s.\n' "$SECONDS"; }
