#!/usr/bin/env bash
# The real eb accepts the easyconfigs: it knows all their parameters, and has recipes for all dependencies.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/setup/support.sh
. "$here/../setup/support.sh"
export PATH=$source_tree/.deps/package-tools/bin:$PATH
command -v eb >/dev/null || { echo 'skipped: eb is not installed (share/setup/setup.sh --tests --only-deps downloads it)'; exit 77; }
[ -x /usr/share/lmod/lmod/libexec/lmod ] || { echo 'skipped: Lmod is not installed, which eb needs'; exit 77; }
export HOME=$scratch EASYBUILD_PREFIX=$scratch EASYBUILD_MODULES_TOOL=Lmod LMOD_CMD=/usr/share/lmod/lmod/libexec/lmod
folder=$source_tree/share/packages/easybuild
eb_reads() { run eb --allow-use-as-root-and-accept-consequences --allow-modules-tool-mismatch --local-var-naming-check=error --robot="$1" --dry-run "$1/Hortator-0.1.0-gompi-2024a.eb"; }
eb_reads "$folder"
expect_code 0
for needed in LibTorch/2.15.0 HDF5/1.14.5 OpenMPI/ Boost/1.85.0 yaml-cpp/0.8.0 nlohmann_json/3.11.3 'Hortator/0.1.0-gompi-2024a'; do expect_line "module: $needed"; done

# eb rejects unknown parameters
cp -r "$folder" "$scratch/broken"
echo "sanity_checks = 'none'" >>"$scratch/broken/Hortator-0.1.0-gompi-2024a.eb"
eb_reads "$scratch/broken"
[ "$code" != 0 ] || wrong 'an unknown parameter is accepted'
