#pragma once

#include <cstddef>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace hortator::models {

/// The merges of a SentencePiece vocabulary, whose file has scores in their place: each way to join two tokens to a
/// third, those of the best score first. `joins` returns whether a token takes part. Throws
/// UsageError if there are far more merges than tokens. Pure.
nlohmann::json gguf_merges(const std::vector<std::string>& tokens, const std::vector<double>& scores,
                           const std::function<bool(std::size_t id)>& joins);

}  // namespace hortator::models
