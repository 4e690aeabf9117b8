#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <hortator/bigmodel/safetensors_file.hpp>
#include <map>
#include <span>

namespace hortator {

namespace data {
struct SafetensorsTable;
}

/// Tensors of a safetensors file whose first dimension counts samples. A sample is one row of each tensor, by name.
class HORTATOR_API SafetensorsRows {
 public:
  /// Without `names`, reads all tensors of the file.
  explicit SafetensorsRows(const std::filesystem::path& path, const std::vector<std::string>& names = {});

  std::int64_t size() const;
  std::vector<std::string> columns() const;
  std::map<std::string, at::Tensor> get(std::int64_t row) const;
  std::map<std::string, at::Tensor> get_batch(std::span<const std::int64_t> rows) const;

 private:
  std::shared_ptr<const data::SafetensorsTable> table_;
};

}  // namespace hortator
