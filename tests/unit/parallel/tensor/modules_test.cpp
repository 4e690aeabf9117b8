// Modules that know nothing of tensor parallelism, in several styles of writing them, against the same on one rank.
#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <torch/nn/functional/activation.h>
#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>
#include <torch/utils.h>

#include <algorithm>
#include <cmath>
#include <hortator/error.hpp>
#include <string>

#include "parallel/tensor/divided_module.hpp"
#include "unit/parallel/tensor/failing_communicator.hpp"
#include "unit/parallel/tensor/tensor_fixture.hpp"

using namespace hortator;
using parallel::DividedModule;
using test::check_close;
using test::TensorGroup;

namespace {

constexpr std::int64_t width = 32, heads = 4, vocabulary = 24, batch = 2, length = 8;

/// How a user writes attention.
enum class Style { fused_view, fused_chunk, separate, multihead };

class UserAttentionImpl : public torch::nn::Module {
 public:
  explicit UserAttentionImpl(Style style) : style_(style) {
    if (style == Style::multihead) {
      multihead_ = register_module("multihead", torch::nn::MultiheadAttention(width, heads));
      return;
    }
    if (style == Style::separate) {
      q_ = register_module("q", torch::nn::Linear(width, width));
      k_ = register_module("k", torch::nn::Linear(width, width));
      v_ = register_module("v", torch::nn::Linear(torch::nn::LinearOptions(width, width).bias(false)));
      norm_ = register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({width / heads})));
    } else {
      qkv_ = register_module("qkv", torch::nn::Linear(width, 3 * width));
    }
    out_ = register_module("out", torch::nn::Linear(width, width));
  }

  at::Tensor forward(const at::Tensor& x) {
    const auto b = x.size(0), t = x.size(1);
    if (style_ == Style::multihead) {
      const auto y = x.transpose(0, 1);
      const auto mask = at::full({t, t}, -1e9).triu(1);
      return std::get<0>(multihead_(y, y, y, at::Tensor(), false, mask)).transpose(0, 1);
    }
    if (style_ == Style::fused_view) {
      const auto qkv = qkv_(x).view({b, t, 3, heads, width / heads}).permute({2, 0, 3, 1, 4});
      const auto y = at::scaled_dot_product_attention(qkv[0], qkv[1], qkv[2], {}, 0, true);
      return out_(y.transpose(1, 2).contiguous().view({b, t, width}));
    }
    if (style_ == Style::fused_chunk) {
      const auto parts = qkv_(x).chunk(3, -1);
      return out_(by_hand(split(parts[0]), split(parts[1]), split(parts[2])).transpose(1, 2).reshape({b, t, -1}));
    }
    const auto q = norm_(split(q_(x))), k = norm_(split(k_(x)));
    return out_(by_hand(q, k, split(v_(x))).transpose(1, 2).flatten(2));
  }

 private:
  static at::Tensor split(const at::Tensor& x) {
    return x.view({x.size(0), x.size(1), -1, width / heads}).transpose(1, 2);
  }
  static at::Tensor by_hand(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
    auto scores = q.matmul(k.transpose(-2, -1)) / std::sqrt(static_cast<double>(q.size(-1)));
    scores = scores.masked_fill(at::ones({q.size(-2), q.size(-2)}, at::kBool).triu(1), -1e9);
    return at::softmax(scores, -1).matmul(v);
  }

  Style style_;
  torch::nn::Linear qkv_ = nullptr, q_ = nullptr, k_ = nullptr, v_ = nullptr, out_ = nullptr;
  torch::nn::LayerNorm norm_ = nullptr;
  torch::nn::MultiheadAttention multihead_ = nullptr;
};
TORCH_MODULE(UserAttention);

class UserNetImpl : public torch::nn::Module {
 public:
  explicit UserNetImpl(Style style) {
    tokens = register_module("tokens", torch::nn::Embedding(vocabulary, width));
    const at::NoGradGuard no_grad;
    tokens->weight.mul_(0.02);  // scores of a size as in real models
    for (int i = 0; i < 2; ++i) {
      attention->push_back(UserAttention(style));
      norms->push_back(torch::nn::LayerNorm(torch::nn::LayerNormOptions({width})));
      norms->push_back(torch::nn::LayerNorm(torch::nn::LayerNormOptions({width})));
      up->push_back(torch::nn::Linear(width, 4 * width));
      down->push_back(torch::nn::Linear(4 * width, width));
    }
    for (const auto& [name, list] : {std::pair{"attention", attention}, {"norms", norms}, {"up", up}, {"down", down}})
      register_module(name, list);
  }

  at::Tensor forward(const at::Tensor& ids) {
    auto x = tokens(ids);
    for (std::size_t i = 0; i < 2; ++i) {
      x = x + attention[i]->as<UserAttention>()->forward(norms[2 * i]->as<torch::nn::LayerNorm>()->forward(x));
      const auto y = up[i]->as<torch::nn::Linear>()->forward(norms[2 * i + 1]->as<torch::nn::LayerNorm>()->forward(x));
      x = x + down[i]->as<torch::nn::Linear>()->forward(at::gelu(y));
    }
    return at::matmul(x, tokens->weight.t());
  }

  torch::nn::Embedding tokens = nullptr;
  torch::nn::ModuleList attention, norms, up, down;
};
TORCH_MODULE(UserNet);

TensorPlan plan_for(Style style, bool divides_sequence = false) {
  using enum TensorDivision;
  TensorPlan plan = {{"tokens", TensorDivision::vocabulary}, {"up.*", columns}, {"down.*", rows}};
  if (divides_sequence) plan.push_back({"norms.*", TensorDivision::sequence});
  if (style == Style::multihead) {
    plan.push_back({.pattern = "multihead", .division = columns, .blocks = 3});
    plan.push_back({"multihead.out_proj", rows});
    return plan;
  }
  if (style == Style::separate) {
    for (const auto* name : {"q", "k", "v"}) plan.push_back({name, columns});
  } else {
    plan.push_back({.pattern = "qkv", .division = columns, .blocks = 3});
  }
  plan.push_back({"out", rows});
  return plan;
}

UserNet net_of(Style style) {
  torch::manual_seed(7);
  return UserNet(style);
}

struct Step {
  at::Tensor ids, targets;
  explicit Step(std::int64_t number) {
    const auto all = at::arange(batch * length, at::kLong) * (3 + number);
    ids = all.remainder(vocabulary).view({batch, length});
    targets = (all + number + 1).remainder(vocabulary);
  }
  template <typename Net>
  at::Tensor loss(Net& net) const {
    return torch::nn::functional::cross_entropy(net->forward(ids).view({-1, vocabulary}), targets);
  }
};

}  // namespace

TEST_CASE("losses, gradients and traffic of a user's transformer are those of one rank") {
  const auto style = GENERATE(Style::fused_view, Style::fused_chunk, Style::separate, Style::multihead);
  const bool sequence = GENERATE(false, true);
  if (sequence && style == Style::multihead) return;  // its tensors are [tokens, batch, width]
  INFO("style " << static_cast<int>(style) << ", sequence " << sequence);
  const TensorGroup group;
  group.ranks->set_strict(true);  // nothing is gathered
  auto alone = net_of(style), divided = net_of(style);
  const DividedModule parts(*divided, plan_for(style, sequence), group.ranks);
  const Step step(0);
  auto expected = step.loss(alone);
  auto found = step.loss(divided);
  CHECK(std::abs(found.item<double>() - expected.item<double>()) <= 1e-6);
  expected.backward();
  found.backward();
  const auto grads = divided->named_parameters();
  for (const auto& item : alone->named_parameters()) {
    INFO(item.key());
    const auto& parameter = grads[item.key()];
    const auto* part = parts.find(parameter);
    REQUIRE(parameter.grad().defined());
    check_close(parameter.grad(),
                part != nullptr ? group.part_of(item.value().grad(), part->division) : item.value().grad());
  }
}

TEST_CASE("a transformer layer exchanges four sums of its activations") {
  const TensorGroup group;
  if (group.ranks->size() == 1) return;
  auto net = net_of(Style::fused_view);
  const DividedModule parts(*net, plan_for(Style::fused_view), group.ranks);
  Step(0).loss(net).backward();
  const auto activation = batch * length * width * 4;
  const auto& traffic = group.ranks->traffic();
  // Two layers with four sums each; one of the embedding, one of the gradient of the scores' input; the loss.
  CHECK(traffic.gathers == 0);
  CHECK(traffic.sum_bytes <= (2 * 4 + 2) * activation + 3 * batch * length * 4 + 64);
  CHECK(traffic.sum_bytes >= (2 * 4 + 2) * activation);
}

TEST_CASE("with divided sequences a layer exchanges as many bytes, and once more what backward needs again") {
  const TensorGroup group;
  const auto ranks = group.ranks->size();
  if (ranks == 1) return;
  auto net = net_of(Style::separate);
  const DividedModule parts(*net, plan_for(Style::separate, true), group.ranks);
  Step(0).loss(net).backward();
  const auto activation = batch * length * width * 4;
  const auto& traffic = group.ranks->traffic();
  // A sum of the whole is a reduce-scatter and a gather. Two layers with four of either, the embedding and the scores
  // with two; each of the five inputs of column layers is gathered again in backward, once for queries, keys and
  // values.
  CHECK(traffic.part_sum_bytes == (2 * 4 + 2) * activation);
  CHECK(traffic.gather_bytes == (2 * 4 + 2 + 5) * activation);
  CHECK(traffic.sum_bytes <= 64 * width * 4 + 5 * batch * length * 4);  // gradients of norms and biases; the loss
}

namespace {

/// Bytes of tensors on the CPU that this thread has allocated and not freed.
struct LiveBytes final : c10::MemoryReportingInfoBase {
  std::int64_t bytes = 0;
  void reportMemoryUsage(void* /*memory*/, std::int64_t size, std::size_t /*allocated*/, std::size_t /*reserved*/,
                         c10::Device /*device*/) override {
    bytes += size;
  }
  bool memoryProfilingEnabled() const override { return true; }
};

/// What backward needs of a forward pass of 64 tokens.
std::int64_t activation_bytes(UserNet& net) {
  const auto ids = at::arange(batch * 64, at::kLong).remainder(vocabulary).view({batch, 64});
  const auto counter = std::make_shared<LiveBytes>();
  const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, counter);
  const auto loss = torch::nn::functional::cross_entropy(net->forward(ids).view({-1, vocabulary}), ids.view({-1}));
  const auto bytes = counter->bytes;
  loss.backward();
  return bytes;
}

}  // namespace

TEST_CASE("with divided sequences each rank keeps its share of the activations") {
  const TensorGroup group;
  const auto ranks = group.ranks->size();
  if (ranks == 1) return;
  auto alone = net_of(Style::fused_view), divided = net_of(Style::fused_view);
  const auto whole = activation_bytes(alone);
  const DividedModule parts(*divided, plan_for(Style::fused_view, true), group.ranks);
  const auto own = activation_bytes(divided);
  INFO(own << " of " << whole << " bytes");
  const auto tokens = batch * 64;
  const auto on_all = 16 * tokens * 8;  // ids and targets, what chooses a part, and numbers of rows
  CHECK(own <= whole / ranks + on_all);
}

namespace {

/// Trains a whole and a divided net side by side. Returns the largest difference of their losses; afterwards both nets
/// are whole.
template <typename Optimizer, typename Options>
double train_both(UserNet& alone, UserNet& divided, Style style, const Options& options) {
  const TensorGroup group;
  const DividedModule parts(*divided, plan_for(style), group.ranks);
  Optimizer whole(alone->parameters(), options), in_parts(divided->parameters(), options);
  double difference = 0;
  for (int number = 0; number < 50; ++number) {
    const Step step(number % 5);
    whole.zero_grad();
    in_parts.zero_grad();
    const auto expected = step.loss(alone), found = step.loss(divided);
    difference = std::max(difference, std::abs(found.template item<double>() - expected.template item<double>()));
    expected.backward();
    found.backward();
    whole.step();
    const parallel::PartsOnly here;
    in_parts.step();
  }
  parts.restore(group.host);
  return difference;
}

}  // namespace

TEST_CASE("fifty steps of training follow those of one rank") {
  const auto style = GENERATE(Style::fused_view, Style::separate);
  auto alone = net_of(style), divided = net_of(style);
  CHECK(train_both<torch::optim::AdamW>(alone, divided, style, torch::optim::AdamWOptions(1e-3)) <= 1e-5);
}

// Rounding errors of fp32 grow over the steps; those of fp64 stay far below any mistake.
TEST_CASE("fifty steps in fp64 give the parameters of one rank") {
  const auto style = GENERATE(Style::fused_chunk, Style::multihead);
  auto alone = net_of(style), divided = net_of(style);
  alone->to(at::kDouble);
  divided->to(at::kDouble);
  const auto options = torch::optim::SGDOptions(0.05).momentum(0.9);
  CHECK(train_both<torch::optim::SGD>(alone, divided, style, options) <= 1e-9);
  const auto trained = divided->named_parameters();
  for (const auto& item : alone->named_parameters()) {
    INFO(item.key());
    check_close(trained[item.key()].detach(), item.value().detach(), 1e-9);
  }
}

TEST_CASE("a rank holds its part of the parameters, and gets them whole again") {
  const TensorGroup group;
  auto alone = net_of(Style::fused_chunk), divided = net_of(Style::fused_chunk);
  std::int64_t whole = 0, held = 0;
  const DividedModule parts(*divided, plan_for(Style::fused_chunk), group.ranks);
  for (const auto& one : parts.parameters()) {
    whole += group.whole(one.parameter).numel();
    held += one.parameter.numel();
  }
  CHECK(held * group.ranks->size() == whole);
  parts.restore(group.host);
  const auto restored = divided->named_parameters();
  for (const auto& item : alone->named_parameters()) {
    INFO(item.key());
    CHECK_FALSE(parallel::is_divided(restored[item.key()]));
    CHECK(at::equal(restored[item.key()], item.value()));
  }
}

TEST_CASE("a gradient that only some ranks have is whole after division, with zeros for the others") {
  const TensorGroup group;
  auto divided = net_of(Style::separate);
  const DividedModule parts(*divided, plan_for(Style::separate), group.ranks);
  const auto& one = parts.parameters().front();
  if (group.host.rank() == 0) {
    const parallel::PartsOnly here;
    one.parameter.mutable_grad() = at::ones(one.part);
  }
  parts.restore(group.host);
  REQUIRE(one.parameter.grad().sizes() == one.parameter.sizes());
  CHECK(one.parameter.grad().sum().item<double>() * group.ranks->size() == static_cast<double>(one.parameter.numel()));
}

TEST_CASE("if one rank cannot join a part, all ranks throw, and the module has its parts as they were") {
  const TensorGroup group;
  if (group.ranks->size() == 1) return;
  const bool fails = group.host.rank() + 1 == group.host.size();
  test::FailingCommunicator failing(*group.communicator, fails ? 2 : 0);
  auto divided = net_of(Style::fused_chunk);
  DividedModule parts(*divided, plan_for(Style::fused_chunk),
                      std::make_shared<parallel::TensorRanks>(failing, failing));
  std::vector<at::Tensor> before;
  {
    const parallel::PartsOnly here;
    for (const auto& one : parts.parameters()) before.push_back(one.parameter.detach().clone());
  }
  CHECK_THROWS_WITH(parts.lend_together(group.host), ContainsSubstring("no memory for the whole"));
  for (std::size_t i = 0; i < before.size(); ++i) {
    const auto& parameter = parts.parameters()[i].parameter;
    CHECK(parallel::is_divided_parameter(parameter));
    const parallel::PartsOnly here;
    CHECK(at::equal(parameter, before[i]));
  }
  CHECK_NOTHROW(parts.check_untouched());
}

TEST_CASE("a plan that does not fit changes nothing") {
  const TensorGroup group;
  auto net = net_of(Style::separate);
  CHECK_THROWS_WITH(DividedModule(*net, {{"nothing", TensorDivision::columns}}, group.ranks),
                    ContainsSubstring("fits no parameter"));
  for (const auto& parameter : net->parameters()) CHECK_FALSE(parallel::is_divided(parameter));
  CHECK_THROWS_WITH(parallel::plan_of(*net), ContainsSubstring("has no plan"));
}

TEST_CASE("operators without a divided tensor are not intercepted") {
  const TensorGroup group;
  torch::nn::Linear layer(4, 4);
  const auto y = layer(at::ones({2, 4}));
  CHECK_FALSE(parallel::is_divided(y));
  CHECK(group.ranks->traffic().sums == 0);
}
