#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <hortator/error.hpp>
#include <set>

#include "core/hash.hpp"
#include "simulation/samples/sample_buffer.hpp"
#include "support/catch.hpp"

using namespace hortator;
using namespace hortator::simulation;

namespace {

SampleBuffer::Settings settings_of(SampleChoice choice, std::int64_t capacity, std::int64_t batch) {
  return {.choice = choice, .capacity = capacity, .batch_size = batch, .min_samples = batch, .has_statistics = true};
}

/// Samples whose input and target are their number.
TensorBatch numbered_samples(std::int64_t first, std::int64_t count) {
  const auto numbers = at::arange(first, first + count, at::kDouble).unsqueeze(1);
  return {.inputs = {numbers}, .targets = {-numbers}};
}

/// A state that shares no memory with the buffer.
StateDict copy_of(const StateDict& saved) {
  StateDict state;
  for (const auto& [name, value] : saved.values()) {
    if (const auto* tensor = std::get_if<at::Tensor>(&value)) state.put(name, tensor->clone());
    if (const auto* number = std::get_if<std::int64_t>(&value)) state.put(name, *number);
  }
  return state;
}

std::vector<double> held_numbers(SampleBuffer& buffer) {
  const auto samples = buffer.state().get<at::Tensor>("samples/inputs0");
  const auto flat = samples.flatten();
  return {flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel()};
}

}  // namespace

TEST_CASE("a ring keeps the newest samples", "[simulation]") {
  SampleBuffer buffer("ring", settings_of(SampleChoice::ring, 5, 2), 1);
  CHECK_FALSE(buffer.is_ready());
  buffer.put(numbered_samples(0, 3));
  buffer.put(numbered_samples(3, 9));  // more than the capacity
  CHECK(buffer.count() == 5);
  auto held = held_numbers(buffer);
  std::ranges::sort(held);
  CHECK(held == std::vector<double>{7, 8, 9, 10, 11});
}

TEST_CASE("a reservoir keeps each sample with the same probability", "[simulation]") {
  constexpr std::int64_t capacity = 10;
  constexpr std::int64_t samples = 100;
  constexpr int trials = 2000;
  std::vector<int> kept(samples, 0);
  for (int trial = 0; trial < trials; ++trial) {
    std::vector<std::int64_t> slots(capacity, -1);
    const auto key = core::mix(17, static_cast<std::uint64_t>(trial));
    for (std::int64_t number = 0; number < samples; ++number) {
      if (const auto slot = slot_of(SampleChoice::reservoir, capacity, key, number))
        slots[static_cast<std::size_t>(*slot)] = number;
    }
    for (const auto number : slots) ++kept[static_cast<std::size_t>(number)];
  }
  // 2000 trials with probability 0.1: 200, with a standard deviation of 13.4.
  CHECK(*std::ranges::min_element(kept) > 200 - 5 * 13.4);
  CHECK(*std::ranges::max_element(kept) < 200 + 5 * 13.4);
}

TEST_CASE("samples are kept the more often, the higher their priority is", "[simulation]") {
  constexpr int trials = 4000;
  constexpr std::int64_t samples = 40;
  std::vector<int> kept(samples, 0);
  for (int trial = 0; trial < trials; ++trial) {
    PriorityKeys keys(1);
    std::int64_t last = -1;
    const auto key = core::mix(23, static_cast<std::uint64_t>(trial));
    for (std::int64_t number = 0; number < samples; ++number) {
      if (keys.place(priority_key(static_cast<double>(number % 4), key, number))) last = number;
    }
    ++kept[static_cast<std::size_t>(last)];
  }
  std::vector<int> of_priority(4, 0);
  for (std::size_t number = 0; number < samples; ++number) of_priority[number % 4] += kept[number];
  // Probabilities 0, 1/6, 2/6 and 3/6 of 4000 trials, whose standard deviations are 24 to 32.
  CHECK(of_priority[0] == 0);
  CHECK(of_priority[1] == Approx(4000 / 6.0).margin(5 * 24));
  CHECK(of_priority[2] == Approx(4000 / 3.0).margin(5 * 30));
  CHECK(of_priority[3] == Approx(4000 / 2.0).margin(5 * 32));
  for (std::size_t number = 3; number < samples; number += 4) CHECK(kept[number] == Approx(200).margin(5 * 14));
}

TEST_CASE("a buffer by priority needs priorities, and a restored one keeps the same samples", "[simulation]") {
  SampleBuffer buffer("samples", settings_of(SampleChoice::priority, 6, 2), 5);
  const auto put = [](SampleBuffer& to, std::int64_t first) {
    auto batch = numbered_samples(first, 20);
    batch.priorities = at::arange(1, 21, at::kFloat);
    to.put(batch);
  };
  CHECK_THROWS_WITH(buffer.put(numbered_samples(0, 3)), ContainsSubstring("HORTATOR_PRIORITY"));
  auto wrong = numbered_samples(0, 3);
  wrong.priorities = at::full({3}, -1.0, at::kDouble);
  CHECK_THROWS_AS(buffer.put(wrong), UsageError);
  wrong.priorities = at::zeros({2}, at::kDouble);
  CHECK_THROWS_AS(buffer.put(wrong), UsageError);
  CHECK(buffer.seen() == 0);
  put(buffer, 0);
  CHECK(buffer.count() == 6);
  SampleBuffer other("samples", settings_of(SampleChoice::priority, 6, 2), 5);
  other.load(copy_of(buffer.state()));
  put(buffer, 20);
  put(other, 20);
  CHECK(held_numbers(buffer) == held_numbers(other));
  CHECK(at::equal(buffer.state().get<at::Tensor>("keys"), other.state().get<at::Tensor>("keys")));
  SampleBuffer smaller("samples", settings_of(SampleChoice::priority, 3, 2), 5);
  smaller.load(buffer.state());
  CHECK(smaller.count() == 3);
  CHECK_NOTHROW(put(smaller, 40));
}

TEST_CASE("samples that were handed over are gone, and the next ones are kept by new choices", "[simulation]") {
  SampleBuffer buffer("ring", settings_of(SampleChoice::ring, 5, 2), 1);
  buffer.put(numbered_samples(0, 7));
  const auto all = buffer.all().inputs[0].flatten();
  CHECK(at::equal(all, at::arange(2, 7, at::kDouble)));  // from the oldest to the newest
  buffer.hand_over();
  CHECK(buffer.count() == 0);
  SampleBuffer taker("taker", settings_of(SampleChoice::ring, 9, 2), 1);
  taker.take_over(taker.check({numbered_samples(0, 2), numbered_samples(2, 1)}));
  CHECK(taker.count() == 3);
  CHECK(taker.moves() == buffer.moves());
  const auto kept_after = [](int moves) {
    SampleBuffer reservoir("reservoir", settings_of(SampleChoice::reservoir, 5, 2), 1);
    for (; moves > 0; --moves) reservoir.hand_over();
    reservoir.put(numbered_samples(0, 100));
    return held_numbers(reservoir);
  };
  CHECK(kept_after(0) != kept_after(1));
  CHECK(kept_after(1) != kept_after(2));
}

TEST_CASE("the layout of samples describes them", "[simulation]") {
  SampleStore store(4);
  CHECK(store.layout().empty());
  TensorBatch batch{.inputs = {at::zeros({2, 3}), at::zeros({2}, at::kLong)},
                    .targets = {at::zeros({2, 1, 5}, at::kDouble)}};
  store.copy_rows(batch, 0, 0, 2);
  const auto same = SampleStore::batch_of(store.layout(), 7);
  CHECK(same.inputs[0].sizes() == at::IntArrayRef({7, 3}));
  CHECK(same.inputs[1].sizes() == at::IntArrayRef({7}));
  CHECK(same.inputs[1].scalar_type() == at::kLong);
  CHECK(same.targets[0].sizes() == at::IntArrayRef({7, 1, 5}));
  CHECK(same.targets[0].scalar_type() == at::kDouble);
  CHECK(same.loss_arguments.empty());
}

TEST_CASE("a draw has no sample twice, and each is drawn equally often", "[simulation]") {
  std::vector<int> drawn(20, 0);
  for (std::uint64_t key = 0; key < 2000; ++key) {
    const auto draw = draw_samples(5, 20, key);
    CHECK(std::set<std::int64_t>(draw.begin(), draw.end()).size() == 5);
    for (const auto number : draw) ++drawn[static_cast<std::size_t>(number)];
  }
  // 2000 draws with probability 1/4: 500, with a standard deviation of 19.4.
  CHECK(*std::ranges::min_element(drawn) > 500 - 5 * 19.4);
  CHECK(*std::ranges::max_element(drawn) < 500 + 5 * 19.4);
  CHECK(draw_samples(3, 3, 1).size() == 3);
}

TEST_CASE("samples of another number of ranks are distributed in equal parts, each at most once", "[simulation]") {
  const std::vector<std::int64_t> counts = {5, 0, 4};
  std::set<std::pair<int, std::int64_t>> all;
  for (int rank = 0; rank < 2; ++rank) {
    const auto mine = redistribute(counts, 2, rank, 10);
    CHECK(mine.size() == (rank == 0 ? 5 : 4));
    for (const auto& origin : mine) all.emplace(origin.rank, origin.row);
  }
  CHECK(all.size() == 9);
  CHECK(redistribute(counts, 1, 0, 3).size() == 3);
  const std::vector<SampleOrigin> expected = {{0, 3}, {2, 2}};
  CHECK(std::ranges::equal(redistribute(counts, 4, 3, 3), expected));
}

TEST_CASE("put copies strided samples, and refuses samples of another shape without any change", "[simulation]") {
  SampleBuffer buffer("samples", settings_of(SampleChoice::ring, 8, 2), 1);
  auto field = at::randn({6, 4, 3}, at::kFloat);
  const auto section = field.slice(0, 0, 6, 2).slice(1, 1, 3);
  buffer.put({.inputs = {section}, .targets = {section}});
  const auto before = section.clone();
  field.zero_();
  CHECK(at::equal(buffer.state().get<at::Tensor>("samples/inputs0"), before));
  const auto state = buffer.state();
  CHECK_THROWS_AS(buffer.put({.inputs = {at::zeros({2, 3, 3})}, .targets = {at::zeros({2, 3, 3})}}), UsageError);
  CHECK_THROWS_AS(buffer.put({.inputs = {at::zeros({2, 2, 3}, at::kDouble)}, .targets = {at::zeros({2, 2, 3})}}),
                  UsageError);
  CHECK_THROWS_AS(buffer.put({.inputs = {at::zeros({2, 2, 3})}, .targets = {at::zeros({3, 2, 3})}}), UsageError);
  CHECK_THROWS_AS(buffer.put({.inputs = {at::zeros({2, 2, 3})}}), UsageError);
  CHECK_THROWS_AS(buffer.put({}), UsageError);
  CHECK(buffer.seen() == 3);
  CHECK(at::equal(buffer.state().get<at::Tensor>("statistics/input"), state.get<at::Tensor>("statistics/input")));
}

TEST_CASE("a restored buffer holds, keeps and draws the same samples", "[simulation]") {
  const auto choice = GENERATE(SampleChoice::ring, SampleChoice::reservoir);
  SampleBuffer buffer("samples", settings_of(choice, 7, 3), 5);
  buffer.put(numbered_samples(0, 20));
  buffer.draw();
  SampleBuffer other("samples", settings_of(choice, 7, 3), 5);
  other.load(copy_of(buffer.state()));
  for (int i = 0; i < 3; ++i) {
    buffer.put(numbered_samples(20 + i, 1));
    other.put(numbered_samples(20 + i, 1));
    CHECK(at::equal(buffer.draw().inputs[0], other.draw().inputs[0]));
  }
  CHECK(held_numbers(buffer) == held_numbers(other));
  CHECK(at::equal(buffer.statistics().input.packed(), other.statistics().input.packed()));
}

TEST_CASE("a buffer of another capacity takes over as many samples as it can hold", "[simulation]") {
  SampleBuffer buffer("samples", settings_of(SampleChoice::reservoir, 8, 2), 5);
  buffer.put(numbered_samples(0, 30));
  for (const std::int64_t capacity : {4, 16}) {
    SampleBuffer other("samples", settings_of(SampleChoice::reservoir, capacity, 2), 5);
    other.load(buffer.state());
    CHECK(other.count() == std::min<std::int64_t>(capacity, 8));
    CHECK_NOTHROW(other.draw());
  }
}

TEST_CASE("a ring of another capacity takes over the newest samples", "[simulation]") {
  using Numbers = std::vector<double>;
  SampleBuffer buffer("ring", settings_of(SampleChoice::ring, 8, 2), 5);
  buffer.put(numbered_samples(0, 30));
  SampleBuffer smaller("ring", settings_of(SampleChoice::ring, 4, 2), 5);
  smaller.load(buffer.state());
  CHECK(held_numbers(smaller) == Numbers{26, 27, 28, 29});
  smaller.put(numbered_samples(30, 1));
  CHECK(held_numbers(smaller) == Numbers{30, 27, 28, 29});
  SampleBuffer larger("ring", settings_of(SampleChoice::ring, 9, 2), 5);
  larger.load(buffer.state());
  larger.put(numbered_samples(30, 2));  // 22, the oldest, leaves
  auto held = held_numbers(larger);
  std::ranges::sort(held);
  CHECK(held == Numbers{23, 24, 25, 26, 27, 28, 29, 30, 31});
}

TEST_CASE("of rings of other ranks the newest samples are taken over", "[simulation]") {
  const auto taken = redistribute({5, 5}, 1, 0, 4, /*newest=*/true);
  CHECK((taken == std::vector<SampleOrigin>{{0, 3}, {0, 4}, {1, 3}, {1, 4}}));
  CHECK(slot_of_age(0, 30, 8) == 6);
  CHECK(slot_of_age(7, 30, 8) == 5);
  CHECK(slot_of_age(2, 5, 8) == 2);
}

TEST_CASE("statistics do not depend on how samples arrive", "[simulation]") {
  const auto numbers = at::randn({50, 3, 4}, at::kDouble) * 3 + 7;
  FeatureStatistics whole;
  whole.add(numbers, 1);
  FeatureStatistics first;
  FeatureStatistics rest;
  first.add(numbers.slice(0, 0, 1), 1);
  rest.add(numbers.slice(0, 1, 20), 1);
  rest.add(numbers.slice(0, 20, 50), 1);
  first.merge(rest);
  CHECK(whole.count() == 200);
  CHECK(first.count() == 200);
  const auto flat = numbers.movedim(1, 0).flatten(1);
  for (const auto* statistics : {&whole, &first}) {
    CHECK(at::allclose(statistics->mean(), flat.mean(1)));
    CHECK(at::allclose(statistics->deviation(), flat.std(1, /*unbiased=*/false)));
    CHECK(at::equal(statistics->min(), flat.amin(1)));
    CHECK(at::equal(statistics->max(), flat.amax(1)));
  }
  FeatureStatistics constant;
  constant.add(at::full({4, 2}, 5.0, at::kDouble), 1);
  CHECK(at::equal(constant.deviation(), at::full({2}, 1.0, at::kDouble)));
  FeatureStatistics rounded;  // three times 0.1 are not 0.3
  rounded.add(at::full({3, 2}, 0.1, at::kDouble), 1);
  CHECK(at::equal(rounded.deviation(), at::full({2}, 1.0, at::kDouble)));
  CHECK_THROWS_WITH(rounded.add(at::zeros({3}), 1), ContainsSubstring("no features in dimension 1"));
  CHECK_THROWS_WITH(rounded.add(at::zeros({3, 2}), 0), ContainsSubstring("no features in dimension 0"));
  CHECK(at::equal(FeatureStatistics::of_packed(whole.packed()).packed(), whole.packed()));
  CHECK_THROWS_AS(constant.add(at::zeros({4, 3}), 1), UsageError);
}
