// Distribution of batches over ranks.
#include <hortator/error.hpp>

#include "core/text/text.hpp"
#include "data/sharding/batch_shard.hpp"
#include "replay.hpp"

namespace hortator::golden {
namespace {

using Batches = std::vector<std::vector<std::int64_t>>;

bool is_batch_sampler_shard(const json& file) {
  const auto& one = file.at("cases").front();
  for (const char* field : {"bs", "drop_last", "even", "kind", "split"}) {
    if (!one.contains(field)) return false;
  }
  const auto& kind = one.at("kind");
  return (kind == "sequential" || kind == "order" || kind == "varying") &&
         (one.contains("len") || one.contains("error"));
}

// An inner sampler of varying batches has no batch size: whole batches are distributed, by index.
data::ShardSpec spec_of(const json& one, int rank) {
  const bool varying = one_of(one, "kind", {"sequential", "order", "varying"}) == "varying";
  return {.samples = varying ? static_cast<std::int64_t>(one.at("batches").size()) : one.at("n").get<std::int64_t>(),
          .batch_size = varying ? 1 : one.at("bs").get<std::int64_t>(),
          .rank = rank,
          .world = one.at("world"),
          .split = flag(one, "split"),
          .even = flag(one, "even"),
          .drop_last = flag(one, "drop_last")};
}

std::vector<std::int64_t> batch_of(const json& one, const data::Positions& positions) {
  if (one.at("kind") == "varying") return one.at("batches").at(static_cast<std::size_t>(positions[0]));
  std::vector<std::int64_t> batch;
  for (std::int64_t i = 0; i < positions.size(); ++i) {
    const auto position = static_cast<std::size_t>(positions[i]);
    batch.push_back(one.contains("order") ? one.at("order").at(position).get<std::int64_t>() : positions[i]);
  }
  return batch;
}

Batches batches_of(const json& one, const data::BatchShard& shard) {
  Batches batches;
  for (std::int64_t step = 0; step < shard.size(); ++step) batches.push_back(batch_of(one, shard.batch(step)));
  return batches;
}

Outcome judge_refused_sampler(const json& one) {
  try {
    const data::BatchShard shard(spec_of(one, 0));
  } catch (const UsageError& error) {
    const bool has_reason = std::string_view(error.what()).find("cannot be split over") != std::string_view::npos;
    return has_reason ? equal() : differs(text::concat("rejected for another reason: ", error.what()));
  }
  if (one.at("kind") == "varying" && one.at("world") == 1) return on_purpose("one_rank_splits_nothing");
  return differs(text::concat("not rejected; Accelerate fails with ", one.at("error")));
}

// With split_batches and without even_batches, Accelerate's len() counts a batch that ranks after the last short batch
// never get.
bool reference_len_is_wrong(const json& one) {
  return flag(one, "split") && !flag(one, "even") && !flag(one, "drop_last");
}

Outcome judge_batch_sampler_shard(const json& one, const json&) {
  if (one.contains("error")) return judge_refused_sampler(one);
  auto outcome = equal();
  for (int rank = 0; rank < one.at("world").get<int>(); ++rank) {
    const auto& expected = one.at("ranks").at(static_cast<std::size_t>(rank));
    const auto& reference_len = one.at("len").at(static_cast<std::size_t>(rank));
    const data::BatchShard shard(spec_of(one, rank));
    const auto same = compare(text::concat("what rank ", rank, " gets"), batches_of(one, shard), expected);
    if (!same.difference.empty()) return same;
    if (shard.size() != static_cast<std::int64_t>(expected.size())) {
      return differs(
          text::concat("rank ", rank, ": the size is ", shard.size(), " batches, but there are ", expected.size()));
    }
    if (reference_len == shard.size()) continue;
    if (!reference_len_is_wrong(one))
      return compare(text::concat("rank ", rank, "'s length"), shard.size(), reference_len);
    outcome = on_purpose("length_is_what_is_handed_out");
  }
  return outcome;
}

}  // namespace

Format batch_sampler_shard() {
  return {.name = "batch_sampler_shard",
          .recognises = is_batch_sampler_shard,
          .world = [](const json&) { return 0; },
          .judge = judge_batch_sampler_shard};
}

}  // namespace hortator::golden
