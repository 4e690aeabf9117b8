#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/manifest.hpp"
#include "formats/file/raw_file.hpp"

namespace hortator::checkpoint {

/// Reads the elements of a checkpoint's tensors and compares each block with its checksum.
class BlockReader {
 public:
  /// `manifest` must outlive the reader. Without `verify` no checksum is compared. Waits up to `patience` for a file to
  /// become visible.
  BlockReader(std::filesystem::path folder, const Manifest& manifest, bool verify,
              std::chrono::milliseconds patience = formats::visible_within());

  /// Reads all elements of a dataset into a tensor of its shape and type, on any device and with any strides. Throws
  /// FileError, naming the file, the dataset and the bytes, if a checksum does not match.
  void read(const std::string& name, const at::Tensor& tensor);
  /// Reads a range of elements to consecutive bytes. Throws as above.
  void read(const std::string& name, core::Range elements, std::byte* to);
  /// Reads all elements and discards them. Calls `advance` with the number of bytes after each block.
  void check(const std::string& name, const std::function<void(std::int64_t)>& advance);

  /// Opens a data file. Throws FileError if it is missing or its length has changed.
  const formats::RawFile& file(std::size_t index);

 private:
  /// Reads block number `block` of a dataset to `to`. Returns its number of bytes.
  std::int64_t read_block(const std::string& name, const Manifest::Dataset& dataset, std::int64_t block, std::byte* to);
  std::uint32_t read_piece(std::size_t index, core::Range bytes, std::byte* to, std::uint32_t checksum);

  std::filesystem::path folder_;
  const Manifest& manifest_;
  bool verify_;
  std::chrono::milliseconds patience_;
  std::vector<std::optional<formats::RawFile>> files_;  ///< opened on first use
};

}  // namespace hortator::checkpoint
