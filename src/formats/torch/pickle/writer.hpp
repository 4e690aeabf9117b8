#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "formats/tensor/tensor_spec.hpp"

/// State dicts that Python's torch.load(weights_only=True) reads: tensors under names, in their order, in the zip
/// format of torch.save. Tensors of any device come back on the CPU. A file is written aside, flushed, and put in the
/// place of an older one by a rename. UsageError, before anything is written, for names that come twice and for tensors
/// that cannot be stored. By one rank.
namespace hortator::formats {

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;
using NamedSpecs = std::vector<std::pair<std::string, TensorSpec>>;

/// Told of bytes as they are written: together those of all storages.
using WriteProgress = std::function<void(std::int64_t)>;

/// Tensors that share memory are tied in the file, too; of a larger storage only what is used is written.
void write_pickle(const std::filesystem::path& path, const NamedTensors& tensors, const WriteProgress& advance = {});

/// Each is asked for when its turn comes, and dropped when it is written.
void write_pickle(const std::filesystem::path& path, const NamedSpecs& tensors,
                  const std::function<at::Tensor(const std::string& name)>& source, const WriteProgress& advance = {});

}  // namespace hortator::formats
