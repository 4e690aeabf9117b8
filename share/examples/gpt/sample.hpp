#pragma once

#include <cstdint>
#include <string>

#include "model.hpp"

namespace gpt {

struct SampleOptions {
  std::int64_t length = 400;
  double temperature = 0.8;  ///< below 1: likely bytes become even likelier
};

/// Returns `prompt` and the model's continuation, byte by byte; bytes other than printable ASCII become '?'. Leaves the
/// model in evaluation mode.
std::string sample(Gpt& model, const std::string& prompt, const SampleOptions& options = {});

}  // namespace gpt
