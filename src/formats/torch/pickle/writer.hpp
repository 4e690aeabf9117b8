#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "formats/tensor/tensor_spec.hpp"

/// Writes state dicts that Python's torch.load(weights_only=True) reads: named tensors, in order, in the zip format of
/// torch.save. Tensors of any device are loaded to the CPU. A file is written under another name, flushed, and renamed.
/// Throws UsageError, before anything is written, for repeated names and for tensors that cannot be stored. One rank
/// calls these.
namespace hortator::formats {

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;
using NamedSpecs = std::vector<std::pair<std::string, TensorSpec>>;

/// Called with numbers of bytes as they are written; they add up to the bytes of all storages.
using WriteProgress = std::function<void(std::int64_t)>;

/// Tensors that share memory stay tied; only the used part of a larger storage is written.
void write_pickle(const std::filesystem::path& path, const NamedTensors& tensors, const WriteProgress& advance = {});

/// Each tensor is requested when it is written, and released afterwards.
void write_pickle(const std::filesystem::path& path, const NamedSpecs& tensors,
                  const std::function<at::Tensor(const std::string& name)>& source, const WriteProgress& advance = {});

}  // namespace hortator::formats
