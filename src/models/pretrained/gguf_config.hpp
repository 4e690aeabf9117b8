#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>

#include "formats/gguf/header.hpp"

namespace hortator::models {

/// The GGUF file that stands for a folder without a config.json: the path itself, or the only one in the folder. Empty
/// if there is none.
std::filesystem::path gguf_file_of(const std::filesystem::path& path);

/// The config.json of the model in a GGUF file, from its metadata. Pure. Throws UsageError with `file` in its text for
/// an architecture that is not supported, and for RoPE scaling, which the metadata does not describe completely.
nlohmann::ordered_json gguf_config(const formats::GgufHeader& header, const std::filesystem::path& file);

}  // namespace hortator::models
