#!/usr/bin/env bash
# Builds the guides and the API reference as one static site: share/doc/site.sh [--no-install] [FOLDER]
# FOLDER is build/site by default. Open its index.html, or serve it, so that the search works: python3 -m http.server -d build/site. MkDocs comes
# from PATH, or from PyPI into .deps/package-tools.
# Exit code 77 if MkDocs or Doxygen is missing and --no-install is given.
set -euo pipefail
# shellcheck source=share/setup/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/../setup/common.sh"
# shellcheck source=share/setup/packages.sh
. "$root/share/setup/packages.sh"
install=1
if [ "${1:-}" = --no-install ]; then install=0; shift; fi
site=$(realpath -m "${1:-$root/build/site}")

PATH=$package_tools/bin:$PATH
command -v mkdocs >/dev/null || [ "$install" = 0 ] || fetch_package_tools
command -v mkdocs >/dev/null || { echo 'skipped: mkdocs is not installed; share/doc/site.sh installs it into .deps/package-tools'; exit 77; }
command -v doxygen >/dev/null || { echo 'skipped: doxygen is not installed'; exit 77; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$root/share/doc/site/mkdocs.yml" "$work"
mkdir "$work/pages"

# A page as the site needs it: marks of code blocks become titles, links between folders become links between pages.
# shellcheck disable=SC2016  # the backticks are Markdown's
page() {
  sed -E -e 's/^```([a-z]+) file=(.*)$/```\1 title="\2"/' -e 's/^```(sh) .*$/```\1/' \
    -e 's#\]\((\.\./)?(share/doc|\.github)/#](#g' -e 's#\b(see|See) INSTALL\b#\1 [INSTALL](install.md)#g' "$1"
}
for file in "$root"/share/doc/*.md "$root"/.github/*.md; do
  case $file in */PULL_REQUEST_TEMPLATE.md) continue ;; esac
  page "$file" >"$work/pages/$(basename "$file")"
done
cp "$root/INSTALL" "$work/pages/install.md"
cp "$root"/share/doc/*.svg "$root/share/doc/site/style.css" "$work/pages"

cd "$root"
{
  cat share/doc/Doxyfile
  echo "OUTPUT_DIRECTORY = $work"
  echo "HTML_OUTPUT = pages/api"
} | doxygen -
# Doxygen 1.9 links each concept of a group to a page of its own, which it does not write
cd "$work/pages/api"
grep -ohE 'concept[A-Za-z0-9_]+\.html' ./*.html | sort -u | while read -r concept; do
  [ -e "$concept" ] || sed -i "s/$concept/group__training.html/g" ./*.html
done
cd "$work"
NO_MKDOCS_2_WARNING=1 mkdocs build --quiet --strict --site-dir "$site"
python3 "$root/share/doc/site/check_links.py" "$site"
echo "built: $site/index.html"
