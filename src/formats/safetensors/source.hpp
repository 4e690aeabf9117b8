#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "formats/file/fixed_file.hpp"
#include "formats/safetensors/header.hpp"
#include "formats/tensor/stored_rows.hpp"

namespace hortator::formats {

/// An open safetensors file whose header was checked.
class SafetensorsSource {
 public:
  explicit SafetensorsSource(const std::filesystem::path& path);

  const FixedFile& file() const { return file_; }
  const SafetensorsHeader& header() const { return header_; }
  const std::vector<std::string>& names() const { return names_; }

  bool contains(const std::string& name) const { return indices_.contains(name); }
  /// Throws UsageError, with the nearest name, if there is no such tensor.
  const SafetensorsEntry& entry(const std::string& name) const;
  TensorSpec spec(const std::string& name) const;  ///< throws FileError if LibTorch has no such type
  std::uint64_t offset(const std::string& name) const { return header_.data_offset + entry(name).begin; }
  /// The tensor as rows along its first dimension.
  StoredRows rows(const std::string& name) const;
  at::Tensor get(const std::string& name) const;   ///< reads it
  at::Tensor view(const std::string& name) const;  ///< in the memory map, or a copy if it is not aligned

 private:
  std::shared_ptr<const FileMap> map() const;  ///< created by the first call

  FixedFile file_;
  SafetensorsHeader header_;
  std::vector<std::string> names_;
  std::map<std::string, std::size_t> indices_;
  mutable std::mutex mapping_;
  mutable std::shared_ptr<const FileMap> map_;
};

}  // namespace hortator::formats
