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

/// The bytes of a checkpoint's tensors. Each block that is read is compared with its checksum.
class BlockReader {
 public:
  /// `manifest` is borrowed. Without `verify` nothing is compared. Files are looked for as long as `patience`.
  BlockReader(std::filesystem::path folder, const Manifest& manifest, bool verify,
              std::chrono::milliseconds patience = formats::visible_within);

  /// All elements of a dataset, into a tensor of its shape and type on any device and with any strides. Throws
  /// FileError, naming the file, the dataset and the block, for bytes that are not those that were written.
  void read(const std::string& name, const at::Tensor& tensor);
  /// The same of some elements, one after the other.
  void read(const std::string& name, core::Range elements, std::byte* to);
  /// All of them, without keeping them. `advance` is told the bytes of each block once it is read.
  void check(const std::string& name, const std::function<void(std::int64_t)>& advance);

  /// Throws FileError unless it is there and as long as it was.
  const formats::RawFile& file(std::size_t index);

 private:
  /// Block number `block` of a dataset, to `to`. Returns how many bytes that are.
  std::int64_t read_block(const std::string& name, const Manifest::Dataset& dataset, std::int64_t block, std::byte* to);
  std::uint32_t read_piece(std::size_t index, core::Range bytes, std::byte* to, std::uint32_t checksum);

  std::filesystem::path folder_;
  const Manifest& manifest_;
  bool verify_;
  std::chrono::milliseconds patience_;
  std::vector<std::optional<formats::RawFile>> files_;  ///< opened when they are needed
};

}  // namespace hortator::checkpoint
