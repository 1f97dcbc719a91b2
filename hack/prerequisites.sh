#!/usr/bin/env bash
# Looks for what the tests need besides Go: a real dbus-daemon, and a C compiler for the race
# detector. With an argument it only looks for dbus-daemon. On Debian and similar systems it
# installs the packages if it runs as root. Otherwise it prints their names.
set -euo pipefail

missing=()
command -v dbus-daemon >/dev/null || missing+=(dbus-daemon)
[ "${1:-}" = dbus-daemon ] || command -v "${CC:-gcc}" >/dev/null || missing+=(gcc libc6-dev)
[ ${#missing[@]} -gt 0 ] || exit 0

if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
  echo "missing packages: ${missing[*]} (names on Debian 12; elsewhere dbus-daemon may be in dbus; the race detector needs the C compiler)" >&2
  exit 1
fi
echo "installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
apt-get -qq update
# Older releases have the daemon in package dbus.
apt-get -qq install --yes --no-install-recommends "${missing[@]}" >/dev/null ||
  apt-get -qq install --yes --no-install-recommends "${missing[@]/%dbus-daemon/dbus}" >/dev/null
