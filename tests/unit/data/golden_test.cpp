// The cases measured on the reference: tests/golden/batch_sampler_shard.json and seedable_sampler.json.
#include <fstream>
#include <hortator/error.hpp>
#include <nlohmann/json.hpp>

#include "data/batch_shard.hpp"
#include "data/order.hpp"
#include "support/catch.hpp"

using namespace hortator;
using nlohmann::json;

namespace {

using Batches = std::vector<std::vector<std::int64_t>>;

json golden(const std::string& name) {
  std::ifstream file(std::string(HORTATOR_GOLDEN) + "/" + name);
  REQUIRE(file.good());
  return json::parse(file)["cases"];
}

bool flag(const json& entry, const char* name) { return entry.at(name).get<int>() != 0; }

// An inner sampler of varying batches has no batch size: whole batches are dealt, so the plan runs over their numbers.
data::ShardSpec spec_of(const json& entry, int rank) {
  const bool varying = entry["kind"] == "varying";
  return {.samples = varying ? static_cast<std::int64_t>(entry["batches"].size()) : entry["n"].get<std::int64_t>(),
          .batch_size = varying ? 1 : entry["bs"].get<std::int64_t>(),
          .rank = rank,
          .world = entry["world"],
          .split = flag(entry, "split"),
          .even = flag(entry, "even"),
          .drop_last = flag(entry, "drop_last")};
}

void append(Batches& batches, const json& entry, const data::Positions& positions) {
  if (entry["kind"] == "varying") {
    batches.push_back(entry["batches"][static_cast<std::size_t>(positions[0])].get<std::vector<std::int64_t>>());
    return;
  }
  auto& batch = batches.emplace_back();
  for (std::int64_t i = 0; i < positions.size(); ++i) {
    const auto position = positions[i];
    batch.push_back(entry.contains("order") ? entry["order"][static_cast<std::size_t>(position)].get<std::int64_t>()
                                            : position);
  }
}

Batches batches_of(const json& entry, const data::BatchShard& shard) {
  Batches batches;
  for (std::int64_t step = 0; step < shard.size(); ++step) append(batches, entry, shard.batch(step));
  return batches;
}

// Rule "len_is_what_is_yielded": with split_batches and without even_batches, the reference's len() counts a batch that
// ranks behind the last short batch never get. Ours is right.
bool reference_len_is_wrong(const json& entry) {
  return flag(entry, "split") && !flag(entry, "even") && !flag(entry, "drop_last");
}

}  // namespace

TEST_CASE("batches are dealt as the reference's BatchSamplerShard does") {
  int better = 0;
  for (const auto& entry : golden("batch_sampler_shard.json")) {
    INFO("case " << entry["id"]);
    if (entry.contains("error")) {
      CHECK_THROWS_WITH(data::BatchShard(spec_of(entry, 0)), ContainsSubstring("cannot be split over"));
      continue;
    }
    for (int rank = 0; rank < entry["world"].get<int>(); ++rank) {
      const auto expected = entry["ranks"][static_cast<std::size_t>(rank)].get<Batches>();
      const auto reference_len = entry["len"][static_cast<std::size_t>(rank)].get<std::int64_t>();
      const data::BatchShard shard(spec_of(entry, rank));
      CHECK(batches_of(entry, shard) == expected);
      CHECK(shard.size() == static_cast<std::int64_t>(expected.size()));
      if (shard.size() == reference_len) continue;
      CHECK(reference_len_is_wrong(entry));
      ++better;
    }
  }
  CHECK(better == 132);
}

TEST_CASE("shuffled orders are the reference's seedable sampler's, number for number") {
  int orders = 0;
  const auto check = [&](const json& entry, const json& expected, std::int64_t epoch) {
    INFO("case " << entry["id"] << ", epoch " << epoch);
    const auto samples = entry["n"].get<std::int64_t>();
    const auto order = data::shuffled_order(samples, entry["data_seed"].get<std::uint64_t>(), epoch);
    std::vector<std::int64_t> drawn;
    for (std::int64_t i = 0; i < samples; ++i) drawn.push_back(order->sample_at(i));
    CHECK(drawn == expected.get<std::vector<std::int64_t>>());
    ++orders;
  };
  for (const auto& entry : golden("seedable_sampler.json")) {
    if (entry.contains("replacement")) continue;  // drawing with replacement is another order
    if (!entry.contains("three_epochs")) {
      check(entry, entry["order"], entry["epoch"]);
      continue;
    }
    for (int pass = 0; pass < 3; ++pass) check(entry, entry["order"][pass], entry["epoch"].get<std::int64_t>() + pass);
  }
  CHECK(orders == 48);
}
