#pragma once

#include <hortator/models/generate.hpp>

namespace hortator::models {

/// The options with every value set: where the caller has set none, that of the checkpoint's generation_config.json,
/// as in transformers, and then the default. Throws UsageError that names a field of the file with a wrong value. What
/// the file asks for and generate() does not have is named in a warning, once for each file.
GenerateOptions with_defaults(GenerateOptions options, const ModelConfig& config);

/// What the file asks for and generate() does not have, with its values.
std::vector<std::string> not_applied(const GenerateOptions& options, const ModelConfig& config);

}  // namespace hortator::models
