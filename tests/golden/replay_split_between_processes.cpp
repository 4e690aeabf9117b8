// Splitting values, which all ranks have, between the ranks.
#include <ATen/ops/arange.h>

#include <hortator/accelerator.hpp>
#include <hortator/error.hpp>
#include <hortator/parallel/split_between_processes.hpp>

#include "core/text/text.hpp"
#include "replay.hpp"
#include "tensors.hpp"

namespace hortator::golden {
namespace {

using List = std::vector<json>;
using Lists = std::map<std::string, List>;

bool is_split_between_processes(const json& file) {
  const auto& one = file.at("cases").front();
  return one.contains("type") && one.contains("world") && one.contains("pad");
}

constexpr int max_ranks = 4;

List numbers(std::int64_t n) {
  List all;
  for (std::int64_t i = 0; i < n; ++i) all.emplace_back(i);
  return all;
}

List characters(std::int64_t n) {
  List all;
  for (std::int64_t i = 0; i < n; ++i) all.emplace_back(std::string(1, static_cast<char>('a' + i)));
  return all;
}

json to_json_value(const List& list) { return list; }
json to_json_value(const at::Tensor& tensor) { return to_lists(tensor); }
template <typename T>
json to_json_value(const std::map<std::string, T>& parts) {
  auto object = json::object();
  for (const auto& [key, part] : parts) object[key] = to_json_value(part);
  return object;
}

/// Calls split(values of the case) and gives the result as the file writes it.
template <typename Split>
json split_values(const json& one, const Split& split) {
  const auto type =
      one_of(one, "type",
             {"list", "tuple", "tensor", "tensor_gloo", "tensor2d_gloo", "dict", "dict_of_tensor", "dict_uneven"});
  if (type == "dict_uneven") return to_json_value(split(one.at("input").get<Lists>()));
  const auto n = one.at("n").get<std::int64_t>();
  if (type == "list" || type == "tuple") return to_json_value(split(numbers(n)));
  if (type == "dict") return to_json_value(split(Lists{{"a", numbers(n)}, {"b", characters(n)}}));
  if (type == "tensor" || type == "tensor_gloo") return to_json_value(split(at::arange(n)));
  if (type == "tensor2d_gloo") return to_json_value(split(at::arange(3 * n).view({n, 3})));
  const std::map<std::string, at::Tensor> both = {{"a", at::arange(n)}, {"b", at::arange(2 * n).view({n, 2})}};
  return to_json_value(split(both));
}

// Accelerate cannot pad tuples. In Hortator tuples are lists, which are padded.
Outcome judge_padded_tuple(const json& one, const json& mine, int rank) {
  auto expected = json(detail::split(numbers(one.at("n")), rank, one.at("world"), {}));
  while (expected.size() < mine.size()) expected.push_back(one.at("n").get<std::int64_t>() - 1);
  const auto max_size = detail::split(numbers(one.at("n")), 0, one.at("world"), {}).size();
  if (mine != expected || mine.size() != max_size) return differs(text::concat("a padded list is ", mine));
  return on_purpose("lists_of_every_kind_are_padded");
}

template <typename Split>
Outcome judge_rank(const json& one, int rank, const Split& split) {
  json mine;
  try {
    mine = split_values(one, split);
  } catch (const UsageError& error) {
    return one.contains("error") ? equal() : differs(text::concat("threw: ", error.what()));
  }
  if (!one.contains("error")) return compare("the part", mine, one.at("ranks").at(static_cast<std::size_t>(rank)));
  if (one.at("type") == "tuple") return judge_padded_tuple(one, mine, rank);
  return differs(text::concat("nothing was thrown, Accelerate has ", one.at("error")));
}

Outcome judge_without_ranks(const json& one, const SplitOptions& options) {
  const int world = one.at("world");
  Outcome outcome = equal();
  for (int rank = 0; rank < world && outcome.difference.empty(); ++rank) {
    outcome = judge_rank(one, rank, [&](const auto& values) { return detail::split(values, rank, world, options); });
  }
  return outcome;
}

Outcome judge_split_between_processes(const json& one, const json&) {
  const SplitOptions options{.apply_padding = one.at("pad").get<int>() != 0};
  if (one.at("world").get<int>() > max_ranks) return judge_without_ranks(one, options);
  const Accelerator accelerator;
  return judge_rank(one, accelerator.process_index(),
                    [&](const auto& values) { return accelerator.split_between_processes(values, options); });
}

}  // namespace

Format split_between_processes() {
  return {
      .name = "split_between_processes",
      .recognises = is_split_between_processes,
      .world = [](const json& one) { return one.at("world").get<int>() > max_ranks ? 0 : one.at("world").get<int>(); },
      .judge = judge_split_between_processes};
}

}  // namespace hortator::golden
