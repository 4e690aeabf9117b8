#!/usr/bin/env bash
# compiled_in_python.sh TEST_PROGRAM: packages that share/python/compile_for_hortator.py compiles compute the same with weights from files, and what does
# not fit is an error. Skipped where Python has no torch, or no compiler that it can use. HORTATOR_TEST_PYTHON selects the Python.
set -euo pipefail
# shellcheck source=tests/setup/support.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../setup/support.sh"
program=$1
root=$source_tree
python=${HORTATOR_TEST_PYTHON:-python3}
if [ -d "$root/.deps/libtorch" ]; then export PYTHONPATH=$root/.deps/model-tools:$root/.deps/libtorch${PYTHONPATH:+:$PYTHONPATH}; fi
"$python" -c 'import torch, sympy' 2>/dev/null || { echo 'skipped: Python has no torch'; exit 77; }
cd "$scratch"
export TORCHINDUCTOR_CACHE_DIR=$scratch/cache PYTHONPATH=$root/share/python:${PYTHONPATH:-}
if ! "$python" >log 2>&1 <<'PY'
import json
import pathlib
import zipfile

import torch
from compile_for_hortator import compile_model


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.norm, self.down = torch.nn.Linear(3, 8), torch.nn.BatchNorm1d(8), torch.nn.Linear(8, 2)

    def forward(self, x, y):
        return self.down(torch.tanh(self.norm(self.up(x)))), x + y


torch.manual_seed(0)
net = Net().eval()
x = torch.arange(12.0).view(4, 3) / 7
pathlib.Path("net").mkdir()
compile_model(net, (x, x), "net/net.pt2")
results = {"of_first": net(x, x)[0].detach()}
with torch.no_grad():
    for parameter in net.parameters():
        parameter.mul_(1.5)
results["of_others"] = net(x, x)[0].detach()
torch.save({"other." + name: value for name, value in net.state_dict().items()}, "other.pt")
torch.save({"up.weight": net.up.weight.detach()[:4].clone()} | {name: value for name, value in net.state_dict().items() if name != "up.weight"}, "smaller.pt")
torch.save({name: value.double() for name, value in net.state_dict().items()}, "double.pt")


class Tied(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.scores = torch.nn.Embedding(7, 4), torch.nn.Linear(4, 7, bias=False)
        self.scores.weight = self.tokens.weight
        self.filters = torch.nn.Conv2d(1, 4, 3, padding=1).to(memory_format=torch.channels_last)
        self.register_buffer("halves", torch.tensor([0.5]), persistent=False)
        self.table = torch.tensor([1.0, 2.0, 3.0, 4.0])

    def forward(self, ids):
        hidden = self.tokens(ids) * self.table + torch.tensor([0.1, 0.2, 0.3, 0.4]) + self.halves
        return self.scores(hidden) + self.filters(hidden.unsqueeze(1)).sum((1, 3)).unsqueeze(-1)


tied = Tied().train()
ids = torch.arange(6).view(2, 3)
with torch.no_grad():
    tied.filters.weight = torch.nn.Parameter(torch.randn(3, 3, 1, 4).permute(3, 2, 0, 1))
    results["of_tied"] = tied(ids)
compile_model(tied, (ids,), "net/tied.pt2")
assert tied.training and tied.filters.training
with torch.no_grad():
    tied.tokens.weight.mul_(2)
    results["of_other_tied"] = tied(ids)
torch.save({name: value for name, value in tied.state_dict().items() if name != "scores.weight"}, "tied.pt")
torch.save(results, "results.pt")
torch._inductor.aoti_compile_and_package(torch.export.export(net, (x, x)), package_path="own.pt2")


def with_notes(name, **changed):
    """net.pt2 with other metadata."""
    with zipfile.ZipFile("net/net.pt2") as package, zipfile.ZipFile(name, "w") as other:
        for entry in package.namelist():
            content = package.read(entry)
            if entry.endswith("metadata.json"):
                content = json.dumps(json.loads(content) | changed).encode()
            other.writestr(entry, content)


with_notes("same.pt2")
with_notes("other_version.pt2", hortator_torch="1.0.0")
with_notes("other_build.pt2", hortator_torch=torch.__version__.split("+")[0] + "+other")
with_notes("other_processor.pt2", AOTI_CPU_ISA="AVX2 AMX_TILE")
for number, note in enumerate(("beside", "[{}]", '[{"names": ["up.weight"], "shape": [8, 3], "type": "float33", "constant": false}]')):
    with_notes(f"damaged_{number}.pt2", hortator_weights=note)
PY
then
  echo "skipped: AOTInductor cannot compile here: $(tail -n 1 log)"
  exit 77
fi
run "$program" '[compiled]'
expect_code 0
