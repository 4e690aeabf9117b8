#!/usr/bin/env bash
# Builds the site into FOLDER, without a warning and without a dead link: site.sh FOLDER. Exit code 77 if MkDocs or Doxygen is not installed.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
"$here/../../share/doc/site.sh" --no-install "$1"
for group in group__training group__programs group__data group__checkpoints group__observing group__parallel group__bigmodel group__interop; do
  grep -q "$group.html" "$1/api/index.html" || { echo "the front page of the API reference has no link to $group"; exit 1; }
done
grep -q classhortator_1_1Accelerator.html "$1/api/group__training.html" || { echo 'the Accelerator is not in its group'; exit 1; }
