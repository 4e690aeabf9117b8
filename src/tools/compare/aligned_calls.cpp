#include "tools/compare/aligned_calls.hpp"

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include "core/text/text.hpp"
#include "tools/compare/tensor_verdict.hpp"

namespace hortator::tools {
namespace {

using observe::OperatorRecord;
using Group = std::tuple<int, bool, std::string, std::string>;  // part, direction, module, operator

using Side = std::map<int, const OperatorRecord*> AlignedCall::*;
using Groups = std::map<Group, std::vector<AlignedCall>>;

/// The calls of one run: ranks' calls of one number in a group are one call.
Groups groups_of(const RunRecord& run, Side side) {
  Groups groups;
  for (const auto& rank : run) {
    std::map<Group, std::size_t> counts;
    for (std::size_t i = 0; i < rank.operators.size(); ++i) {
      const auto& record = rank.operators[i];
      const Group group{record.part, record.is_backward, record.near, record.name};
      const auto number = counts[group]++;
      auto& calls = groups[group];
      if (number == calls.size()) {
        calls.push_back({.name = record.name,
                         .near = record.near,
                         .is_backward = record.is_backward,
                         .part = record.part,
                         .number = static_cast<int>(number + 1),
                         .position = i});
      }
      (calls[number].*side).emplace(rank.rank, &record);
    }
  }
  return groups;
}

bool have_same_sizes(const OperatorRecord& a, const OperatorRecord& b) {
  const auto is_same = [](const auto& one, const auto& other) { return one.sizes == other.sizes; };
  return std::ranges::equal(a.results, b.results, is_same) && std::ranges::equal(a.inputs, b.inputs, is_same);
}

// Tensors that were noted may be flat slices of parameters.
bool may_correspond(const OperatorRecord& a, const OperatorRecord& b) {
  if (a.name.find("::") == std::string::npos) return true;
  const auto is_part = [](const auto& one, const auto& other) { return may_be_parts(one, other); };
  return std::ranges::equal(a.results, b.results, is_part);
}

using Fits = bool (*)(const OperatorRecord&, const OperatorRecord&);

// The first that is not taken yet. Operators of one backward function may come in another order in another program.
void match(std::vector<AlignedCall>& a, std::vector<AlignedCall>& b, Fits fits) {
  for (auto& call : a) {
    if (!call.b.empty()) continue;
    const auto found = std::ranges::find_if(b, [&](const AlignedCall& other) {
      return other.a.empty() && fits(*call.a.begin()->second, *other.b.begin()->second);
    });
    if (found == b.end()) continue;
    call.b = found->b;
    found->a = call.a;  // taken
  }
}

}  // namespace

std::string AlignedCall::text() const {
  const bool is_noted = name.find("::") == std::string::npos;
  if (is_noted) return text::concat(name, ' ', near);
  return text::concat(name, ", call ", number, near.empty() ? " at the beginning" : text::concat(" in ", near),
                      is_backward ? " (backward)" : "",
                      part >= 0 ? text::concat(", part ", part, " of the batch") : "");
}

Alignment align(const RunRecord& a, const RunRecord& b) {
  auto of_a = groups_of(a, &AlignedCall::a);
  auto of_b = groups_of(b, &AlignedCall::b);
  Alignment alignment;
  for (auto& [group, calls] : of_a) {
    auto& others = of_b[group];
    match(calls, others, have_same_sizes);
    match(calls, others, may_correspond);
    for (auto& call : calls) (call.b.empty() ? alignment.only_a : alignment.both).push_back(std::move(call));
  }
  for (auto& [group, calls] : of_b) {
    for (auto& call : calls)
      if (call.a.empty()) alignment.only_b.push_back(std::move(call));
  }
  for (auto* const list : {&alignment.both, &alignment.only_a, &alignment.only_b})
    std::ranges::stable_sort(*list, {}, &AlignedCall::position);
  return alignment;
}

}  // namespace hortator::tools
