#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <hortator/export.hpp>
#include <memory>
#include <string>
#include <vector>

namespace hortator {

namespace formats {
class PickleFile;
}

/// Tensors by name in a file that torch.save wrote (`.pt`, `.pth`, `.bin`), read one by one. Names within dicts and
/// lists are joined by points: "state_dict.fc1.weight", "state.0.exp_avg". The file is checked when it is opened,
/// nothing in it is executed, and it must stay as it is from then on. Copies share the open file; all of it may be used
/// by several threads.
class HORTATOR_API TorchFile {
 public:
  explicit TorchFile(const std::filesystem::path& path);

  const std::filesystem::path& path() const;
  const std::vector<std::string>& names() const;  ///< of tensors, in the file's order
  bool contains(const std::string& name) const;
  at::ScalarType type(const std::string& name) const;
  std::vector<std::int64_t> shape(const std::string& name) const;

  /// The tensor, read into memory of its own, with its strides.
  at::Tensor get(const std::string& name) const;
  /// Rows first, first + 1, ... along its first dimension: no more than these are read.
  at::Tensor get_rows(const std::string& name, std::int64_t first, std::int64_t count) const;
  /// The tensor in the file's own pages, as SafetensorsFile::view().
  at::Tensor view(const std::string& name) const;

 private:
  std::shared_ptr<const formats::PickleFile> file_;
};

}  // namespace hortator
