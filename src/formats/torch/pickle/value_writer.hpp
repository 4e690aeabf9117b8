#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <functional>
#include <string>

#include "formats/torch/pickle/value.hpp"

namespace hortator::formats {

/// Writes a value that Python's torch.load(weights_only=True) returns: numbers, texts, lists, tuples, dicts and
/// tensors, nested. `value` has a tensor's spec, and names its storage. `source` returns the storage with that name: it
/// is called when the storage is written, and the result is released afterwards. The file is written under another name
/// and renamed. Throws UsageError, before anything is written, for values that cannot be stored. One rank calls it.
void write_pickle_value(const std::filesystem::path& path, const PickleValue& value,
                        const std::function<at::Tensor(const std::string& storage)>& source);

}  // namespace hortator::formats
