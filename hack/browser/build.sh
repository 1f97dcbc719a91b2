#!/usr/bin/env bash
# Installs what the browser tests need: Debian's chromium, and axe-core from npm into bin/browser,
# pinned in package-lock.json. If one of them cannot be installed it says so, and the tests skip
# themselves. With CHROMIUM_REQUIRED=1 it fails instead.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
out=$PWD/../../bin/browser

missing=()
command -v chromium >/dev/null || missing+=(chromium)
command -v npm >/dev/null || missing+=(npm)
why() {
  if [ ${#missing[@]} -gt 0 ]; then
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || { echo "missing packages: ${missing[*]}"; return; }
    echo "installing ${missing[*]}" >&2
    export DEBIAN_FRONTEND=noninteractive
    apt-get -qq update >&2 && apt-get -qq install --yes --no-install-recommends "${missing[@]}" >/dev/null ||
      { echo "apt-get cannot install ${missing[*]}"; return; }
  fi
  cmp -s package-lock.json "$out/package-lock.json" && [ -e "$out/node_modules/axe-core/axe.min.js" ] && return
  mkdir -p "$out"
  cp package.json "$out"
  cp package-lock.json "$out/lock"
  mv "$out/lock" "$out/package-lock.json"
  npm ci --prefix "$out" --ignore-scripts --no-audit --no-fund --loglevel=error >&2 || { rm -f "$out/package-lock.json"; echo "npm cannot install axe-core"; }
}
reason=$(why)
[ -n "$reason" ] || exit 0
echo "browser: SKIPPED: $reason"
[ -z "${CHROMIUM_REQUIRED:-}" ] || exit 1
[ -z "${NOT_SHOWN:-}" ] || echo "pages in a browser: $reason" >>"$NOT_SHOWN"
