#pragma once

#include <string>
#include <string_view>

#include "launch/settings/settings.hpp"

namespace hortator::launching {

/// The settings that the text of a DeepSpeed configuration file names; the ranks read the rest of the file themselves.
/// "auto" and missing entries set nothing, except that a stage of "auto" is 2, as in Accelerate. Throws UsageError with
/// file and entry for invalid JSON, for a file without zero_optimization, and for invalid values.
Layer read_deepspeed_settings(std::string_view text, const std::string& file);

/// Adds those settings to a layer that names such a file, except for what the layer sets itself.
void add_deepspeed_settings(Layer& layer, const Layer& of_file);

}  // namespace hortator::launching
