#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "../gpt/model.hpp"

namespace generate {

/// What the model makes of each prompt, up to the end of the line: the likeliest byte each time, `max_bytes` of them
/// at most. Each byte is computed once, for all prompts together; of prompts that are longer than the model sees the
/// end counts.
std::vector<std::string> complete(gpt::Gpt& model, const std::vector<std::string>& prompts, std::int64_t max_bytes);

}  // namespace generate
