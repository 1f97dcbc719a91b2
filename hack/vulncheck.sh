#!/usr/bin/env bash
# Looks for known vulnerabilities in code that the programs reach (govulncheck). VULNDB is another
# database than vuln.go.dev: a mirror, or file:///… with a copy, such as data/osv in a checkout of
# github.com/golang/vulndb.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

db=${VULNDB:-https://vuln.go.dev}
case $db in
file://*) [ -d "${db#file://}" ] || unreachable=yes ;;
*) curl --silent --show-error --fail --head --max-time 20 --output /dev/null "$db/index/modules.json.gz" || unreachable=yes ;;
esac
if [ "${unreachable:-}" ]; then
  echo "NOT CHECKED: the database of vulnerabilities $db cannot be reached. VULNDB=file:///… names a copy of it." >&2
  exit 3
fi
go tool -modfile=hack/scanners/go.mod govulncheck -db "$db" ./...
