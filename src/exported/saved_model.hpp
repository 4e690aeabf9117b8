#pragma once

#include <filesystem>

#include "exported/module_tensors.hpp"

namespace hortator::exported {

/// Writes a copy of the archive with the present values of the parameters and buffers of its state dict. A reader of
/// `target` finds the whole file or none. Throws UsageError for parameters that this rank has only a part of.
void save_archive(const OpenArchive& archive, const ModuleTensors& tensors, const std::filesystem::path& target);

}  // namespace hortator::exported
