#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/range.hpp"
#include "formats/file/fixed_file.hpp"
#include "formats/tensor/tensor_spec.hpp"

/// Reads a model's weights from files of any supported format.
namespace hortator::weights {

/// A position in an open file.
struct FileSpan {
  const formats::FixedFile* file = nullptr;
  std::uint64_t offset = 0;
};

/// Tensors by name, with partial reads. Errors name the file and the tensor. Not thread-safe.
class WeightSource {
 public:
  virtual ~WeightSource() = default;

  /// The path that was opened.
  virtual const std::filesystem::path& path() const = 0;
  /// In the order of their bytes, so that reading in this order is sequential.
  virtual const std::vector<std::string>& names() const = 0;
  /// Throws FileError if LibTorch has no such type.
  virtual formats::TensorSpec spec(const std::string& name) const = 0;
  /// Reads a range of elements. It must begin at a multiple of piece_bytes and end at one, or at the tensor's end.
  virtual void read(const std::string& name, core::Range elements, std::byte* to) const = 0;
  /// The position of the tensor's elements; nothing if they are not stored contiguously and as they are, or if reading
  /// them does more (checksums).
  virtual std::optional<FileSpan> span(const std::string& /*name*/) const { return {}; }
  /// Equal for tensors of this source that are the same elements of one file (tied); empty if unknown.
  virtual std::string identity(const std::string& /*name*/) const { return {}; }
  /// The whole tensor: in a memory map of the file where possible, else read.
  virtual at::Tensor tensor(const std::string& name) const;
  /// Call after reading: throws FileError if a file has changed.
  virtual void require_unchanged() const {}

  static constexpr std::int64_t piece_bytes = std::int64_t{4} << 20;
};

/// Opens a safetensors, GGUF or torch.save file, an index of several files (`.index.json`), the `.metadata` of
/// torch.distributed.checkpoint, the `index.json` of an offload folder of Accelerate, or a folder that holds one of
/// them, or the files of DeepSpeed's ZeRO. File names in an index must not lead out of its folder.
std::unique_ptr<WeightSource> open_weights(const std::filesystem::path& path);

/// Whether open_weights() would find something in this folder.
bool holds_weights(const std::filesystem::path& folder);

}  // namespace hortator::weights
