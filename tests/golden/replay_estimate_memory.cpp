// Memory of a model in several types, and for training.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <hortator/error.hpp>

#include "bigmodel/estimate.hpp"
#include "bigmodel/module_tree.hpp"
#include "bigmodel/no_split_classes.hpp"
#include "core/text/text.hpp"
#include "replay.hpp"
#include "trees.hpp"

namespace hortator::golden {
namespace {

bool is_estimate_memory(const json& file) {
  const auto& one = file.at("cases").front();
  return (one.contains("total_size") && one.contains("rows")) ||
         (one.contains("bytes") && one.contains("mixed_precision"));
}

json training_of(Bytes bytes, const std::string& type) {
  const auto training = bigmodel::training_bytes(bytes, bigmodel::estimate_type(type));
  if (!training) return {{"model", -1}, {"optimizer", -1}, {"gradients", -1}, {"step", -1}};
  return {{"model", training->model},
          {"optimizer", training->optimizer},
          {"gradients", training->gradients},
          {"step", training->step}};
}

// Formats a size as Accelerate does: up to two decimals without trailing zeros, at least one for a Python float, none
// for an int.
std::string format_size(double bytes, bool is_float) {
  const char* unit = "bytes";
  for (const char* next : {"KB", "MB", "GB", "TB", "PB"}) {
    if (bytes < 1024) break;
    bytes /= 1024;
    is_float = true;
    unit = next;
  }
  std::array<char, 64> number{};
  std::snprintf(number.data(), number.size(), is_float ? "%.2f" : "%.0f", bytes);
  std::string digits = number.data();
  if (is_float && digits.back() == '0') digits.pop_back();
  return digits + " " + unit;
}

template <typename Holds>
bool has_tensor(const bigmodel::TreeNode& node, const Holds& holds) {
  const auto is_such = [&](const bigmodel::TreeTensor& tensor) { return holds(tensor.spec.type); };
  return std::any_of(node.parameters.begin(), node.parameters.end(), is_such) ||
         std::any_of(node.buffers.begin(), node.buffers.end(), is_such) ||
         std::any_of(node.children.begin(), node.children.end(),
                     [&](const bigmodel::TreeNode& child) { return has_tensor(child, holds); });
}

/// The model's tensors in their own types.
struct Own {
  Bytes total;
  bool has_bools;         ///< then sizes are floats in Python
  bool has_other_floats;  ///< than those of 32 bits
};

const bigmodel::EstimateRow& row_of(const std::string& type, const bigmodel::Estimate& estimate) {
  return *std::ranges::find(estimate.rows, type, &bigmodel::EstimateRow::type);
}

// Accelerate divides the bytes of the tensors by 2, 4 or 8, whatever their type, and not at all for bfloat16 and fp8.
// Hortator's row is the memory of the model in that type.
bool counts_as_reference(const std::string& type, const Own& own) {
  return type != "bfloat16" && type != "fp8" && !own.has_other_floats;
}

Outcome judge_row(const json& row, const bigmodel::Estimate& estimate, const Own& own) {
  const auto type = row.at("dtype").get<std::string>();
  const auto training = training_of(own.total, type);
  if (auto same = compare("training in " + type, training, row.at("training")); !same.difference.empty()) return same;
  const auto peak = std::max({training["model"].get<double>(), training["optimizer"].get<double>(),
                              training["gradients"].get<double>(), training["step"].get<double>()});
  const auto training_text = peak < 0 ? "N/A" : format_size(peak, own.has_bools);
  if (auto same = compare("the text of training in " + type, training_text, row.at("training_str"));
      !same.difference.empty())
    return same;

  const auto& ours = row_of(type, estimate);
  if (!counts_as_reference(type, own)) {
    const auto bits = bigmodel::estimate_type(type).bits;
    if (auto same = compare("the total in " + type, ours.total, estimate.in_float32 * bits / 32);
        !same.difference.empty())
      return same;
    const auto in_float32 = row_of("float32", estimate).largest_layer;
    if (auto same = compare("the largest layer in " + type, ours.largest_layer, in_float32 * bits / 32);
        !same.difference.empty())
      return same;
    return on_purpose("a_row_says_what_its_type_takes");
  }
  const bool is_row_float = own.has_bools || type != "float32";
  const json row_here = {ours.total, ours.largest_layer, format_size(ours.total, is_row_float)};
  return compare("the row of " + type, row_here, {row.at("total"), row.at("largest_layer"), row.at("total_str")});
}

Outcome judge_model(const json& one, const json& file) {
  const auto tree = model_of(one, file);
  const bigmodel::ModuleSizes sizes(tree, {});
  const auto whole = class_names(one.at("no_split"));
  const auto largest =
      bigmodel::largest_layer(bigmodel::parts_of(tree.root, ""), sizes, bigmodel::NoSplitClasses(whole));
  const json ours = {sizes.total(), largest.bytes, largest.names};
  if (auto same = compare("the model", ours,
                          {one.at("total_size"), one.at("largest_layer_size"), one.at("largest_layer_names")});
      !same.difference.empty())
    return same;

  bigmodel::EstimateOptions options{.types = {}, .no_split_module_classes = whole};
  for (const auto& type : bigmodel::estimate_types()) options.types.emplace_back(type.name);
  const auto estimate = bigmodel::estimate(tree, options);
  const auto is_bool = [](at::ScalarType type) { return type == at::kBool; };
  const auto is_other = [](at::ScalarType type) { return at::isFloatingType(type) && type != at::kFloat; };
  const Own own{.total = sizes.total(),
                .has_bools = has_tensor(tree.root, is_bool),
                .has_other_floats = has_tensor(tree.root, is_other)};
  Outcome all;
  for (const auto& row : one.at("rows")) {
    auto outcome = judge_row(row, estimate, own);
    if (!outcome.difference.empty()) return outcome;
    if (!outcome.rule.empty()) all = outcome;
  }
  return all;
}

Outcome judge_estimate_memory(const json& one, const json& file) {
  if (one.contains("model")) return judge_model(one, file);
  const auto& theirs = one.at("training");
  try {
    return compare("training", training_of(one.at("bytes"), one.at("mixed_precision")), theirs);
  } catch (const UsageError&) {
    const bool knows_nothing = std::all_of(theirs.begin(), theirs.end(), [](const json& bytes) { return bytes == -1; });
    if (knows_nothing) return on_purpose("types_that_are_not_known_are_refused");
    throw;
  }
}

}  // namespace

Format estimate_memory() {
  return {.name = "estimate_memory",
          .recognises = is_estimate_memory,
          .world = [](const json&) { return 0; },
          .judge = judge_estimate_memory};
}

}  // namespace hortator::golden
