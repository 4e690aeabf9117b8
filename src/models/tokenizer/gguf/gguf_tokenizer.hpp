#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>

#include "formats/gguf/header.hpp"

namespace hortator::models {

/// The lists of the metadata from which a tokenizer is made.
formats::GgufLists gguf_tokenizer_lists();

/// What the tokenizer.json of the model would hold. Pure. Throws UsageError with `file` in its text for a tokenizer of
/// another kind than byte-level BPE (GPT-2's, Llama 3's, Qwen 2's and SmolLM's splitters) and Llama's SentencePiece.
nlohmann::json gguf_tokenizer(const formats::GgufHeader& header, const std::filesystem::path& file);

}  // namespace hortator::models
