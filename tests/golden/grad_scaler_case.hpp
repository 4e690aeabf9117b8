#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace hortator::golden {

/// Runs one case of grad_scaler.json through an Accelerator in fp16. What differs first, or nothing. @collective
std::string difference_in_grad_scaler(const nlohmann::json& one);

}  // namespace hortator::golden
