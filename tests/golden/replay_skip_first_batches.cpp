// Loaders without their first batches.
#include <algorithm>
#include <hortator/error.hpp>

#include "core/text/text.hpp"
#include "replay.hpp"
#include "streams.hpp"

namespace hortator::golden {
namespace {

using Batches = std::vector<std::vector<std::int64_t>>;
using Loader = DataLoader<at::Tensor>;

bool is_skip_first_batches(const json& file) {
  const auto& one = file.at("cases").front();
  return one.contains("kind") && one.contains("skip") && one.contains("bs") && one.contains("ranks");
}

Loader loader_of(const json& one, int rank) {
  const auto kind = one_of(
      one, "kind", {"shard", "iterable_shard", "plain", "plain_iterable", "SkipBatchSampler", "double_skip_rank1"});
  const LoaderOptions options{.batch_size = one.at("bs"), .drop_last = one.at("drop_last").get<int>() != 0};
  const auto count = one.at("n").get<std::int64_t>();
  auto loader = kind == "iterable_shard" || kind == "plain_iterable"
                    ? data_loader(CountingStream{.count = count}, options)
                    : data_loader(CountingDataset{count}, options);
  if (!kind.starts_with("plain") && kind != "SkipBatchSampler") loader.bind({.rank = rank, .world = one.at("world")});
  return loader;
}

struct Pass {
  Batches batches = {};
  std::vector<int> end_flags = {};
  std::optional<std::int64_t> remainder = {};
};

Pass pass_over(const Loader& loader) {
  Pass pass;
  for (auto& batch : loader) {
    pass.batches.push_back(numbers_of(batch));
    pass.end_flags.push_back(loader.end_of_dataloader() ? 1 : 0);
    pass.remainder = loader.remainder();
  }
  return pass;
}

Outcome first_difference(std::initializer_list<Outcome> outcomes) {
  for (const auto& outcome : outcomes) {
    if (!outcome.difference.empty()) return outcome;
  }
  return equal();
}

// In Accelerate the length may be negative, which is an error there.
Outcome judge_length(const Loader& skipped, const Pass& pass, const json& theirs) {
  if (!skipped.has_size()) return compare("the length", json(), theirs);
  const auto size = skipped.size();
  if (size != static_cast<std::int64_t>(pass.batches.size()))
    return differs(text::concat("the length is ", size, ", but the number of batches is ", pass.batches.size()));
  if (theirs.is_null() && size == 0) return on_purpose("length_is_never_negative");
  return compare("the length", size, theirs);
}

// Accelerate loses the remainder, which gather_for_metrics needs. In Hortator it is that of the whole loader.
Outcome judge_remainder(const Pass& pass, const Pass& whole, const json& theirs) {
  if (!pass.remainder) return compare("the remainder", json(), theirs);
  if (pass.remainder != whole.remainder) return differs("the remainder is not that of the whole loader");
  return theirs == *pass.remainder ? equal() : on_purpose("remainder_is_kept");
}

// A pass over the skipping loader counts as an epoch of the loader.
Outcome judge_epoch(const Loader& loader) {
  return loader.epoch() == 2 ? equal() : differs("the loader did not count the epoch of the skipping loader");
}

Outcome judge_rank(const json& one, int rank, std::size_t index) {
  const auto loader = loader_of(one, rank);
  auto skipped = hortator::skip_first_batches(loader, one.at("skip").get<std::int64_t>());
  if (one.contains("skip2")) skipped = hortator::skip_first_batches(skipped, one.at("skip2").get<std::int64_t>());
  const auto pass = pass_over(skipped);
  const auto whole = pass_over(loader);
  const auto same = first_difference(
      {compare(text::concat("what rank ", rank, " gets"), pass.batches, one.at("ranks").at(index)), judge_epoch(loader),
       one.contains("end_flags") && rank == 0 ? compare("the flags", pass.end_flags, one.at("end_flags")) : equal()});
  if (!same.difference.empty()) return same;
  const auto length = judge_length(skipped, pass, one.at("len").at(index));
  const auto remainder =
      one.contains("remainder") && rank == 0 ? judge_remainder(pass, whole, one.at("remainder")) : equal();
  const auto worst = first_difference({length, remainder});
  if (!worst.difference.empty()) return worst;
  return remainder.rule.empty() ? length : remainder;
}

Outcome judge_skip_first_batches(const json& one, const json&) {
  if (one.at("kind") == "double_skip_rank1") return judge_rank(one, 1, 0);
  auto outcome = equal();
  for (int rank = 0; rank < one.at("world").get<int>(); ++rank) {
    const auto here = judge_rank(one, rank, static_cast<std::size_t>(rank));
    if (!here.difference.empty()) return here;
    if (!here.rule.empty()) outcome = here;
  }
  return outcome;
}

}  // namespace

Format skip_first_batches() {
  return {.name = "skip_first_batches",
          .recognises = is_skip_first_batches,
          .world = [](const json&) { return 0; },
          .judge = judge_skip_first_batches};
}

}  // namespace hortator::golden
