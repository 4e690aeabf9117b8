#!/usr/bin/env bash
# package_in_python.sh TEST_PROGRAM: a package that AOTInductor compiles in Python computes the same through the C interface. Skipped
# where Python has no torch, or no compiler that it can use.
# HORTATOR_TEST_PYTHON selects the Python.
set -euo pipefail
# shellcheck source=tests/setup/support.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../setup/support.sh"
program=$1
root=$source_tree
python=${HORTATOR_TEST_PYTHON:-python3}
if [ -d "$root/.deps/model-tools" ]; then export PYTHONPATH=$root/.deps/model-tools:$root/.deps/libtorch${PYTHONPATH:+:$PYTHONPATH}; fi
"$python" -c 'import torch, sympy' 2>/dev/null || { echo 'skipped: Python has no torch'; exit 77; }
cd "$scratch"
export TORCHINDUCTOR_CACHE_DIR=$scratch/cache
if ! "$python" >log 2>&1 <<'PY'
import torch
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2)).eval()
x = torch.arange(12.0).view(4, 3) / 7
program = torch.export.export(net, (x,), dynamic_shapes=({0: torch.export.Dim("batch", min=1, max=1024)},))
torch._inductor.aoti_compile_and_package(program, package_path="net.pt2")
with open("expected.txt", "w") as file:
    print(*net(x).flatten().tolist(), file=file)
PY
then
  echo "skipped: AOTInductor cannot compile here: $(tail -n 1 log)"
  exit 77
fi
run "$program" '[package]'
expect_code 0
