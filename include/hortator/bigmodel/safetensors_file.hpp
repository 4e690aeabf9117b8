#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <hortator/export.hpp>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace hortator {

namespace formats {
class SafetensorsSource;
}

/// What a file says of a tensor.
struct SafetensorsInfo {
  std::string dtype = {};  ///< as the format calls it: "BF16"
  std::vector<std::int64_t> shape = {};
};

/// Tensors by name in a file of safetensors. It is checked as a whole when it is opened, by the rules of the format's
/// own library, and must stay as it is from then on: what is read of a file that has changed is an error. Copies share
/// the open file; all of it may be used by several threads.
class HORTATOR_API SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::filesystem::path& path);

  const std::filesystem::path& path() const;
  const std::vector<std::string>& names() const;  ///< in the order in which they lie in the file
  const std::map<std::string, std::string>& metadata() const;
  bool contains(const std::string& name) const;
  SafetensorsInfo info(const std::string& name) const;

  /// The tensor, read into memory of its own.
  at::Tensor get(const std::string& name) const;
  /// Rows first, first + 1, ... along its first dimension: no more than these are read.
  at::Tensor get_rows(const std::string& name, std::int64_t first, std::int64_t count) const;
  /// The tensor in the file's own pages, fetched when they are touched; changes stay in this process. For files that
  /// no process writes to: cutting such a file short ends the processes that use it (SIGBUS). A tensor whose place in
  /// the file does not suit its type is copied.
  at::Tensor view(const std::string& name) const;

 private:
  std::shared_ptr<const formats::SafetensorsSource> source_;
};

}  // namespace hortator
