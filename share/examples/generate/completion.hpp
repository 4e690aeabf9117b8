#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "../gpt/model.hpp"

namespace generate {

/// Returns the model's continuation of each prompt up to the end of the line, by greedy decoding, at most `max_bytes`
/// bytes. Prompts are decoded as one batch, with a cache; only the last bytes of a prompt longer than the model's
/// context are used.
std::vector<std::string> complete(gpt::Gpt& model, const std::vector<std::string>& prompts, std::int64_t max_bytes);

}  // namespace generate
