#pragma once

#include <filesystem>
#include <hortator/training/saved_object.hpp>

namespace hortator::formats {

/// Writes a file that Python's torch.load(weights_only=True) reads. Tensors of devices are loaded to the CPU. The file
/// is written under another name and renamed. Throws UsageError, before anything is written, for tensors that cannot be
/// stored. One rank calls it.
void write_object(const std::filesystem::path& path, const SavedObject& object);

}  // namespace hortator::formats
