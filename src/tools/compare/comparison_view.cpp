#include "tools/compare/comparison_view.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/text/json.hpp"
#include "core/text/text.hpp"

namespace hortator::tools {
namespace {

using observe::TensorRecord;

std::string run_line(const char* side, const std::string& name, const RunRecord& run) {
  return text::concat(side, "  ", name, ": step ", run.front().step, ", ",
                      text::count(static_cast<long long>(run.size()), "rank"), ", ",
                      text::count(static_cast<long long>(run.front().operators.size()), "operator"), " on rank 0\n");
}

std::string unmatched_line(const char* side, const std::vector<AlignedCall>& calls) {
  if (calls.empty()) return "";
  return text::concat("only in ", side, ": ", text::count(static_cast<long long>(calls.size()), "operator"), ", first ",
                      calls.front().text(), '\n');
}

std::string shape_of(const TensorRecord& tensor) {
  return text::concat(tensor.type, " [", text::join(tensor.sizes), ']');
}

std::string where(const CallDifference& difference) {
  if (difference.ranks.empty()) return "over all ranks, which have other parts in the other run";
  const std::string noun = difference.ranks.size() == 1 ? "rank " : "ranks ";
  if (!difference.is_on_all) return text::concat("only on ", noun, text::join(difference.ranks));
  return difference.ranks.size() == 1 ? text::concat("on rank ", difference.ranks.front()) : "on all ranks";
}

std::string inputs_of(const CallDifference& difference) {
  if (!difference.compares_inputs || difference.call.name.find("::") == std::string::npos) return "";
  if (!difference.input) return "  its inputs are equal: this operator computes something else\n";
  return text::concat("  its input ", *difference.input,
                      " differs already: a call that one run does not have, or code that is not an operator, has made "
                      "it\n");
}

std::string numbers_of(const TensorRecord& tensor) {
  return text::print("sum %.17g, norm %.17g", tensor.sum, tensor.norm);
}

std::string details_of(const CallDifference& difference) {
  return text::concat("  ", difference.call.text(), "\n  bits ", to_string(difference.verdict), ", ", where(difference),
                      "\n  result ", difference.result, ": A ", shape_of(*difference.a), ", ",
                      numbers_of(*difference.a), "\n            B ", shape_of(*difference.b), ", ",
                      numbers_of(*difference.b), '\n', inputs_of(difference));
}

std::string other_parts_line(const RunComparison& comparison) {
  const auto count = [&](TensorVerdict verdict) {
    return std::ranges::count(comparison.differences, verdict, &CallDifference::verdict);
  };
  const auto terms = count(TensorVerdict::parts_of_sum);
  const auto unrelated = count(TensorVerdict::unrelated);
  if (terms + unrelated == 0) return "";
  return text::concat("of these, on other parts in the two runs: ", terms, " terms of sums that agree, ", unrelated,
                      " that cannot be compared\n");
}

std::string listing_of(const RunComparison& comparison, std::size_t listed) {
  if (listed == 0) return "";
  std::string lines = "\nall differences, in the order of A:\n";
  for (std::size_t i = 0; i < std::min(listed, comparison.differences.size()); ++i) {
    const auto& difference = comparison.differences[i];
    lines +=
        text::concat("  ", difference.call.text(), ": ", to_string(difference.verdict), ", ", where(difference), '\n');
  }
  return lines;
}

nlohmann::ordered_json json_of(const CallDifference& difference) {
  nlohmann::ordered_json json{{"operator", difference.call.name}, {"module", difference.call.near},
                              {"call", difference.call.number},   {"backward", difference.call.is_backward},
                              {"result", difference.result},      {"verdict", to_string(difference.verdict)},
                              {"ranks", difference.ranks}};
  if (difference.call.part >= 0) json["part"] = difference.call.part;
  if (difference.compares_inputs) json["inputs_equal"] = !difference.input.has_value();
  json["norms"] = {core::json_of(difference.a->norm), core::json_of(difference.b->norm)};
  return json;
}

}  // namespace

std::string comparison_view(const ComparedRuns& runs, std::size_t listed) {
  const auto& comparison = runs.comparison;
  const auto& alignment = comparison.alignment;
  auto view = run_line("A", runs.name_a, runs.a) + run_line("B", runs.name_b, runs.b) +
              text::concat("in both: ", text::count(static_cast<long long>(alignment.both.size()), "operator"), '\n') +
              unmatched_line("A", alignment.only_a) + unmatched_line("B", alignment.only_b);
  const auto* const first = comparison.first(TensorVerdict::order);
  view += other_parts_line(comparison);
  if (alignment.both.empty())
    return view + "\nno operator is in both: the runs train other models, or one has recorded nothing\n";
  if (first == nullptr) return view + "\nno difference in what both have computed\n" + listing_of(comparison, listed);
  view += "\nfirst difference:\n" + details_of(*first);
  const auto* const more = comparison.first(TensorVerdict::more);
  if (more == nullptr) {
    view += "\nno operator differs by more than rounding\n";
  } else if (more != first) {
    view += "\nfirst difference by more than rounding:\n" + details_of(*more);
  }
  return view + listing_of(comparison, listed);
}

std::string comparison_json(const ComparedRuns& runs) {
  const auto& alignment = runs.comparison.alignment;
  nlohmann::ordered_json json{{"a", runs.name_a},
                              {"b", runs.name_b},
                              {"in_both", alignment.both.size()},
                              {"only_in_a", alignment.only_a.size()},
                              {"only_in_b", alignment.only_b.size()},
                              {"differences", nlohmann::ordered_json::array()}};
  for (const auto& difference : runs.comparison.differences) json["differences"].push_back(json_of(difference));
  return json.dump(2) + '\n';
}

}  // namespace hortator::tools
