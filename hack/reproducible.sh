#!/usr/bin/env bash
# Builds each program twice and compares the results: first here with the Makefile's commands, and
# then elsewhere. The programs of the images are also built with the Dockerfile's commands, from
# exactly the files that the Dockerfile copies. The second build uses another folder, another module
# cache and an empty build cache, and runs later.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

version=reproducible
work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
mkdir -p "$work/first" "$work/second" "$work/another/place/whole" "$work/another/place/image"

[ -z "$(git ls-files --deleted)" ] || { echo "files are missing here: git status" >&2; exit 1; }
git ls-files --cached --others --exclude-standard | tar -cf - -T - | tar -xf - -C "$work/another/place/whole"
echo "building with the Makefile's commands"
make --no-print-directory build VERSION=$version BIN="$work/first"

here=$(go env GOMODCACHE) # the source of modules, so that no network is needed
export GOCACHE=$work/cache GOMODCACHE=$work/modules GOFLAGS=-modcacherw GOPROXY=file://$here/cache/download
echo "building elsewhere, from nothing"
make --no-print-directory -C "$work/another/place/whole" build VERSION=$version BIN="$work/second"

echo "building with the Dockerfile's commands"
dockerfile=$(sed -e ':a' -e '/\\$/N; s/\\\n//; ta' Dockerfile)
cd "$work/another/place/whole" # as it was at the start, even if files here have changed since
sources=$(sed -n 's/^COPY \([^-].*\)/\1/p' <<<"$dockerfile")
while read -r -a line; do
  to=$work/another/place/image/${line[-1]#./}
  mkdir -p "$(dirname "$to")"
  cp -r "${line[@]:0:${#line[@]}-1}" "$to"
done <<<"$sources"
commands=$(sed -n 's/^RUN //p' <<<"$dockerfile" | sed -e 's/--mount=[^ ]*//g' -e "s|-o /|-o $work/image-|")
env=$(sed -n 's/^ENV //p' <<<"$dockerfile")
(cd "$work/another/place/image" && eval "export $env TARGETOS=$(go env GOOS) TARGETARCH=$(go env GOARCH) VERSION=$version" && eval "$commands")

failed=0
for program in manager agent kubectl-reboot; do
  sum=$(sha256sum <"$work/first/$program")
  others=("$work/second/$program")
  [ $program = kubectl-reboot ] || others+=("$work/image-$program") # no image contains it
  for other in "${others[@]}"; do
    [ -e "$other" ] && [ "$sum" = "$(sha256sum <"$other")" ] || { echo "$program: ${other#"$work/"} has other bits" >&2; failed=1; }
  done
  printf '%-16s %s %s\n' "$program" "${sum%% *}" "$(stat -c %s "$work/first/$program") bytes"
done
exit $failed
