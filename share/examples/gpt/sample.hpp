#pragma once

#include <cstdint>
#include <string>

#include "model.hpp"

namespace gpt {

struct SampleOptions {
  std::int64_t length = 400;
  double temperature = 0.8;  ///< below 1: likely bytes become likelier still
};

/// `prompt` and what the model makes of it, byte by byte; bytes that are no ASCII text become '?'. The model is in
/// evaluation mode afterwards.
std::string sample(Gpt& model, const std::string& prompt, const SampleOptions& options = {});

}  // namespace gpt
