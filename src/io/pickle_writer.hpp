#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace hortator::io {

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

/// Writes a state dict that Python's torch.load(weights_only=True) reads: these tensors under these names, in this
/// order, in the zip format of torch.save. Tensors that share memory are tied in the file, too; of a larger storage
/// only what is used is written. Tensors of any device come back on the CPU. The file is written aside, flushed, and
/// put in the place of an older one by a rename. `advance` is told of bytes that were written: together those of all
/// storages. UsageError, before anything is written, for names that come twice and for tensors that cannot be stored.
/// By one rank.
void write_pickle(const std::filesystem::path& path, const NamedTensors& tensors,
                  const std::function<void(std::int64_t)>& advance = {});

}  // namespace hortator::io
