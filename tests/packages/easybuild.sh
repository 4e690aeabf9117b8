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
eb_reads() { # FOLDER EASYCONFIG
  run eb --allow-use-as-root-and-accept-consequences --allow-modules-tool-mismatch --local-var-naming-check=error --robot="$1" --dry-run "$1/$2"
}
eb_reads "$folder" Hortator-0.2.0-gompi-2025b.eb
expect_code 0
for needed in LibTorch/2.15.0 HDF5/1.14.6 OpenMPI/ Boost/1.88.0 yaml-cpp/0.8.0 nlohmann_json/3.12.0 'Hortator/0.2.0-gompi-2025b'; do expect_line "module: $needed"; done
expect_no_line 'module: CUDA/'
eb_reads "$folder" Hortator-0.2.0-gompi-2025b-CUDA-13.2.0.eb
expect_code 0
for needed in CUDA/13.2.0 LibTorch/2.15.0-CUDA-13.2.0 HDF5/1.14.6 'Hortator/0.2.0-gompi-2025b-CUDA-13.2.0'; do expect_line "module: $needed"; done

# LibTorch's recipes have exactly the wheels that the set-up pins.
pinned() { awk -v sets="$1" '$1 ~ sets { print $5, $4 }' "$source_tree/share/setup/libtorch.txt" | LC_ALL=C sort; }
in_recipe() { tr -d "\n' " <"$folder/$1" | grep -oE '\([a-z_0-9]+-[^,()]*\.whl,[0-9a-f]{64}\)' | tr -d '()' | tr , ' ' | LC_ALL=C sort; }
diff <(pinned '^cpu$') <(in_recipe LibTorch-2.15.0.eb) || wrong 'LibTorch-2.15.0.eb has other wheels than the set-up'
diff <(pinned '^(cpu|gpu|gpu_run)$') <(in_recipe LibTorch-2.15.0-CUDA-13.2.0.eb) || wrong 'the recipe for CUDA has other wheels than the set-up'

# eb rejects unknown parameters
cp -r "$folder" "$scratch/broken"
echo "sanity_checks = 'none'" >>"$scratch/broken/Hortator-0.2.0-gompi-2025b.eb"
eb_reads "$scratch/broken" Hortator-0.2.0-gompi-2025b.eb
[ "$code" != 0 ] || wrong 'an unknown parameter is accepted'
