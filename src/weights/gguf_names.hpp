#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "formats/gguf/header.hpp"

/// How GGUF files name and order the weights of models. Pure.
namespace hortator::weights {

/// A tensor of a GGUF file as Hugging Face's checkpoints have it.
struct GgufRole {
  std::string name = {};
  /// Rows are in the order of llama.cpp: within each of that many heads, the halves that RoPE rotates against each
  /// other alternate. 0: as in the checkpoints.
  std::int64_t heads = 0;
};

/// The role of a tensor in models of the Llama family (general.architecture is llama, qwen2 or qwen3); the name as it
/// is in others. Nothing for tensors that follow from config.json. Throws GgufFault if the metadata does not have the
/// number of heads.
std::optional<GgufRole> gguf_role(const formats::GgufHeader& header, const std::string& name);

/// The row of the file at which row `row` of a checkpoint is, in a tensor of `rows` rows.
std::int64_t gguf_row(std::int64_t row, std::int64_t rows, std::int64_t heads);

/// A value of the metadata under the architecture's name: "attention.head_count".
std::optional<std::uint64_t> gguf_number(const formats::GgufHeader& header, const std::string& name);
/// general.architecture; empty if the file has none.
std::string gguf_architecture(const formats::GgufHeader& header);

}  // namespace hortator::weights
