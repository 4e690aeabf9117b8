// Attention whose keys and values travel from rank to rank. That it is right under every mask: context_attention_test.
#include "parallel/context/ring_attention.hpp"

#include <ATen/autocast_mode.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <torch/autograd.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <hortator/error.hpp>
#include <new>
#include <string>

#include "parallel/context/context_attention.hpp"
#include "parallel/context/divided_sequence.hpp"
#include "support/catch.hpp"
#include "support/forwarding_communicator.hpp"
#include "support/live_bytes.hpp"
#include "unit/parallel/context_fixture.hpp"

using namespace hortator;
using parallel::SequenceLayout;
using test::ContextRanks;

namespace {

/// Logs transfers, and the tiles between which the ring lets them progress.
class LoggingCommunicator final : public test::ForwardingCommunicator {
 public:
  using ForwardingCommunicator::ForwardingCommunicator;

  comm::Work exchange(std::vector<comm::PeerTensor> sent, std::vector<comm::PeerTensor> received) override {
    log.emplace_back("sent");
    auto work = std::make_shared<comm::Work>(ForwardingCommunicator::exchange(std::move(sent), std::move(received)));
    return comm::Work([this, work] {
      work->wait();
      log.emplace_back("arrived");
    });
  }
  void advance() override {
    log.emplace_back("computed");
    if (after_tile) after_tile();
  }

  std::vector<std::string> log;
  std::function<void()> after_tile;
};

parallel::RingOperands operands_of(const std::vector<at::Tensor>& all, const SequenceLayout& layout, int rank) {
  const auto own = [&](const at::Tensor& whole) { return parallel::part_of_sequence(whole, -2, layout, rank); };
  return {.queries = own(all[0]).requires_grad_(),
          .keys = own(all[1]).requires_grad_(),
          .values = own(all[2]).requires_grad_()};
}

std::vector<at::Tensor> gradients_of(const at::Tensor& output, const parallel::RingOperands& mine) {
  return torch::autograd::grad({output.sin().sum()}, {mine.queries, mine.keys, mine.values});
}

std::int64_t peak_of(const std::function<void()>& work) {
  const test::LiveBytes live;
  work();
  return live.peak();
}

}  // namespace

TEST_CASE("a ring whose scores are computed in small tiles has the results of one rank") {
  const ContextRanks run;
  const auto layout = run.layout(29);
  const auto all = test::attention_inputs({.length = 29});
  for (const bool is_causal : {false, true}) {
    for (const std::int64_t max_tokens : {1, 3, 512}) {
      INFO("causal: " << is_causal << ", tiles of " << max_tokens);
      std::vector<at::Tensor> whole;
      for (const auto& tensor : all) whole.push_back(tensor.clone().requires_grad_());
      const auto expected = at::scaled_dot_product_attention(whole[0], whole[1], whole[2], {}, 0, is_causal, 0.3);
      const auto expected_gradients = torch::autograd::grad({expected.sin().sum()}, whole);
      const auto mine = operands_of(all, layout, run.rank());
      const auto output =
          parallel::ring_attention(mine, {.scores = {.is_causal = is_causal, .scale = 0.3, .max_tokens = max_tokens},
                                          .layout = layout,
                                          .group = run.group()});
      const auto own = [&](const at::Tensor& tensor) {
        return parallel::part_of_sequence(tensor, -2, layout, run.rank());
      };
      CHECK(at::allclose(output, own(expected), 1e-5, 1e-5));
      const auto gradients = gradients_of(output, mine);
      for (std::size_t i = 0; i < 3; ++i) CHECK(at::allclose(gradients[i], own(expected_gradients[i]), 1e-5, 1e-5));
    }
  }
}

TEST_CASE("the next block travels while this one is computed, and gradients while the next addends are") {
  const ContextRanks run;
  const int ranks = run.world.size();
  LoggingCommunicator logging(run.over());
  const parallel::RankGroup group{.on_device = logging, .on_cpu = logging, .host = run.world};
  const auto layout = run.layout(16);
  const auto mine = operands_of(test::attention_inputs({.length = 16}), layout, run.rank());
  const auto output = parallel::ring_attention(mine, {.layout = layout, .group = group});
  const std::vector<std::string> tiles(ranks == 1 ? 1 : 4, "computed");
  std::vector<std::string> expected;
  for (int step = 0; step < ranks; ++step) {
    if (step + 1 < ranks) expected.emplace_back("sent");
    expected.insert(expected.end(), tiles.begin(), tiles.end());
    if (step + 1 < ranks) expected.emplace_back("arrived");
  }
  CHECK(logging.log == expected);

  logging.log.clear();
  gradients_of(output, mine);
  int under_way = 0, least = ranks, most = 0;
  for (const auto& what : logging.log) {
    under_way += what == "sent" ? 1 : what == "arrived" ? -1 : 0;
    if (what == "computed") least = std::min(least, under_way);
    if (what == "computed") most = std::max(most, under_way);
  }
  CHECK(under_way == 0);
  CHECK(least == (ranks == 1 ? 0 : 1));
  CHECK(most == (ranks > 2 ? 2 : least));  // both keys and gradients
}

TEST_CASE("a rank has memory for the keys and values of two ranks, however many there are") {
  const ContextRanks run;
  if (run.world.size() != 4) return;
  constexpr std::int64_t own = 256;
  constexpr std::int64_t block = 4 * own * (32 + 32) * std::int64_t{sizeof(float)};
  std::vector<std::int64_t> forward, backward, gathered;
  for (const int ranks : {2, 4}) {
    const auto host = run.world.split(run.rank() / ranks, run.rank());
    const auto over = comm::make_communicator(host, at::kCPU, comm::Checks::off);
    const parallel::RankGroup group{.on_device = *over, .on_cpu = *over, .host = host};
    const SequenceLayout layout(own * ranks, ranks);
    const auto all = test::attention_inputs(
        {.length = own * ranks, .key_heads = 4, .batch = 1, .heads = 4, .width = 32, .value_width = 32});
    const auto mine = operands_of(all, layout, host.rank());
    at::Tensor output;
    forward.push_back(peak_of([&] {
      output = parallel::ring_attention(mine, {.scores = {.max_tokens = 16}, .layout = layout, .group = group});
    }));
    backward.push_back(peak_of([&] { gradients_of(output, mine); }));
    gathered.push_back(
        peak_of([&] { parallel::context_attention(mine.queries, mine.keys, mine.values, {}, layout, group); }));
  }
  INFO("blocks of " << block << " bytes; in a ring " << forward[1] << ", backward " << backward[1] << ", gathered "
                    << gathered[1]);
  const auto output = block / 2;
  CHECK(forward[1] <= 2 * block + output + block / 8);
  CHECK(backward[1] <= backward[0] + block / 8);
  CHECK(gathered[1] >= 4 * block);
}

TEST_CASE("an error of one rank between transfers is thrown by all, and the ring can be used again") {
  const ContextRanks run;
  LoggingCommunicator logging(run.over());
  const parallel::RankGroup group{.on_device = logging, .on_cpu = logging, .host = run.world};
  const auto layout = run.layout(16);
  const auto mine = operands_of(test::attention_inputs({.length = 16}), layout, run.rank());
  const auto attend = [&] { return parallel::ring_attention(mine, {.layout = layout, .group = group}); };
  const int culprit = run.world.size() - 1;
  const auto fail_on_culprit = [&] {
    if (run.rank() == culprit) throw std::bad_alloc();
  };
  logging.after_tile = fail_on_culprit;
  CHECK_THROWS_WITH(attend(), ContainsSubstring("std::bad_alloc"));
  logging.after_tile = {};
  const auto output = attend();
  logging.after_tile = fail_on_culprit;
  CHECK_THROWS_WITH(gradients_of(output, mine), ContainsSubstring("std::bad_alloc"));
  logging.after_tile = {};
  CHECK(at::equal(attend(), output));
}

TEST_CASE("what a ring cannot compute is refused with the reason") {
  const ContextRanks run;
  const auto layout = run.layout(16);
  const auto mine = operands_of(test::attention_inputs({.length = 16}), layout, run.rank());
  const auto attend = [&](const at::Tensor& keys, parallel::AttentionArguments how) {
    how.form = ContextAttention::ring;
    return parallel::context_attention(mine.queries, keys, mine.values, how, layout, run.group());
  };
  CHECK_THROWS_WITH(attend(mine.keys, {.dropout = 0.5}), ContainsSubstring("in a ring got a dropout of 0.5"));
  CHECK_THROWS_WITH(attend(mine.keys.narrow(0, 0, 1), {}), ContainsSubstring("in a ring got queries of sizes"));
  CHECK_THROWS_WITH(attend(mine.keys.narrow(1, 0, 2), {}), ContainsSubstring("in a ring got queries of sizes"));
  CHECK_THROWS_WITH(attend(mine.keys.to(at::kDouble), {}), ContainsSubstring("in a ring got queries of sizes"));
  const auto output = attend(mine.keys, {});
  CHECK_THROWS_WITH(torch::autograd::grad({output.sum()}, {mine.queries}, {}, std::nullopt, /*create_graph=*/true),
                    ContainsSubstring("differentiated with create_graph"));
}

TEST_CASE("16-bit operands are rounded once, also within autocast") {
  const ContextRanks run;
  const auto layout = run.layout(64);
  std::vector<at::Tensor> all;
  for (const auto& tensor : test::attention_inputs({.length = 64})) all.push_back(tensor.to(at::kBFloat16));
  const auto expected =
      at::scaled_dot_product_attention(all[0].to(at::kDouble), all[1].to(at::kDouble), all[2].to(at::kDouble));
  const auto mine = operands_of(all, layout, run.rank());
  for (const bool autocast : {false, true}) {
    const auto before = at::autocast::is_autocast_enabled(at::kCPU);
    at::autocast::set_autocast_enabled(at::kCPU, autocast);
    const auto output = parallel::ring_attention(
        mine, {.scores = {.scale = 1 / std::sqrt(8.0), .max_tokens = 4}, .layout = layout, .group = run.group()});
    at::autocast::set_autocast_enabled(at::kCPU, before);
    CHECK(output.scalar_type() == at::kBFloat16);
    const auto own = parallel::part_of_sequence(expected, -2, layout, run.rank());
    CHECK(at::allclose(output.to(at::kDouble), own, /*rtol=*/1.0 / 256, /*atol=*/1e-6));
  }
}
