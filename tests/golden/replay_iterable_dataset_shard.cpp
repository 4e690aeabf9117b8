// Distribution of the samples of a stream over ranks.
#include <hortator/error.hpp>

#include "core/text/text.hpp"
#include "data/loader/stream_reader.hpp"
#include "replay.hpp"
#include "streams.hpp"

namespace hortator::golden {
namespace {

using Stream = detail::StreamSourceOf<CountingStream, detail::DefaultJoin>;

bool is_iterable_dataset_shard(const json& file) {
  const auto& one = file.at("cases").front();
  for (const char* field : {"n", "bs", "world", "drop_last", "split"}) {
    if (!one.contains(field)) return false;
  }
  for (const char* field : {"mode", "kind", "skip", "even"}) {
    if (one.contains(field)) return false;
  }
  return (one.contains("ranks") && one.contains("len")) || one.contains("error");
}

// Accelerate also completes the last batch of a single rank, which its prepare() never requests.
data::BatchShard shard_of(const json& one, int rank) {
  return data::BatchShard({.samples = data::endless,
                           .batch_size = one.at("bs"),
                           .rank = rank,
                           .world = one.at("world"),
                           .split = flag(one, "split"),
                           .drop_last = flag(one, "drop_last")});
}

struct Read {
  std::vector<std::int64_t> samples;
  std::int64_t len = 0;  ///< the size known before reading
};

Read read(const json& one, int rank) {
  const auto shard = shard_of(one, rank);
  const auto count = one.at("n").get<std::int64_t>();
  Stream source({.count = count, .has_size = true}, {});
  data::StreamReader reader(source, shard, {});
  Read result;
  const auto slice = shard.total_batch_size() / shard.spec().world;
  result.len = shard.of(*source.size()).size() * slice;
  for (std::int64_t step = 0;; ++step) {
    const auto deliveries = reader.read(step, {&rank, 1});
    const auto& delivery = deliveries.front();
    if (!delivery.batch) return result;
    const auto batch = numbers_of(*static_cast<at::Tensor*>(delivery.batch.get()));
    result.samples.insert(result.samples.end(), batch.begin(), batch.end());
  }
}

bool splits_nothing(const json& one) { return flag(one, "split") && one.at("bs") == 1 && one.at("world") > 1; }

// Accelerate rejects such batches as well, except batches of one sample, which no rank gets.
Outcome judge_refused_dataset(const json& one) {
  try {
    shard_of(one, 0);
  } catch (const UsageError& error) {
    const bool has_reason = std::string_view(error.what()).find("cannot be split over") != std::string_view::npos;
    if (!has_reason) return differs(text::concat("rejected for another reason: ", error.what()));
    return one.contains("error") ? equal() : on_purpose("one_sample_cannot_be_split");
  }
  return differs("not rejected");
}

Outcome judge_iterable_dataset_shard(const json& one, const json&) {
  if (one.contains("error") || splits_nothing(one)) return judge_refused_dataset(one);
  auto outcome = equal();
  for (int rank = 0; rank < one.at("world").get<int>(); ++rank) {
    const auto index = static_cast<std::size_t>(rank);
    const auto ours = read(one, rank);
    const auto same = compare(text::concat("what rank ", rank, " gets"), ours.samples, one.at("ranks").at(index));
    if (!same.difference.empty()) return same;
    if (ours.len != static_cast<std::int64_t>(ours.samples.size())) {
      return differs(
          text::concat("rank ", rank, ": the size is ", ours.len, " samples, but there are ", ours.samples.size()));
    }
    if (one.at("len").at(index) == ours.len) continue;
    if (!flag(one, "split")) return compare("the length", ours.len, one.at("len").at(index));
    outcome = on_purpose("length_is_what_is_handed_out");
  }
  return outcome;
}

}  // namespace

Format iterable_dataset_shard() {
  return {.name = "iterable_dataset_shard",
          .recognises = is_iterable_dataset_shard,
          .world = [](const json&) { return 0; },
          .judge = judge_iterable_dataset_shard};
}

}  // namespace hortator::golden
