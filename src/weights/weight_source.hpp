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

/// A model's weights, in files of whatever kind.
namespace hortator::weights {

/// Where bytes lie in an open file.
struct FileSpan {
  const formats::FixedFile* file = nullptr;
  std::uint64_t offset = 0;
};

/// Tensors by name, of which any part can be read. Errors name the file and the tensor. From one thread.
class WeightSource {
 public:
  virtual ~WeightSource() = default;

  /// What was asked to be opened.
  virtual const std::filesystem::path& path() const = 0;
  /// In the order in which their bytes lie, so that reading them in this order reads files from front to back.
  virtual const std::vector<std::string>& names() const = 0;
  /// Throws FileError where no tensor has such elements.
  virtual formats::TensorSpec spec(const std::string& name) const = 0;
  /// Some elements, one after the other. A run begins at a multiple of piece_bytes and ends at one, or at the tensor's
  /// end.
  virtual void read(const std::string& name, core::Range elements, std::byte* to) const = 0;
  /// Where its elements lie, one after the other and as they are; nothing where they do not, or where reading them does
  /// more than that (checksums).
  virtual std::optional<FileSpan> span(const std::string& /*name*/) const { return {}; }
  /// The same for tensors of this source that are the same elements of one file (tied); empty: that is not known.
  virtual std::string identity(const std::string& /*name*/) const { return {}; }
  /// The whole of it: in the file's own pages, fetched when they are touched, where it can be; else read.
  virtual at::Tensor tensor(const std::string& name) const;
  /// After all reading: throws FileError where a file is not what it was.
  virtual void require_unchanged() const {}

  static constexpr std::int64_t piece_bytes = std::int64_t{4} << 20;
};

/// Opens a file of safetensors or of torch.save, an index of several (`.index.json`), or a folder that holds one of
/// them. Names of files in an index never lead out of its folder.
std::unique_ptr<WeightSource> open_weights(const std::filesystem::path& path);

/// Whether open_weights() would find something in this folder.
bool holds_weights(const std::filesystem::path& folder);

}  // namespace hortator::weights
