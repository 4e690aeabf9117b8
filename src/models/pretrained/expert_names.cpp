#include "models/pretrained/expert_names.hpp"

#include <algorithm>
#include <string_view>

#include "core/text/text.hpp"

namespace hortator::models {
namespace {

constexpr std::string_view layer_in_files = "block_sparse_moe.";

/// The name without `end`; nothing if it ends otherwise, or in the middle of a word.
std::optional<std::string> before(std::string_view end, const std::string& name) {
  if (!name.ends_with(end)) return std::nullopt;
  auto beginning = name.substr(0, name.size() - end.size());
  return beginning.empty() || beginning.ends_with('.') ? std::optional(std::move(beginning)) : std::nullopt;
}

/// A part of each expert's matrix in `whole`, [experts, rows, columns], under the name `matrix` of the files.
void add_of_experts(std::vector<StoredPart>& parts, const std::string& beginning, std::string_view matrix,
                    std::size_t weight, const at::Tensor& whole, const StoredPart::ExpertRows& rows) {
  for (std::int64_t expert = 0; expert < whole.size(0); ++expert) {
    parts.push_back({.name = text::concat(beginning, layer_in_files, "experts.", expert, ".", matrix, ".weight"),
                     .weight = weight,
                     .rows = StoredPart::ExpertRows{.expert = expert, .begin = rows.begin, .size = rows.size}});
  }
}

}  // namespace

at::Tensor StoredPart::of(const at::Tensor& tensor) const {
  return rows ? tensor.detach().select(0, rows->expert).narrow(0, rows->begin, rows->size) : tensor;
}

formats::TensorSpec StoredPart::spec(const at::Tensor& tensor) const {
  auto spec = formats::spec_of(tensor);
  if (rows) spec.shape = {rows->size, spec.shape.back()};
  return spec;
}

std::vector<StoredPart> parts_by_expert(const std::vector<weights::ModuleWeight>& all) {
  std::vector<StoredPart> parts;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto& [name, tensor, first] = all[i];
    if (const auto router = before("mlp.gate.weight", name)) {
      parts.push_back({.name = text::concat(*router, layer_in_files, "gate.weight"), .weight = i});
    } else if (const auto gate_up = before("mlp.experts.gate_up_proj", name)) {
      const auto half = tensor.size(1) / 2;
      add_of_experts(parts, *gate_up, "w1", i, tensor, {.begin = 0, .size = half});
      add_of_experts(parts, *gate_up, "w3", i, tensor, {.begin = half, .size = half});
    } else if (const auto down = before("mlp.experts.down_proj", name)) {
      add_of_experts(parts, *down, "w2", i, tensor, {.begin = 0, .size = tensor.size(1)});
    } else {
      parts.push_back({.name = name, .weight = i});
    }
  }
  return parts;
}

std::vector<StoredPart> stored_parts(const std::vector<weights::ModuleWeight>& all,
                                     const std::vector<std::string>& stored) {
  const auto is_by_expert = [](const std::string& name) { return name.find(layer_in_files) != std::string::npos; };
  if (std::ranges::any_of(stored, is_by_expert)) return parts_by_expert(all);
  std::vector<StoredPart> parts;
  for (std::size_t i = 0; i < all.size(); ++i) parts.push_back({.name = all[i].name, .weight = i});
  return parts;
}

}  // namespace hortator::models
