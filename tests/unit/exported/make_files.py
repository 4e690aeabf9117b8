#!/usr/bin/env python3
"""make_files.py FOLDER: writes the models of the unit tests, NAME.pt2, and NAME.safetensors with inputs ("input_0"),
outputs ("output_0"), gradients of their sum ("gradient.fc.weight") and, for those that are trained, the tensors "target"
and "losses" of 50 steps of SGD with the rate 0.01, which are in NAME.csv as well."""
import pathlib
import sys

import torch
import torch.nn.functional as F
from safetensors.torch import save_file

import nets
from compare import copied, exported, python_results, tensors_in

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "share" / "python"))
from export_for_hortator import dynamic_rows, export_forms, write_forms  # noqa: E402

STEPS, RATE = 50, 0.01
TRAINED = ("mlp", "attention", "tied")


class Modes(torch.nn.Module):
    """A model that computes something else in training."""

    def __init__(self):
        super().__init__()
        self.fc, self.norm, self.drop = torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8), torch.nn.Dropout(0.5)

    def forward(self, x):
        return self.drop(self.norm(self.fc(x)))


def small(programs):
    """Without the lines of source code, which are longer than all else."""
    for program in programs.values():
        for module in program.graph_module.modules():
            for node in getattr(getattr(module, "graph", None), "nodes", ()):
                node.meta.pop("stack_trace", None)
    return programs


def losses_of(program, case, target):
    module = program.module()
    optimizer = torch.optim.SGD(module.parameters(), lr=RATE)
    losses = []
    for _ in range(STEPS):
        loss = F.mse_loss(tensors_in(module(*copied(case.args), **copied(case.kwargs)))[0], target)
        losses.append(loss.item())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return torch.tensor(losses, dtype=torch.float64)


def write_case(folder, case):
    write_forms(small({"model": exported(case)}), folder / f"{case.name}.pt2")
    load = lambda: torch.export.load(folder / f"{case.name}.pt2")  # noqa: E731
    outputs, gradients = python_results(load(), *copied((case.args, case.kwargs)))
    tensors = {f"input_{i}": tensor for i, tensor in enumerate(tensors_in((case.args, case.kwargs)))}
    tensors |= outputs | {f"gradient.{name}": gradient for name, gradient in gradients.items()}
    if case.name in TRAINED:
        tensors["target"] = torch.randn_like(outputs["output_0"])
        tensors["losses"] = losses_of(load(), case, tensors["target"])
        rows = [f"{step},{loss:.9g}\n" for step, loss in enumerate(tensors["losses"].tolist(), 1)]
        (folder / f"{case.name}.csv").write_text("step,loss\n" + "".join(rows))
    save_file({name: tensor.detach().clone().contiguous() for name, tensor in tensors.items()}, folder / f"{case.name}.safetensors")


def write_formula_losses(folder):
    """Of the model mlp on the table of share/examples/simulation/python_model.f90, on one and on two ranks."""
    for ranks in (1, 2):
        rows = torch.arange(16 * ranks, dtype=torch.float64)[:, None] + 1
        x = (rows * (torch.arange(6) + 1)).sin().float()
        target = (rows * (torch.arange(3) + 1)).cos().float()
        case = nets.Case("mlp", torch.nn.Identity(), (x,))
        losses = losses_of(torch.export.load(folder / "mlp.pt2"), case, target)
        table = "".join(f"{step},{loss:.9g}\n" for step, loss in enumerate(losses.tolist(), 1))
        (folder / f"python_model.{ranks}.csv").write_text(table)


def write_modes(folder):
    net, x = Modes(), torch.randn(6, 4)
    write_forms(small(export_forms(net, (x,), dynamic_shapes=dynamic_rows(net, (x,), {}))), folder / "modes.pt2")
    save_file({"input_0": x, "output_0": net.eval()(x).detach()}, folder / "modes.safetensors")


def main():
    folder = pathlib.Path(sys.argv[1])
    torch.set_num_threads(1)
    names = ("mlp", "attention", "tied", "nested_outputs", "in_place", "changes_input_decomposed", "no_grad", "condition", "sizes", "frozen")
    for case in nets.each_case(["hand"]):
        if case.name in names:
            write_case(folder, case)
    write_modes(folder)
    write_formula_losses(folder)


if __name__ == "__main__":
    main()
