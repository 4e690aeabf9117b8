// Attention over a divided sequence against scaled_dot_product_attention of the whole sequence on one rank.
#include "parallel/context/context_attention.hpp"

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/autograd.h>
#include <torch/utils.h>

#include <functional>
#include <hortator/error.hpp>
#include <vector>

#include "parallel/context/attention_interception.hpp"
#include "parallel/context/divided_sequence.hpp"
#include "support/catch.hpp"
#include "unit/parallel/context_fixture.hpp"

using namespace hortator;
using parallel::AttentionArguments;
using parallel::SequenceLayout;
using test::ContextRanks;
using test::random_tensor;

namespace {

constexpr std::int64_t batch = test::AttentionSizes{}.batch;
constexpr std::int64_t heads = test::AttentionSizes{}.heads;
constexpr std::int64_t width = test::AttentionSizes{}.width;

/// A mask, as one rank passes it for the whole sequence, and as each rank of a context group passes it.
struct MaskCase {
  std::string name;
  AttentionArguments whole;
  std::function<AttentionArguments(const AttentionArguments& whole, const SequenceLayout& layout, int rank)> of_rank;
  std::int64_t key_heads = heads;
};

AttentionArguments as_it_is(const AttentionArguments& whole, const SequenceLayout&, int) { return whole; }

// With this rank's rows of a whole mask.
AttentionArguments own_rows(const AttentionArguments& whole, const SequenceLayout& layout, int rank) {
  auto mine = whole;
  mine.mask = parallel::part_of_sequence(*whole.mask, -2, layout, rank);
  return mine;
}

// With this rank's keys of a mask of keys.
AttentionArguments own_keys(const AttentionArguments& whole, const SequenceLayout& layout, int rank) {
  auto mine = whole;
  mine.mask = parallel::part_of_sequence(*whole.mask, -1, layout, rank);
  return mine;
}

std::vector<MaskCase> mask_cases(std::int64_t length) {
  const auto position = at::arange(length);
  const auto distance = position.unsqueeze(1) - position;
  const auto causal = distance.ge(0);
  const auto window = causal.logical_and(distance.lt(5));
  const auto documents = at::stack({position.div(7, "floor"), position.div(4, "floor")});
  const auto borders = documents.unsqueeze(2).eq(documents.unsqueeze(1)).logical_and(causal).unsqueeze(1);
  const auto lengths = at::tensor({length, length - 3}).view({batch, 1});
  const auto is_token = position.unsqueeze(0).lt(lengths).view({batch, 1, 1, length});
  const auto minus_infinity = -std::numeric_limits<float>::infinity();
  const auto padding = at::zeros({batch, 1, 1, length}).masked_fill(is_token.logical_not(), minus_infinity);
  const auto bias = random_tensor(9, {length, length});
  const auto bias_of_heads = random_tensor(10, {batch, heads, length, length});
  return {
      {"none", {}, as_it_is},
      {"none, with a scale", {.scale = 0.1}, as_it_is},
      {"causal", {.is_causal = true}, as_it_is},
      {"causal, heads in groups", {.is_causal = true, .groups_heads = true}, as_it_is, heads / 2},
      {"sliding window, whole mask", {.mask = window}, as_it_is},
      {"sliding window, own rows", {.mask = window}, own_rows},
      {"document borders, own rows", {.mask = borders}, own_rows},
      {"document borders, whole mask", {.mask = borders}, as_it_is},
      {"key padding, own keys", {.mask = is_token}, own_keys},
      {"key padding, whole mask", {.mask = is_token}, as_it_is},
      {"key padding, added to the scores", {.mask = padding}, own_keys},
      {"explicit, added to the scores", {.mask = bias}, own_rows},
      {"explicit, of each head, with a scale", {.mask = bias_of_heads, .scale = 0.3}, own_rows},
      {"explicit, the same for all queries", {.mask = bias.narrow(0, 0, 1)}, as_it_is},
  };
}

struct Attended {
  at::Tensor output;
  std::vector<at::Tensor> gradients;  ///< of queries, keys and values
};

Attended on_one_rank(const MaskCase& one, std::int64_t length) {
  auto all = test::attention_inputs({.length = length, .key_heads = one.key_heads});
  for (auto& tensor : all) tensor.requires_grad_();
  const auto output = at::scaled_dot_product_attention(all[0], all[1], all[2], one.whole.mask, 0, one.whole.is_causal,
                                                       one.whole.scale, one.whole.groups_heads);
  const auto loss = (output.sin() * random_tensor(4, output.sizes())).sum();
  return {output.detach(), torch::autograd::grad({loss}, all)};
}

Attended on_ranks(const ContextRanks& run, const MaskCase& one, std::int64_t length, ContextAttention form) {
  const auto layout = run.layout(length);
  std::vector<at::Tensor> mine;
  for (const auto& tensor : test::attention_inputs({.length = length, .key_heads = one.key_heads}))
    mine.push_back(parallel::part_of_sequence(tensor, -2, layout, run.rank()).requires_grad_());
  auto how = one.of_rank(one.whole, layout, run.rank());
  how.form = form;
  const auto output = parallel::context_attention(mine[0], mine[1], mine[2], how, layout, run.group());
  const auto weights = random_tensor(4, {batch, heads, length, output.size(-1)});
  const auto loss = (output.sin() * parallel::part_of_sequence(weights, -2, layout, run.rank())).sum();
  return {output.detach(), torch::autograd::grad({loss}, mine)};
}

}  // namespace

TEST_CASE("attention over a divided sequence is that of one rank, forward and backward, under every mask") {
  const ContextRanks run;
  const auto form = GENERATE(ContextAttention::gather, ContextAttention::ring);
  for (const std::int64_t length : {24, 29}) {  // equal chunks, and unequal ones
    for (const auto& one : mask_cases(length)) {
      INFO(one.name << ", " << length << " tokens, " << (form == ContextAttention::ring ? "in a ring" : "gathered"));
      const auto layout = run.layout(length);
      const auto expected = on_one_rank(one, length);
      const auto actual = on_ranks(run, one, length, form);
      const auto own = [&](const at::Tensor& whole) {
        return parallel::part_of_sequence(whole, -2, layout, run.rank());
      };
      CHECK(at::allclose(actual.output, own(expected.output), 1e-5, 1e-5));
      for (std::size_t i = 0; i < 3; ++i) {
        INFO("gradient " << i);
        CHECK(at::allclose(actual.gradients[i], own(expected.gradients[i]), 1e-5, 1e-5));
      }
    }
  }
}

TEST_CASE("a bias that is learned gets each rank's part of its gradient") {
  const ContextRanks run;
  constexpr std::int64_t length = 16;
  const auto layout = run.layout(length);
  const auto bias = random_tensor(5, {length, length}).requires_grad_();
  const auto all = test::attention_inputs({.length = length});
  const auto loss_of = [&](const at::Tensor& output, const at::Tensor& weights) { return (output * weights).sum(); };
  const auto weights = random_tensor(6, {batch, heads, length, width + 2});
  const auto expected = torch::autograd::grad(
      {loss_of(at::scaled_dot_product_attention(all[0], all[1], all[2], bias), weights)}, {bias})[0];
  std::vector<at::Tensor> mine;
  for (const auto& tensor : all) mine.push_back(parallel::part_of_sequence(tensor, -2, layout, run.rank()));
  const auto form = GENERATE(ContextAttention::gather, ContextAttention::ring);
  const auto output =
      parallel::context_attention(mine[0], mine[1], mine[2], {.mask = bias, .form = form}, layout, run.group());
  auto gradient =
      torch::autograd::grad({loss_of(output, parallel::part_of_sequence(weights, -2, layout, run.rank()))}, {bias})[0];
  run.over().all_reduce(gradient, comm::ReduceOp::sum).wait();
  CHECK(at::allclose(gradient, expected, 1e-5, 1e-5));
}

TEST_CASE("masks and tensors that do not belong to the divided sequence are refused, never ignored") {
  const ContextRanks run;
  if (run.world.size() == 1) return;
  const auto length = std::int64_t{8} * run.world.size();
  const auto layout = run.layout(length);
  const auto own = layout.size(run.rank());
  const auto part = random_tensor(1, {batch, heads, own, width});
  const auto form = GENERATE(ContextAttention::gather, ContextAttention::ring);
  const auto attend = [&](AttentionArguments how, const at::Tensor& keys) {
    how.form = form;
    parallel::context_attention(part, keys, keys, how, layout, run.group());
  };
  for (const auto& sizes : std::vector<std::vector<std::int64_t>>{
           {own, own}, {batch, 1, own, own}, {length, own}, {own + 1, length}, {1, own + 1}, {length}}) {
    const auto mask = at::ones(sizes, at::kBool);
    CHECK_THROWS_WITH(attend({.mask = mask}, part), ContainsSubstring("a mask of sizes ["));
  }
  CHECK_THROWS_WITH(attend({.mask = at::ones({own, length}, at::kBool), .is_causal = true}, part),
                    ContainsSubstring("together with is_causal"));
  CHECK_THROWS_WITH(attend({}, random_tensor(2, {batch, heads, own + 2, width})),
                    ContainsSubstring("divided sequence got"));
}

TEST_CASE("all ranks throw where one of them computes another attention, and the next one is right") {
  const ContextRanks run;
  if (run.world.size() == 1) return;
  const auto layout = run.layout(16);
  const auto own = layout.size(run.rank());
  std::vector<at::Tensor> mine;
  for (const auto& tensor : test::attention_inputs({.length = 16}))
    mine.push_back(parallel::part_of_sequence(tensor, -2, layout, run.rank()).requires_grad_());
  const auto form = GENERATE(ContextAttention::gather, ContextAttention::ring);
  const auto attend = [&](AttentionArguments how, const at::Tensor& queries, const at::Tensor& keys) {
    how.form = form;
    return parallel::context_attention(queries, keys, mine[2], how, layout, run.group());
  };
  const bool is_last = run.rank() == run.world.size() - 1;
  const auto whole = at::ones({own, layout.length()}, at::kBool);
  const auto of_keys = at::ones({2, 1, 1, own}, at::kBool);
  const auto expected = attend({}, mine[0], mine[1]);
  const std::vector<std::pair<AttentionArguments, std::string>> others = {
      {{.mask = of_keys}, "'a boolean mask of own keys [2, 1, 1]"},
      {{.mask = whole}, "'a boolean mask, "},
      {{.mask = whole.to(at::kFloat)}, "'a mask that is added, "},
      {{.is_causal = true}, "'no mask, causal, "}};
  for (const auto& [how, text] : others) {
    CHECK_THROWS_WITH(attend(is_last ? how : AttentionArguments(), mine[0], mine[1]),
                      ContainsSubstring("The attention over a divided sequence differs between ranks: rank 0 has "
                                        "'no mask, with gradients, Float queries [2, 4, 8], keys [2, 4, 8], values "
                                        "[2, 4, 10]', rank ") &&
                          ContainsSubstring(text));
    CHECK(at::equal(attend({}, mine[0], mine[1]), expected));
  }
  CHECK_THROWS_WITH(attend({}, mine[0], is_last ? mine[1].narrow(-2, 1, 1) : mine[1]),
                    ContainsSubstring("divided sequence got"));
  CHECK_THROWS_WITH(attend({}, is_last ? mine[0].narrow(1, 0, 2) : mine[0], mine[1]),
                    ContainsSubstring("queries of sizes") || ContainsSubstring("queries [2, 2, 8]"));
  const at::AutoGradMode gradients(!is_last);
  CHECK_THROWS_WITH(attend({}, mine[0], mine[1]), ContainsSubstring("without gradients"));
}

TEST_CASE("gathering a sequence and taking one's part are inverse, and the gradient of a gather is the ranks' sum") {
  const ContextRanks run;
  for (const std::int64_t length : {16, 21}) {
    const auto layout = run.layout(length);
    const auto whole = random_tensor(1, {3, length, 2});
    const auto part = parallel::part_of_sequence(whole, 1, layout, run.rank()).requires_grad_();
    const auto gathered = parallel::gather_sequence(part, 1, layout, run.over());
    CHECK(at::equal(gathered, whole));
    const auto weights = random_tensor(2 + static_cast<std::uint64_t>(run.rank()), {3, length, 2});
    const auto gradient = torch::autograd::grad({(gathered * weights).sum()}, {part})[0];
    auto sum = weights.clone();
    run.over().all_reduce(sum, comm::ReduceOp::sum).wait();
    CHECK(at::allclose(gradient, parallel::part_of_sequence(sum, 1, layout, run.rank()), 1e-5, 1e-5));
  }
}

TEST_CASE("attention over a divided sequence is found on every kind of device, with and without gradients") {
  const ContextRanks run;
  const auto layout = run.layout(16);
  const auto group = run.group();
  const parallel::DividedAttention divided(layout, group, ContextAttention::gather);
  const auto attention = c10::Dispatcher::singleton().findSchemaOrThrow("aten::scaled_dot_product_attention", "");
  using Key = c10::DispatchKey;
  for (const auto key : {Key::CPU, Key::AutogradCPU, Key::CUDA, Key::AutogradCUDA, Key::XPU, Key::AutogradXPU,
                         Key::PrivateUse1, Key::AutogradPrivateUse1}) {
    INFO(c10::toString(key));
    CHECK(attention.hasKernelForDispatchKey(key));
  }
}
