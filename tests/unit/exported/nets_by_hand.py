"""Small models, each with a feature of the exporter, and inputs for them."""
import collections
import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Optional

import torch
import torch.nn.functional as F
from torch import nn
from torch.export import Dim


@dataclass
class Case:
    """A model, its inputs, and how it is exported."""

    name: str
    net: nn.Module
    args: tuple
    kwargs: dict = field(default_factory=dict)
    dynamic_shapes: Any = None
    evaluates: bool = False  # exported in evaluation mode
    more_args: tuple = ()  # other inputs that the export allows
    decomposed: bool = False  # to the functional core operators


class Mlp(nn.Module):
    def __init__(self, width=8, activation=nn.GELU, bias=True):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(6, width, bias=bias), activation(), nn.Linear(width, 3))

    def forward(self, x):
        return self.layers(x)


class EmptyLayer(nn.Module):
    """All parameters without elements lie at the same place."""

    def __init__(self):
        super().__init__()
        self.full, self.empty = nn.Linear(4, 3), nn.Linear(4, 0)

    def forward(self, x):
        return self.full(x) + self.empty(x).sum(1, keepdim=True)


class Halves(nn.Module):
    """Two parameters in one memory, as those of an LSTM on a GPU."""

    def __init__(self):
        super().__init__()
        both = torch.randn(6, 4)
        self.first, self.second = nn.Parameter(both[:3]), nn.Parameter(both[3:])

    def forward(self, x):
        return F.linear(x, self.first).tanh() + F.linear(x, self.second)


class BatchNormNet(nn.Module):
    def __init__(self, momentum=0.1):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4, momentum=momentum)
        self.head = nn.Linear(4, 2)

    def forward(self, x):
        return self.head(F.relu(self.norm(self.conv(x))).mean((2, 3)))


class TiedWeights(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(11, 8)
        self.middle = nn.Linear(8, 8)
        self.head = nn.Linear(8, 11, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, ids):
        return self.head(torch.tanh(self.middle(self.embedding(ids))))


class TwoInputs(nn.Module):
    def __init__(self):
        super().__init__()
        self.left, self.right = nn.Linear(4, 5), nn.Bilinear(5, 3, 2)

    def forward(self, x, *, y):
        return self.right(self.left(x).sigmoid(), y)


class NestedOutputs(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 6)

    def forward(self, x, extra=None):
        hidden = self.fc(x)
        first, second = hidden.split([2, 4], dim=1)
        return {"hidden": hidden, "nothing": extra, "parts": (first.exp(), [second.sin(), None])}, x.shape[0]


class InPlace(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))
        self.register_buffer("mean", torch.zeros(4), persistent=False)

    def forward(self, x):
        self.calls += 1
        self.mean.mul_(0.9).add_(x.detach().mean(0), alpha=0.1)
        hidden = self.fc(x).mul_(0.5)
        hidden[:, 1:3] *= 2
        hidden[0] = 1.0
        return hidden.add_(self.mean).clamp_(max=3), self.calls * 2


class ChangesInput(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x, state):
        state.add_(x.sum(0))
        x.mul_(2)
        return self.fc(x) + state


class Attention(nn.Module):
    def __init__(self, causal=True):
        super().__init__()
        self.qkv, self.out, self.causal = nn.Linear(8, 24), nn.Linear(8, 8), causal

    def forward(self, x):
        batch, time, width = x.shape
        q, k, v = self.qkv(x).view(batch, time, 3, 2, width // 2).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.out(y.transpose(1, 2).reshape(batch, time, width))


class MaskedAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k = nn.Linear(6, 6, bias=False), nn.Linear(6, 6, bias=False)
        self.register_buffer("mask", torch.ones(16, 16).tril().bool())

    def forward(self, x):
        time = x.shape[1]
        scores = self.q(x) @ self.k(x).transpose(-2, -1) / math.sqrt(x.shape[-1])
        scores = scores.masked_fill(~self.mask[:time, :time], float("-inf"))
        return scores.softmax(-1) @ x


class NoGrad(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.target = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x):
        with torch.no_grad():
            goal = self.target(x).sigmoid()
        with torch.autocast("cpu", enabled=False):
            scaled = self.fc(x).float()
        return (scaled - goal) ** 2


class Autocast(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = self.b(self.a(x).relu())
        return y.float() + x


class Condition(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        y = self.fc(x)
        return torch.cond(x.sum() > 0, lambda t: t.sin() * 2, lambda t: t.cos(), (y,))


class Sizes(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x, y):
        n, m = x.shape[0], y.shape[0]
        grid = torch.arange(n * m, dtype=torch.float32, device=x.device).view(n, m)
        half = self.fc(x)[: n // 2 + 1]
        return grid @ y / (n**0.5), half.repeat(2, 1), torch.zeros(max(n, m), 3), x.new_ones(n % 3 + 1), n * m - 1


class Reshapes(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(12, 5)

    def forward(self, x):
        windows = x.unfold(1, 3, 3).flatten(2)
        rolled = torch.roll(windows, 1, dims=1)
        return self.fc(torch.cat([windows, rolled], dim=-1)[..., :12]).transpose(0, 1).contiguous()


class Recurrent(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.cell = kind(4, 6, num_layers=2, batch_first=True)
        self.head = nn.Linear(6, 2)

    def forward(self, x):
        hidden, state = self.cell(x)
        return self.head(hidden), state


class ByHandRecurrence(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(4, 6)

    def forward(self, x):
        hidden = x.new_zeros(x.shape[0], 6)
        steps = []
        for step in x.unbind(1):
            hidden = self.cell(step, hidden)
            steps.append(hidden)
        return torch.stack(steps, 1)


class Encoder(nn.Module):
    def __init__(self, norm_first):
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True, norm_first=norm_first)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def forward(self, x):
        return self.encoder(x)


class Convolutions(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv1d(2, 8, 5, stride=2, padding=2)
        self.depthwise = nn.Conv1d(8, 8, 3, padding=1, groups=8)
        self.norm = nn.GroupNorm(2, 8)
        self.up = nn.ConvTranspose1d(8, 2, 4, stride=2, padding=1)

    def forward(self, x):
        return self.up(F.silu(self.norm(self.depthwise(self.stem(x)))))


class Unet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down, self.bottom, self.up = nn.Conv2d(1, 4, 3, padding=1), nn.Conv2d(4, 4, 3, padding=1), nn.Conv2d(8, 1, 1)

    def forward(self, x):
        top = F.elu(self.down(x))
        low = F.elu(self.bottom(F.max_pool2d(top, 2)))
        back = F.interpolate(low, scale_factor=2, mode="bilinear", align_corners=False)
        return self.up(torch.cat([top, F.pad(back, (0, 0, 0, 0))], 1))


class Graph(nn.Module):
    def __init__(self):
        super().__init__()
        self.message, self.update = nn.Linear(6, 5), nn.Linear(8, 3)

    def forward(self, nodes, edges):
        source, target = edges
        messages = self.message(torch.cat([nodes[source], nodes[target]], -1)).relu()
        gathered = torch.zeros(nodes.shape[0], 5).index_add(0, target, messages)
        return self.update(torch.cat([nodes, gathered], -1))


class Spectral(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(3, 5, dtype=torch.complex64) * 0.1)

    def forward(self, x):
        modes = torch.fft.rfft(x)[..., :5] * self.weight
        return torch.fft.irfft(modes, n=x.shape[-1]), modes.abs()


class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.router = nn.Linear(4, 3)
        self.experts = nn.Parameter(torch.randn(3, 4, 4))

    def forward(self, x):
        weights, index = self.router(x).softmax(-1).topk(2)
        chosen = self.experts[index]
        return torch.einsum("bk,bkij,bj->bi", weights, chosen, x)


class Energy(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(3, 16), nn.Linear(16, 1)

    def forward(self, positions):
        difference = positions.unsqueeze(-2) - positions.unsqueeze(-3)
        distance = (difference.square().sum(-1) + 1e-3).sqrt()
        features = torch.stack([torch.exp(-distance), 1 / distance, distance.cos()], -1)
        return self.b(torch.tanh(self.a(features))).sum((1, 2, 3))


class Pair(NamedTuple):
    first: torch.Tensor
    second: Optional[torch.Tensor]


torch.utils._pytree._register_namedtuple(Pair, serialized_type_name="nets.Pair")


class NamedTuples(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)

    def forward(self, pair: Pair, table: dict):
        total = self.fc(pair.first) + pair.second * table["scale"]
        return collections.OrderedDict(total=total, pair=Pair(total.exp(), None))


class Constants(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)
        self.table = torch.linspace(0, 1, 3)

    def forward(self, x, power: int, name: str, scale=0.5):
        offset = torch.tensor([1.0, 2.0, 3.0])
        return self.fc(x + offset) ** power * self.table * scale


class Frozen(nn.Module):
    def __init__(self):
        super().__init__()
        self.base, self.head = nn.Linear(4, 4), nn.Linear(4, 2)
        self.base.requires_grad_(False)
        self.unused = nn.Parameter(torch.ones(2))

    def forward(self, x):
        return self.head(self.base(x).tanh())


class Functions(nn.Module):
    """Many single operators, with arguments of all types."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(5, 5))

    def forward(self, x):
        y = x @ self.weight
        a = torch.where(y > 0, y, 0.1 * y).clamp(-2, 2.5)
        b = torch.logsumexp(y, [0, 1], keepdim=True) + y.norm(p=2, dim=-1, keepdim=True)
        c = torch.cumsum(y, 0).flip([0]).sort(dim=1, descending=True)[0]
        d = F.one_hot(x.argmax(1), 5).to(torch.float32) * y.std(dim=1, unbiased=False, keepdim=True)
        e = F.layer_norm(y, (5,), eps=1e-3) + F.log_softmax(y, -1) + y.pow(2).mean()
        f = torch.addmm(y, y, self.weight, beta=0.5, alpha=2) + y.tril(-1) + torch.eye(5) + y.lerp(x, 0.3)
        g = y.masked_select(x > 0).sum() + torch.linalg.vector_norm(y) + y.var(0).sum() + y.prod(1).sum()
        return a, b, c, d, e, f, g, y.gather(1, x.argsort(1)), torch.nan_to_num(y / 0.0), (x > 0).all(), y.double() * 2


class Parametrized(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.utils.parametrizations.weight_norm(nn.Linear(4, 4))
        self.second = nn.utils.parametrizations.spectral_norm(nn.Linear(4, 4))

    def forward(self, *inputs, **named):
        return self.second(self.first(inputs[0] + named["shift"]).tanh())


class ScaledModule(nn.Module):
    """Shares one submodule, and keeps another in a list."""

    def __init__(self):
        super().__init__()
        self.shared = nn.Linear(4, 4)
        self.blocks = nn.ModuleList([nn.Sequential(self.shared, nn.Softplus()), nn.Sequential(self.shared, nn.Mish())])
        self.table = nn.ParameterDict({"gain": nn.Parameter(torch.ones(4))})

    def forward(self, x):
        for block in self.blocks:
            x = x + block(x) * self.table["gain"]
        return x


def hand_written():
    batch, auto = Dim("batch", min=1, max=64), Dim.AUTO
    x46, image = torch.randn(4, 6), torch.randn(4, 3, 8, 8)
    yield Case("mlp", Mlp(), (x46,), dynamic_shapes=({0: batch},), more_args=(torch.randn(9, 6),))
    yield Case("mlp_static", Mlp(5, nn.SELU), (x46,))
    yield Case("mlp_no_bias", Mlp(7, nn.Tanh, False), (x46,), dynamic_shapes=({0: auto},), more_args=(torch.randn(1, 6),))
    yield Case("mlp_double", Mlp(7, nn.ReLU).double(), (x46.double(),))
    yield Case("mlp_bfloat16", Mlp(8).bfloat16(), (x46.bfloat16(),))
    yield Case("mlp_decomposed", Mlp(8), (x46,), dynamic_shapes=({0: batch},), decomposed=True)
    yield Case("batch_norm", BatchNormNet(), (image,), dynamic_shapes=({0: batch},), more_args=(torch.randn(6, 3, 8, 8),))
    yield Case("batch_norm_average", BatchNormNet(None), (image,), evaluates=True)
    yield Case("batch_norm_eval", BatchNormNet(), (image,), evaluates=True, dynamic_shapes=({0: batch},))
    yield Case("batch_norm_decomposed", BatchNormNet(), (image,), evaluates=True, decomposed=True)
    channels_last = BatchNormNet().to(memory_format=torch.channels_last)
    yield Case("channels_last", channels_last, (image.to(memory_format=torch.channels_last),))
    yield Case("tied", TiedWeights(), (torch.randint(0, 11, (2, 5)),), dynamic_shapes=({0: batch, 1: auto},), more_args=(torch.randint(0, 11, (3, 7)),))
    yield Case("two_inputs", TwoInputs(), (torch.randn(4, 4),), {"y": torch.randn(4, 3)}, dynamic_shapes={"x": {0: batch}, "y": {0: batch}})
    yield Case("nested_outputs", NestedOutputs(), (torch.randn(4, 4),), dynamic_shapes=({0: batch},))
    yield Case("nested_outputs_none", NestedOutputs(), (torch.randn(4, 4), None))
    yield Case("nested_outputs_extra", NestedOutputs(), (torch.randn(4, 4), torch.randn(2)))
    yield Case("in_place", InPlace(), (torch.randn(4, 4),), dynamic_shapes=({0: batch},), more_args=(torch.randn(3, 4),))
    yield Case("in_place_decomposed", InPlace(), (torch.randn(4, 4),), decomposed=True)
    yield Case("changes_input", ChangesInput(), (torch.randn(4, 4), torch.randn(4)))
    yield Case("changes_input_decomposed", ChangesInput(), (torch.randn(4, 4), torch.randn(4)), decomposed=True)
    yield Case("attention", Attention(), (torch.randn(2, 5, 8),), dynamic_shapes=({0: batch, 1: auto},), more_args=(torch.randn(3, 9, 8),))
    yield Case("attention_whole", Attention(False), (torch.randn(2, 5, 8),))
    yield Case("masked_attention", MaskedAttention(), (torch.randn(2, 5, 6),), dynamic_shapes=({0: batch, 1: auto},), more_args=(torch.randn(1, 14, 6),))
    yield Case("no_grad", NoGrad(), (torch.randn(4, 4),), dynamic_shapes=({0: batch},))
    yield Case("autocast", Autocast(), (torch.randn(4, 8),))
    yield Case("condition", Condition(), (torch.ones(4, 4),), more_args=(-torch.ones(4, 4),))
    yield Case("sizes", Sizes(), (torch.randn(7, 4), torch.randn(5, 2)), dynamic_shapes=({0: Dim.DYNAMIC}, {0: Dim.DYNAMIC}), more_args=(torch.randn(10, 4), torch.randn(8, 2)))
    yield Case("reshapes", Reshapes(), (torch.randn(3, 12, 2),), dynamic_shapes=({0: batch},))
    yield Case("lstm", Recurrent(nn.LSTM), (torch.randn(3, 5, 4),))
    yield Case("gru", Recurrent(nn.GRU), (torch.randn(3, 5, 4),))
    yield Case("recurrence", ByHandRecurrence(), (torch.randn(3, 5, 4),), dynamic_shapes=({0: batch},))
    yield Case("encoder", Encoder(False), (torch.randn(2, 5, 8),), dynamic_shapes=({0: batch},))
    yield Case("encoder_norm_first", Encoder(True), (torch.randn(2, 5, 8),))
    yield Case("convolutions", Convolutions(), (torch.randn(2, 2, 16),), dynamic_shapes=({0: batch},))
    yield Case("unet", Unet(), (torch.randn(2, 1, 8, 8),), dynamic_shapes=({0: batch},))
    yield Case("graph", Graph(), (torch.randn(6, 3), torch.randint(0, 6, (2, 9))), dynamic_shapes=({0: auto}, {1: auto}), more_args=(torch.randn(8, 3), torch.randint(0, 8, (2, 4))))
    yield Case("spectral", Spectral(), (torch.randn(2, 3, 16),), dynamic_shapes=({0: batch},))
    yield Case("experts", Experts(), (torch.randn(5, 4),), dynamic_shapes=({0: batch},))
    yield Case("energy", Energy(), (torch.randn(2, 5, 3),), dynamic_shapes=({0: batch, 1: auto},), more_args=(torch.randn(4, 3, 3),))
    yield Case("named_tuples", NamedTuples(), (Pair(torch.randn(2, 3), torch.randn(2, 3)), {"scale": torch.randn(3), "other": 3}))
    yield Case("constants", Constants(), (torch.randn(2, 3), 2, "name"), dynamic_shapes=({0: batch}, None, None))
    yield Case("frozen", Frozen(), (torch.randn(2, 4),))
    yield Case("empty_layer", EmptyLayer(), (torch.randn(2, 4),))
    yield Case("halves", Halves(), (torch.randn(2, 4),))
    yield Case("functions", Functions(), (torch.randn(5, 5),))
    yield Case("shared_module", ScaledModule(), (torch.randn(2, 4),), dynamic_shapes=({0: batch},))
    yield Case("parametrized", Parametrized(), (torch.randn(2, 4),), {"shift": torch.randn(4)})
    yield Case("dropout_eval", nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5), nn.Linear(4, 2)), (torch.randn(3, 4),), evaluates=True)
    yield Case("dropout", nn.Sequential(nn.Linear(4, 64), nn.Dropout(0.5), nn.Linear(64, 2)), (torch.randn(3, 4),))
