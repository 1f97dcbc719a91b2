#!/usr/bin/env bash
# Builds the documentation as a site into dist/site: make docs. It needs Node.js and npm. VitePress
# is pinned in package-lock.json. Broken links fail the build. SITE_BASE=/reboot-operator/ is the
# path under which the site will be served.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
command -v npm >/dev/null || { echo "missing: npm (packages nodejs and npm on Debian)" >&2; exit 1; }

tool=bin/site
mkdir -p "$tool" dist
if ! cmp -s hack/site/package-lock.json "$tool/installed"; then
  cp hack/site/package.json hack/site/package-lock.json "$tool"
  # npm ci fails, because npm leaves the binaries of other platforms out of the lock file and npm ci
  # expects them.
  npm install --prefix "$tool" --no-save --ignore-scripts --no-audit --no-fund --loglevel=error
  cp hack/site/package-lock.json "$tool/installed"
fi

# Pages are copied, and links to anything but pages lead to the repository.
pages=$tool/pages
repository=https://github.com/reboot-operator/reboot-operator/blob/main
rm -rf "$pages"
mkdir -p "$pages/.vitepress"
cp -r hack/site/config.mjs hack/site/theme "$pages/.vitepress/"
cp -r docs/. "$pages"
rm -f "$pages"/*.go
cp README.md "$pages/index.md"
# $2 leads from a page to docs, $3 from docs to the folder of the page.
relink() {
  sed -i -E "s#\]\($2([a-z/-]+\.ya?ml)\)#]($repository/docs/\1)#g; s#\]\(([a-z/-]+\.ya?ml)\)#]($repository/docs/$3\1)#g
    s#\]\($2\.\./README\.md#]($2index.md#g; s#\]\($2\.\./([^)]*)\)#]($repository/\1)#g" "$1"
}
sed -i -E "s#\]\(docs/([^)]*)\)#](@\1)#g; s#\]\(([^@:\#)]+)\)#]($repository/\1)#g; s#\]\(@#](#g" "$pages/index.md"
for page in "$pages"/*.md; do relink "$page" "" ""; done
for page in "$pages"/*/*.md; do folder=$(basename "$(dirname "$page")"); relink "$page" "../" "$folder/"; done

(cd "$tool" && CI=1 npx --no-install vitepress build pages --outDir "$OLDPWD/dist/site")
echo "dist/site: $(find dist/site -name '*.html' | wc -l) pages"
