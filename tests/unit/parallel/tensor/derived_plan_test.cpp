// Plans that are derived from a module's own forward.
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>
#include <torch/utils.h>

#include <hortator/error.hpp>
#include <hortator/parallel/tensor_plan.hpp>
#include <memory>

#include "parallel/tensor/divided_module.hpp"
#include "unit/parallel/tensor/tensor_fixture.hpp"

namespace hortator::hand_written {
namespace {

constexpr std::int64_t width = 16, heads = 4, vocabulary = 30, tokens = 6;

struct BlockImpl : torch::nn::Module {
  explicit BlockImpl(bool fused) {
    if (fused) qkv = register_module("qkv", torch::nn::Linear(width, 3 * width));
    for (auto* layer : {&q, &k, &v})
      if (!fused) *layer = register_module(std::string(1, "qkv"[layer - &q]), torch::nn::Linear(width, width));
    out = register_module("out", torch::nn::Linear(width, width));
    gate = register_module("gate", torch::nn::Linear(width, 2 * width));
    up = register_module("up", torch::nn::Linear(width, 2 * width));
    down = register_module("down", torch::nn::Linear(2 * width, width));
    norm_1 = register_module("norm_1", torch::nn::LayerNorm(torch::nn::LayerNormOptions({width})));
    norm_2 = register_module("norm_2", torch::nn::LayerNorm(torch::nn::LayerNormOptions({width})));
    shift = register_module("shift", torch::nn::Linear(width, width));
  }
  at::Tensor forward(const at::Tensor& before) {
    auto x = before + shift(norm_1(before));  // its result is added to a whole tensor: it has no partner
    const auto y = norm_1(x);
    const auto split = [&](const at::Tensor& part) {
      return part.view({x.size(0), x.size(1), heads, -1}).transpose(1, 2);
    };
    std::vector<at::Tensor> parts;
    if (qkv) {
      parts = qkv(y).chunk(3, -1);
    } else {
      parts = {q(y), k(y), v(y)};
    }
    const auto mixed = at::scaled_dot_product_attention(split(parts[0]), split(parts[1]), split(parts[2]));
    x = x + out(mixed.transpose(1, 2).flatten(2));
    const auto z = norm_2(x);
    return x + down(at::silu(gate(z)) * up(z));
  }
  torch::nn::Linear qkv = nullptr, q = nullptr, k = nullptr, v = nullptr, out = nullptr, gate = nullptr, up = nullptr,
                    down = nullptr, shift = nullptr;
  torch::nn::LayerNorm norm_1 = nullptr, norm_2 = nullptr;
};
TORCH_MODULE(Block);

struct HandWrittenImpl : torch::nn::Module {
  explicit HandWrittenImpl(bool fused) {
    table = register_module("table", torch::nn::Embedding(vocabulary, width));
    places = register_module("places", torch::nn::Embedding(tokens, width));
    for (int i = 0; i < 2; ++i) blocks->push_back(Block(fused));
    register_module("blocks", blocks);
    scores = register_module("scores", torch::nn::Linear(width, vocabulary));
  }
  at::Tensor forward(const at::Tensor& ids) {
    auto x = table(ids) + places(at::arange(ids.size(1), at::kLong));
    for (const auto& block : *blocks) x = block->as<Block>()->forward(x);
    return scores(x);
  }
  torch::nn::Embedding table = nullptr, places = nullptr;
  torch::nn::ModuleList blocks;
  torch::nn::Linear scores = nullptr;
};
TORCH_MODULE(HandWritten);

/// A layer whose weight is stored as [inputs, outputs], as in GPT-2.
struct TransposedLayerImpl : torch::nn::Module {
  TransposedLayerImpl(std::int64_t inputs, std::int64_t outputs) {
    weight = register_parameter("weight", at::rand({inputs, outputs}));
    bias = register_parameter("bias", at::rand({outputs}));
  }
  at::Tensor forward(const at::Tensor& x) {
    return at::addmm(bias, x.view({-1, x.size(2)}), weight).view({x.size(0), x.size(1), -1});
  }
  at::Tensor weight, bias;
};
TORCH_MODULE(TransposedLayer);

struct TransposedBlock : torch::nn::Module {
  at::Tensor forward(const at::Tensor& x) {
    const auto parts = qkv(x).split(width, 2);
    const auto heads_of = [](const at::Tensor& part) {
      return part.view({part.size(0), part.size(1), heads, -1}).transpose(1, 2);
    };
    const auto mixed = at::scaled_dot_product_attention(heads_of(parts[0]), heads_of(parts[1]), heads_of(parts[2]));
    const auto y = x + out(mixed.transpose(1, 2).reshape(x.sizes()));
    return last(y + down(at::gelu(up(y))));
  }
  TransposedLayer qkv = register_module("qkv", TransposedLayer(width, 3 * width));
  TransposedLayer out = register_module("out", TransposedLayer(width, width));
  TransposedLayer up = register_module("up", TransposedLayer(width, 2 * width));
  TransposedLayer down = register_module("down", TransposedLayer(2 * width, width));
  TransposedLayer last = register_module("last", TransposedLayer(width, width));
};

at::Tensor ids() { return at::arange(2 * tokens, at::kLong).view({2, tokens}); }

TensorPlan derived(HandWritten& net, int ranks) {
  return derive_tensor_plan(*net, ranks, [&] { return net->forward(ids()); });
}

}  // namespace

TEST_CASE("the plan of a hand-written transformer is found, and layers without a partner are left whole") {
  HandWritten separate(false), fused(true);
  CHECK(describe(derived(separate, 2)) ==
        "blocks.*.q: columns\nblocks.*.out: rows\nblocks.*.k: columns\nblocks.*.v: columns\n"
        "blocks.*.gate: columns\nblocks.*.down: rows\nblocks.*.up: columns\ntable: vocabulary\nscores: vocabulary");
  CHECK(describe(derived(fused, 4)) ==
        "blocks.*.qkv: columns in 3 blocks\nblocks.*.out: rows\nblocks.*.gate: columns\nblocks.*.down: rows\n"
        "blocks.*.up: columns\ntable: vocabulary\nscores: vocabulary");
}

TEST_CASE("the plan of layers whose weights are stored transposed is found, without layers that have no partner") {
  const auto block = std::make_shared<TransposedBlock>();
  const auto x = at::rand({2, tokens, width});
  CHECK(describe(derive_tensor_plan(*block, 2, [&] { return block->forward(x); })) ==
        "qkv: columns in 3 blocks, stored transposed\nout: rows, stored transposed\n"
        "up: columns, stored transposed\ndown: rows, stored transposed");
}

TEST_CASE("a derived plan divides heads only as far as there are whole ones") {
  HandWritten net(false);
  const auto text = describe(derived(net, 8));  // four heads, and 32 features between them
  CHECK_THAT(text, !ContainsSubstring("blocks.*.q") && ContainsSubstring("blocks.*.gate: columns"));
}

TEST_CASE("a derived plan trains as one rank does, and deriving leaves the module as it was") {
  const test::TensorGroup group;
  if (group.ranks->size() == 1) return;
  torch::manual_seed(3);
  HandWritten alone(true);
  torch::manual_seed(3);
  HandWritten net(true);
  const auto plan = derived(net, group.ranks->size());
  const auto next = at::rand({1});
  for (std::size_t i = 0; i < net->parameters().size(); ++i) {
    CHECK_FALSE(parallel::is_divided(net->parameters()[i]));
    CHECK(at::equal(net->parameters()[i], alone->parameters()[i]));
  }
  torch::manual_seed(3);
  HandWritten again(true);
  CHECK(at::equal(next, at::rand({1})));
  group.ranks->set_strict(true);
  const parallel::DividedModule parts(*net, plan, group.ranks);
  const auto targets = ids().flatten();
  const auto loss = at::cross_entropy_loss(net->forward(ids()).view({-1, vocabulary}), targets);
  const auto expected = at::cross_entropy_loss(alone->forward(ids()).view({-1, vocabulary}), targets);
  CHECK(loss.item<double>() == Approx(expected.item<double>()).epsilon(1e-5));
}

TEST_CASE("a module in which nothing can be divided is refused") {
  torch::nn::Sequential net(torch::nn::Linear(8, 8), torch::nn::LayerNorm(torch::nn::LayerNormOptions({8})));
  CHECK_THROWS_WITH(derive_tensor_plan(*net, 2,
                                       [&] {
                                         return net->forward(at::ones({2, 8}));
                                       }),
                    ContainsSubstring("No layers were found that 2 tensor ranks can divide"));
}

}  // namespace hortator::hand_written
