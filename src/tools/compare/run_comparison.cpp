#include "tools/compare/run_comparison.hpp"

#include <algorithm>
#include <hortator/error.hpp>
#include <utility>

#include "core/text/text.hpp"
#include "core/whole_file.hpp"

namespace hortator::tools {
namespace {

using observe::OperatorRecord;
using observe::TensorRecord;
using ByRank = std::map<int, const OperatorRecord*>;

std::optional<std::size_t> first_other_input(const OperatorRecord& a, const OperatorRecord& b) {
  const auto count = std::min(a.inputs.size(), b.inputs.size());
  for (std::size_t i = 0; i < count; ++i) {
    if (a.inputs[i].bits != b.inputs[i].bits) return i;
  }
  return std::nullopt;
}

bool have_same_shapes(const OperatorRecord& a, const OperatorRecord& b) {
  const auto is_same = [](const TensorRecord& one, const TensorRecord& other) { return one.sizes == other.sizes; };
  return std::ranges::equal(a.inputs, b.inputs, is_same) && std::ranges::equal(a.results, b.results, is_same);
}

/// Whether each rank has the same part in both runs.
bool have_same_parts(const ByRank& a, const ByRank& b) {
  return std::ranges::equal(a, b, [](const auto& one, const auto& other) {
    return one.first == other.first && have_same_shapes(*one.second, *other.second);
  });
}

CallDifference compare_by_rank(const AlignedCall& call, double units) {
  CallDifference difference{.call = call, .compares_inputs = true};
  for (const auto& [rank, a] : call.a) {
    const auto& b = *call.b.at(rank);
    auto worst = TensorVerdict::equal;
    for (std::size_t i = 0; i < a->results.size(); ++i) {
      const auto verdict = compare_same(a->results[i], b.results[i], units);
      worst = std::max(worst, verdict);
      if (verdict <= difference.verdict) continue;
      difference.verdict = verdict;
      difference.result = i;
      difference.a = &a->results[i];
      difference.b = &b.results[i];
      difference.input = first_other_input(*a, b);
    }
    if (worst != TensorVerdict::equal) difference.ranks.push_back(rank);
  }
  difference.is_on_all = difference.ranks.size() == call.a.size();
  return difference;
}

RankTensors results_of(const ByRank& ranks, std::size_t number) {
  RankTensors tensors;
  for (const auto& [rank, record] : ranks) {
    if (number < record->results.size()) tensors.push_back(&record->results[number]);
  }
  return tensors;
}

bool any_of_parts(const ByRank& ranks) {
  return std::ranges::any_of(ranks, [](const auto& rank) { return rank.second->is_of_parts; });
}

// The rule of an operator may compute something else of parts than of the whole, such as the sums of a softmax.
CallDifference compare_over_ranks(const AlignedCall& call, double units) {
  CallDifference difference{.call = call};
  for (std::size_t i = 0;; ++i) {
    const auto a = results_of(call.a, i);
    const auto b = results_of(call.b, i);
    if (a.empty() || b.empty()) break;
    auto verdict = compare_parts(a, b, units);
    if (verdict == TensorVerdict::more && (any_of_parts(call.a) || any_of_parts(call.b)))
      verdict = TensorVerdict::unrelated;
    if (verdict <= difference.verdict) continue;
    difference.verdict = verdict;
    difference.result = i;
    difference.a = a.front();
    difference.b = b.front();
  }
  return difference;
}

/// The latest record must be of this rank, and of the step and the run of the first one.
void require_of_run(const RunRecord& run, int rank, const std::filesystem::path& file) {
  const auto& first = run.front();
  const auto& last = run.back();
  if (last.rank == rank && last.step == first.step && last.ranks == first.ranks) return;
  throw UsageError({.what = text::concat(file.string(), " is the record of step ", last.step, " on rank ", last.rank,
                                         " of ", last.ranks),
                    .why = text::concat("expected step ", first.step, " on rank ", rank, " of ", first.ranks),
                    .hint = "record the step again, into an empty folder"});
}

}  // namespace

const CallDifference* RunComparison::first(TensorVerdict at_least) const {
  const auto found =
      std::ranges::find_if(differences, [&](const auto& difference) { return difference.verdict >= at_least; });
  return found == differences.end() ? nullptr : &*found;
}

RunComparison compare(const RunRecord& a, const RunRecord& b, double units) {
  RunComparison comparison{.alignment = align(a, b)};
  for (const auto& call : comparison.alignment.both) {
    auto difference = have_same_parts(call.a, call.b) ? compare_by_rank(call, units) : compare_over_ranks(call, units);
    if (difference.verdict != TensorVerdict::equal) comparison.differences.push_back(std::move(difference));
  }
  return comparison;
}

RunRecord read_run_record(const std::filesystem::path& folder) {
  RunRecord run;
  int ranks = 1;
  for (int rank = 0; rank < ranks; ++rank) {
    const auto file = folder / observe::record_file(rank);
    const auto text = core::read_whole(file);
    if (!text) {
      throw UsageError({.what = text::concat(file.string(), " cannot be read"),
                        .why = rank == 0 ? "the folder has no record of a step"
                                         : text::concat("the run had ", ranks, " ranks, and each writes a file"),
                        .hint = "record a step with `hortator launch --record-operators FOLDER`, or with "
                                "record_operators.py"});
    }
    run.push_back(observe::parse_step_record(*text, file));
    require_of_run(run, rank, file);
    ranks = run.front().ranks;
  }
  return run;
}

}  // namespace hortator::tools
