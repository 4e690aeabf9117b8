#pragma once

#include <hortator/models/model.hpp>
#include <hortator/parallel/tensor_plan.hpp>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "models/config/config_fields.hpp"

namespace hortator::models {

/// What a model computes from the hidden states.
enum class Head { none, causal, sequence, tokens, masked, image };

/// One name that config.json may have under "architectures".
struct Architecture {
  std::string_view name;
  std::string_view family;  ///< model_type: "llama"
  Head head = Head::none;
  std::string_view prefix;  ///< under which the files of models with a head store the parameters of the one without
  std::shared_ptr<PretrainedModel> (*make)(const ConfigFields& fields, const Architecture& architecture) = nullptr;
  /// How tensor ranks divide its layers; `head` is the width of an attention head. Null: they do not.
  TensorPlan (*plan)(int head) = nullptr;
};

/// All that there are.
const std::vector<Architecture>& architectures();
/// Null if there is none of this name.
const Architecture* find_architecture(const std::string& name);
/// Throws UsageError, with the known names, for another name.
const Architecture& architecture_named(const std::string& name, const std::string& file);

}  // namespace hortator::models
