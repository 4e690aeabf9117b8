// Shuffled orders are equal number by number.
#include <algorithm>
#include <numeric>

#include "core/text/text.hpp"
#include "data/orders/order.hpp"
#include "replay.hpp"

namespace hortator::golden {
namespace {

bool is_seedable_sampler(const json& file) {
  const auto& one = file.at("cases").front();
  return one.contains("data_seed") && one.contains("epoch_after") && one.contains("order");
}

std::vector<std::int64_t> drawn(const json& one, std::int64_t epoch) {
  const auto samples = one.at("n").get<std::int64_t>();
  const auto order = data::randperm_sampler()->order(
      {.dataset_size = samples, .seed = one.at("data_seed").get<std::uint64_t>(), .epoch = epoch});
  std::vector<std::int64_t> all;
  for (std::int64_t i = 0; i < samples; ++i) all.push_back(order->sample_at(i));
  return all;
}

// Hortator's orders have no repetitions: an epoch has each sample once.
Outcome judge_replacement(const json& one) {
  auto order = drawn(one, one.at("epoch"));
  std::sort(order.begin(), order.end());
  std::vector<std::int64_t> all(order.size());
  std::iota(all.begin(), all.end(), 0);
  return order == all ? on_purpose("an_epoch_has_each_sample_once") : differs("an epoch has a sample twice");
}

Outcome judge_seedable_sampler(const json& one, const json&) {
  const auto first = one.at("epoch").get<std::int64_t>();
  if (one.contains("replacement")) return judge_replacement(one);
  if (!one.contains("three_epochs")) return compare("the order", drawn(one, first), one.at("order"));
  for (std::int64_t pass = 0; pass < 3; ++pass) {
    const auto same = compare(text::concat("the order of epoch ", first + pass), drawn(one, first + pass),
                              one.at("order").at(static_cast<std::size_t>(pass)));
    if (!same.difference.empty()) return same;
  }
  return equal();
}

}  // namespace

Format seedable_sampler() {
  return {.name = "seedable_sampler",
          .recognises = is_seedable_sampler,
          .world = [](const json&) { return 0; },
          .judge = judge_seedable_sampler};
}

}  // namespace hortator::golden
