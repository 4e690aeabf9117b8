"""Models with what few programs do: conditions within conditions, sizes that depend on values, views that are changed."""
import torch
import torch.nn.functional as F
from torch import nn
from torch.export import Dim
from torch.utils.checkpoint import checkpoint

from nets_by_hand import Case


class Computed(nn.Module):
    """A function of the module and its inputs, with parameters and submodules by name."""

    def __init__(self, function, **members):
        super().__init__()
        self.function = function
        for name, member in members.items():
            setattr(self, name, member)

    def forward(self, *inputs, **named):
        return self.function(self, *inputs, **named)


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, gradient):
        return 2 * ctx.saved_tensors[0] * gradient


class SharedBuffers(nn.Module):
    """Buffers that are parts of one memory."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        whole = torch.randn(8)
        self.register_buffer("whole", whole)
        self.register_buffer("first", whole[:4])
        self.register_buffer("last", whole[4:])

    def forward(self, x):
        self.first.add_(1)
        return self.fc(x) + self.first * self.last + self.whole[:4]


def nested_condition(net, x):
    def inner(t):
        return torch.cond(t.max() > 1, lambda u: net.a(u).sin(), lambda u: net.a(u).cos(), (t,))

    return torch.cond(x.sum() > 0, inner, lambda t: net.b(t), (x,))


def condition_on_size(net, x, y):
    first, second = torch.cond(x.shape[0] > 3, lambda u, v: (net.a(u), v + 1), lambda u, v: (net.a(u) * 2, v - 1), (x, y))
    return first + second


def changed_views(net, x):
    y = net.a(x)
    y[:, ::2] += 1
    y[1:] = y[:-1].clone() * 0.5
    y[..., -1].mul_(3)
    y.t()[0].add_(x.sum())
    return y, y[0]


def some_rows(net, x):
    rows = (x[:, 0] > 0).nonzero()[:, 0]
    return net.a(x[rows]).sum(0), rows.shape[0]


def first_rows(net, x, count):
    rows = count.item()
    torch._check(rows >= 1)
    torch._check(rows <= x.shape[0])
    return net.a(x[:rows]).sum()


def without_gradients(net, x):
    with torch.no_grad():
        weights = net.b(x).softmax(-1)
    return net.a(x) * weights


def warped(net, x):
    grid = F.affine_grid(net.angle.expand(x.shape[0], -1, -1), list(x.shape), align_corners=False)
    return F.grid_sample(x, grid, align_corners=False)


def scattered(net, x, index):
    return torch.zeros(4, 4).scatter_reduce(0, index[:, None].expand(-1, 4), net.a(x), "amax", include_self=False)


def solved(net, x):
    whole = x @ x.mT + 3 * torch.eye(4)
    return torch.linalg.solve(whole, net.weight) + torch.linalg.cholesky(whole) + torch.linalg.det(x)[:, None, None]


def counted(net, x):
    net.calls.add_(1)
    net.mean.copy_(net.a(x).detach().mean(0) * 0.5 + net.mean * 0.5)
    return net.a(x) + net.mean


def odd_models():
    x, a, b = torch.randn(5, 4), nn.Linear(4, 4), nn.Linear(4, 4)
    auto, rows = Dim.AUTO, Dim("rows", min=2, max=20)

    def case(name, function, args, members, **options):
        return Case(name, Computed(function, **members), args, **options)

    yield case("nested_condition", nested_condition, (2 * torch.ones(3, 4),), {"a": a, "b": b}, more_args=(-torch.ones(3, 4),))
    yield case("condition_on_size", condition_on_size, (x, x), {"a": a}, dynamic_shapes=(({0: rows}, {0: rows}),), more_args=(x[:2], x[:2]))
    yield case("changed_views", changed_views, (x,), {"a": nn.Linear(4, 6)})
    yield case("some_rows", some_rows, (x,), {"a": a}, dynamic_shapes=(({0: auto},),), more_args=(torch.randn(9, 4),))
    yield case("first_rows", first_rows, (x, torch.tensor(3)), {"a": a}, more_args=(x, torch.tensor(5)))
    yield case("without_gradients", without_gradients, (x,), {"a": a, "b": b})
    yield case("own_function", lambda net, x: Square.apply(net.a(x)), (x,), {"a": a})
    yield case("checkpointed", lambda net, x: checkpoint(lambda t: net.a(t).tanh(), x, use_reentrant=False) + x, (x,), {"a": a})
    yield case("warped", warped, (torch.randn(2, 3, 6, 6),), {"angle": nn.Parameter(torch.tensor([[[1.0, 0.1, 0], [0, 0.9, 0.1]]]))},
               dynamic_shapes=(({0: auto},),))
    yield case("scattered", scattered, (torch.randn(9, 4), torch.randint(0, 4, (9,))), {"a": a})
    yield case("solved", solved, (torch.randn(3, 4, 4),), {"weight": nn.Parameter(torch.randn(4, 4))})
    yield case("counted", counted, (x,), {"a": a, "calls": nn.Buffer(torch.zeros((), dtype=torch.long)), "mean": nn.Buffer(torch.zeros(4))},
               dynamic_shapes=(({0: auto},),), more_args=(torch.randn(3, 4),))
    yield case("returned_inputs", lambda net, x: (x, net.a(x), x, net.a.weight), (x,), {"a": a})
    yield case("halves", lambda net, x, y: net.a(x).view(-1, 2, 4).sum(1) + y, (torch.randn(6, 4), torch.randn(3, 4)), {"a": a},
               dynamic_shapes=(({0: auto}, {0: auto}),), more_args=(torch.randn(10, 4), torch.randn(5, 4)))
    yield case("unpooled", lambda net, x: F.max_unpool2d(*F.max_pool2d(net.conv(x), 2, return_indices=True), 2), (torch.randn(2, 1, 6, 6),),
               {"conv": nn.Conv2d(1, 2, 3, padding=1)})
    yield case("named_inputs", lambda net, d, *, mask=None: {"y": net.a(d["a"]["x"]) + d["b"][0], "m": mask}, ({"a": {"x": x}, "b": [torch.randn(4)]},),
               {"a": a}, kwargs={"mask": torch.ones(3, dtype=torch.bool)})
    yield case("bags", lambda net, ids, offsets: net.bags(ids, offsets), (torch.randint(0, 10, (8,)), torch.tensor([0, 3, 5])),
               {"bags": nn.EmbeddingBag(10, 4, mode="mean")})
    yield Case("shared_buffers", SharedBuffers(), (x,))
    yield Case("whole_transformer", nn.Transformer(8, 2, 1, 1, 16, dropout=0.0, batch_first=True), (torch.randn(2, 5, 8), torch.randn(2, 3, 8)),
               dynamic_shapes=({0: auto, 1: auto}, {0: auto, 1: auto}), more_args=(torch.randn(3, 6, 8), torch.randn(3, 4, 8)))
    yield Case("encoder_decomposed", nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True), (torch.randn(2, 5, 8),), decomposed=True)
    yield Case("both_directions", nn.LSTM(4, 5, 2, bidirectional=True, proj_size=3), (torch.randn(6, 3, 4),))
