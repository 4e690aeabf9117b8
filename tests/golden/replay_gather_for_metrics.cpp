// gather_for_metrics gives exactly the data set with every kind of loader, on real ranks.
#include <algorithm>
#include <hortator/accelerator.hpp>
#include <numeric>

#include "core/text/text.hpp"
#include "replay.hpp"
#include "streams.hpp"

namespace hortator::golden {
namespace {

using Numbers = std::vector<std::int64_t>;
using Batches = std::vector<Numbers>;
using Loader = DataLoader<at::Tensor>;

bool is_gather_for_metrics(const json& file) {
  const auto& one = file.at("cases").front();
  return one.contains("mode") && one.contains("bs") && one.contains("even") && one.contains("split");
}

std::string mode_of(const json& one) {
  return one_of(one, "mode", {"shard", "dispatch", "iter", "iter_len", "iter_shard", "iter_len_shard", "objects"});
}
bool is_stream(const json& one) { return mode_of(one).starts_with("iter"); }
bool is_dispatched(const json& one) {
  return mode_of(one) == "dispatch" || (is_stream(one) && !mode_of(one).ends_with("shard"));
}

// Cached for cases with the same options: creating an Accelerator takes longer than a case.
std::map<std::string, std::unique_ptr<Accelerator>>& accelerators() {
  static std::map<std::string, std::unique_ptr<Accelerator>> all;
  return all;
}

AcceleratorOptions options_of(const json& one) {
  AcceleratorOptions options;
  options.data.split_batches = flag(one, "split");
  options.data.even_batches = flag(one, "even");
  if (mode_of(one) == "dispatch") options.data.dispatch_batches = true;
  if (mode_of(one).ends_with("shard")) options.data.dispatch_batches = false;
  return options;
}

Accelerator& accelerator_for(const json& one) {
  const auto options = options_of(one);
  const auto& data = options.data;
  auto& accelerator = accelerators()[text::concat(
      data.split_batches, data.even_batches, data.dispatch_batches.value_or(false), data.dispatch_batches.has_value())];
  if (!accelerator) accelerator = std::make_unique<Accelerator>(options);
  accelerator->free_memory();
  return *accelerator;
}

Loader loader_of(const json& one) {
  const LoaderOptions options{.batch_size = one.at("bs"), .drop_last = flag(one, "drop_last")};
  const auto count = one.at("n").get<std::int64_t>();
  if (!is_stream(one)) return data_loader(CountingDataset{count}, options);
  const bool has_size = mode_of(one).find("len") != std::string::npos;
  return data_loader(CountingStream{.count = count, .has_size = has_size}, options);
}

// Returns the samples that must be gathered.
Numbers expected(const json& one) {
  auto count = one.at("n").get<std::int64_t>();
  const auto total = one.at("bs").get<std::int64_t>() * (flag(one, "split") ? 1 : one.at("world").get<std::int64_t>());
  if (flag(one, "drop_last")) count -= count % total;
  Numbers all(static_cast<std::size_t>(count));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

struct Epoch {
  Batches own = {};
  Batches gathered = {};
  std::vector<int> end_flags = {};
  std::int64_t remainder = 0;
  std::int64_t last_rows = 0;  ///< rows of the last step, over all ranks, without repetitions
};

Epoch run(Accelerator& accelerator, const Loader& loader) {
  Epoch epoch;
  for (auto& batch : loader) {
    epoch.own.push_back(numbers_of(batch));
    epoch.gathered.push_back(numbers_of(accelerator.gather_for_metrics(batch)));
    epoch.end_flags.push_back(loader.end_of_dataloader() ? 1 : 0);
    epoch.remainder = loader.remainder();
    epoch.last_rows = loader.new_samples();
  }
  return epoch;
}

Numbers flat(const Batches& batches) {
  Numbers all;
  for (const auto& batch : batches) all.insert(all.end(), batch.begin(), batch.end());
  return all;
}

bool has_unequal(const json& one) {
  const auto& gathered = one.at("gathered");
  return std::find(gathered.begin(), gathered.end(), "unequal") != gathered.end();
}

/// Collects differences and rules.
class Findings {
 public:
  void require(std::string_view name, const json& ours, const json& theirs) { add(compare(name, ours, theirs)); }
  void require_or(const char* rule, bool holds, std::string_view name, const json& ours, const json& theirs) {
    add(ours == theirs ? equal() : holds ? on_purpose(rule) : compare(name, ours, theirs));
  }
  Outcome outcome() const { return outcome_; }

 private:
  void add(Outcome found) {
    if (!outcome_.difference.empty()) return;
    if (!found.difference.empty() || !found.rule.empty()) outcome_ = std::move(found);
  }
  Outcome outcome_;
};

// An epoch without a batch is an error in Accelerate's dispatching loader.
Outcome judge_error(const json& one, const Epoch& epoch) {
  const bool none = epoch.own.empty() && expected(one).empty();
  return none ? on_purpose("an_epoch_may_have_no_batch")
              : differs(text::concat("Accelerate fails with ", one.at("error")));
}

Outcome judge_objects(Accelerator& accelerator, const json& one) {
  auto loader = accelerator.prepare(loader_of(one));
  auto gathered = json::array();
  for (auto& batch : loader) {
    std::vector<std::string> names;
    for (const auto number : numbers_of(batch)) names.push_back(text::concat('s', number));
    gathered.push_back(accelerator.gather_for_metrics(names));
  }
  return compare("what is gathered", gathered, one.at("gathered"));
}

void judge_batches(Findings& findings, const json& one, const Epoch& epoch, std::size_t rank) {
  const auto& theirs = one.at("ranks").at(rank);
  if (!is_dispatched(one) || !has_unequal(one)) return findings.require("the batches", epoch.own, theirs);
  const bool none_empty =
      std::none_of(epoch.own.begin(), epoch.own.end(), [](const auto& batch) { return batch.empty(); });
  findings.require_or("no_rank_gets_an_empty_slice", none_empty && epoch.own.size() == theirs.size(), "the batches",
                      epoch.own, theirs);
}

// Rank 0 takes part in every step; with uneven batches other ranks may have finished.
void judge_gathered(Findings& findings, const json& one, const Epoch& epoch, std::size_t rank) {
  const auto all = flat(epoch.gathered);
  const auto exact = expected(one);
  if (has_unequal(one)) {
    const bool is_start = all.size() <= exact.size() && std::equal(all.begin(), all.end(), exact.begin());
    if (!is_start || (rank == 0 && all != exact)) findings.require("what is gathered", all, exact);
    return findings.require_or("unequal_batches_are_gathered", true, "what is gathered", epoch.gathered,
                               one.at("gathered"));
  }
  findings.require_or("a_stream_is_gathered_without_repetitions", is_stream(one) && all == exact, "what is gathered",
                      epoch.gathered, one.at("gathered"));
}

// With a dispatching loader Accelerate's remainder is the size of the last step, even if it repeats nothing.
void judge_remainder(Findings& findings, const json& one, const Epoch& epoch) {
  const auto& theirs = one.at("remainder");
  if (epoch.own.empty()) return;
  if (is_dispatched(one)) return findings.require("the samples in the last step", epoch.last_rows, theirs);
  const auto of_step =
      one.at("bs").get<std::int64_t>() * (flag(one, "split") ? 1 : one.at("world").get<std::int64_t>());
  const auto exact = flag(one, "drop_last") ? -1 : one.at("n").get<std::int64_t>() % of_step;
  findings.require_or("the_remainder_of_a_stream_is_known", is_stream(one) && epoch.remainder == exact, "the remainder",
                      epoch.remainder, theirs);
}

void judge_length(Findings& findings, const json& one, const Loader& loader, const Epoch& epoch) {
  if (!loader.has_size()) return findings.require("the length", json(), one.at("len"));
  findings.require_or("length_is_what_is_handed_out", loader.size() == static_cast<std::int64_t>(epoch.own.size()),
                      "the length", loader.size(), one.at("len"));
  findings.require("the length and the number of batches", loader.size(), epoch.own.size());
}

Outcome judge_gather_for_metrics(const json& one, const json&) {
  auto& accelerator = accelerator_for(one);
  if (mode_of(one) == "objects") return judge_objects(accelerator, one);
  auto loader = accelerator.prepare(loader_of(one));
  const auto epoch = run(accelerator, loader);
  if (one.contains("error")) return judge_error(one, epoch);
  const auto rank = static_cast<std::size_t>(accelerator.process_index());
  Findings findings;
  judge_batches(findings, one, epoch, rank);
  judge_gathered(findings, one, epoch, rank);
  if (rank == 0) {
    findings.require("the flags", epoch.end_flags, one.at("end_flags"));
    judge_remainder(findings, one, epoch);
    judge_length(findings, one, loader, epoch);
  }
  return findings.outcome();
}

}  // namespace

Format gather_for_metrics() {
  return {.name = "gather_for_metrics",
          .recognises = is_gather_for_metrics,
          .world = [](const json& one) { return one.at("world").get<int>(); },
          .judge = judge_gather_for_metrics,
          .finish = [] { accelerators().clear(); }};
}

}  // namespace hortator::golden
