#!/usr/bin/env bash
# torch_reads.sh TEST_PROGRAM: writes a state dict, and lets Python's PyTorch read it. HORTATOR_TEST_PYTHON names a Python
# that has it, if not python3.
set -euo pipefail
python=${HORTATOR_TEST_PYTHON:-python3}
"$python" -c 'import torch' 2>/dev/null || { echo "skipped: $python has no PyTorch (HORTATOR_TEST_PYTHON may name another)"; exit 77; }
"$1" '[everything]'
exec "$python" "$(dirname "$0")/torch_reads.py" written.pt
