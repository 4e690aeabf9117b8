#!/usr/bin/env python3
"""recorded.py SHARE_PYTHON FOLDER: records the first step of the net of recorded.cpp, as PyTorch computes it."""
import sys

sys.path.insert(0, sys.argv[1])
try:
    import torch
except ImportError as error:
    print(f"needs PyTorch: {error}")
    sys.exit(77)
from record_operators import OperatorRecorder  # noqa: E402

WIDTH, CLASSES = 16, 8


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.LayerNorm(WIDTH)
        self.query = torch.nn.Linear(WIDTH, WIDTH)
        self.key = torch.nn.Linear(WIDTH, WIDTH)
        self.up = torch.nn.Linear(WIDTH, 2 * WIDTH)
        self.down = torch.nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x):
        y = self.norm(x)
        scores = torch.softmax(torch.matmul(self.query(y), self.key(y).transpose(-1, -2)) / 4, -1)
        return x + self.down(torch.nn.functional.gelu(self.up(torch.matmul(scores, y))))


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(CLASSES, WIDTH)
        self.first = Block()
        self.second = Block()
        self.head = torch.nn.Linear(WIDTH, CLASSES)

    def forward(self, ids):
        return self.head(self.second(self.first(self.embed(ids))))


torch.set_num_threads(1)
net = Net()
with torch.no_grad():
    for seed, parameter in enumerate(net.parameters(), 1):
        numbers = (torch.arange(parameter.numel()) * 37 + seed) % 61 - 30
        parameter.copy_((numbers.float() / 64).view_as(parameter))
ids = (torch.arange(24) * 5 % CLASSES).view(4, 6)
optimizer = torch.optim.AdamW(net.parameters(), 1e-3, fused=True)
OperatorRecorder(net, optimizer, sys.argv[2])
torch.nn.functional.cross_entropy(net(ids).view(-1, CLASSES), ids.view(-1).flip(0)).backward()
optimizer.step()
