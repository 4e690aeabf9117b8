#pragma once

#include <filesystem>
#include <hortator/lora.hpp>
#include <string>

namespace hortator::adapters {

/// peft's adapter_config.json of these options. Pure.
std::string config_json(const LoraOptions& options, bool is_transposed);

/// The options that an adapter_config.json describes. Throws an error that names the file, and the field and its value
/// if that is not supported. Pure.
LoraOptions parse_config(const std::string& json, const std::filesystem::path& file);

}  // namespace hortator::adapters
