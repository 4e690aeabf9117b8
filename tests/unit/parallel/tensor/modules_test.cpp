// What users' divided modules compute, against the same on one rank.
#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <torch/nn/functional/loss.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <cmath>
#include <hortator/error.hpp>
#include <string>

#include "parallel/tensor/divided_module.hpp"
#include "support/differences.hpp"
#include "unit/parallel/tensor/tensor_fixture.hpp"
#include "unit/parallel/tensor/user_net.hpp"

using namespace hortator;
using parallel::DividedModule;
using test::check_close;
using test::TensorGroup;
using namespace test::user_net;

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
    difference =
        hortator::test::larger(difference, std::abs(found.template item<double>() - expected.template item<double>()));
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
