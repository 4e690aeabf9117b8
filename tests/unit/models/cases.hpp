#pragma once

#include <ATen/ATen.h>

#include <cstdlib>
#include <filesystem>
#include <hortator/bigmodel/safetensors_file.hpp>
#include <hortator/models/pretrained.hpp>
#include <map>
#include <string>
#include <vector>

namespace hortator::test {

/// A model and what another library computes with it (oracle.py).
struct ModelCase {
  explicit ModelCase(std::filesystem::path path) : folder(std::move(path)), file(folder / "case.safetensors") {}

  bool has(const std::string& name) const { return file.contains(name); }
  at::Tensor get(const std::string& name) const { return has(name) ? file.get(name) : at::Tensor(); }
  models::ModelInputs inputs() const {
    return {.input_ids = get("input.input_ids"),
            .attention_mask = get("input.attention_mask"),
            .token_type_ids = get("input.token_type_ids"),
            .pixel_values = get("input.pixel_values")};
  }
  /// 1 where a position of the output counts: what padding computes is of no use.
  at::Tensor counted(const at::Tensor& output) const {
    const auto mask = get("input.attention_mask");
    return mask.defined() && output.dim() == 3 ? mask.unsqueeze(-1).to(output.scalar_type())
                                               : at::ones({}, output.options());
  }

  std::filesystem::path folder;
  SafetensorsFile file;
};

/// The stored cases, or those of the folder HORTATOR_MODEL_CASES.
inline std::vector<ModelCase> model_cases() {
  const auto* other = std::getenv("HORTATOR_MODEL_CASES");
  std::vector<std::filesystem::path> folders;
  for (const auto& entry : std::filesystem::directory_iterator(other != nullptr ? other : MODEL_CASES))
    if (entry.is_directory()) folders.push_back(entry.path());
  std::sort(folders.begin(), folders.end());
  std::vector<ModelCase> cases;
  for (const auto& folder : folders) cases.emplace_back(folder);
  return cases;
}

inline std::map<std::string, at::Tensor> outputs_by_name(const models::ModelOutputs& outputs) {
  return {{"logits", outputs.logits},
          {"last_hidden_state", outputs.last_hidden_state},
          {"pooler_output", outputs.pooler_output},
          {"aux_loss", outputs.aux_loss}};
}

}  // namespace hortator::test
