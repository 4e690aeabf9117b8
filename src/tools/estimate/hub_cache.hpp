#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "core/environment/environment.hpp"

/// Models that Python's huggingface_hub has downloaded.
namespace hortator::tools::estimates {

/// The folder of downloads: HF_HUB_CACHE, HF_HOME/hub, or huggingface/hub in XDG_CACHE_HOME or ~/.cache.
std::filesystem::path hub_folder(const core::Variables& variables);

/// The newest snapshot of a model such as "bert-base-uncased", "org/name" or "org/name@revision"; nothing if it is not
/// a name of this form or was not downloaded.
std::optional<std::filesystem::path> hub_snapshot(const std::string& name, const std::filesystem::path& hub);

}  // namespace hortator::tools::estimates
