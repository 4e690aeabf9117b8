#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "formats/torch/pickle/machine.hpp"
#include "formats/torch/pickle/source.hpp"
#include "formats/torch/pickle/value.hpp"

namespace hortator::formats {

/// Tensors by name in a file that torch.save wrote (`.pt`, `.bin`, `.pth`; its zip format); like SafetensorsFile.
/// Nothing in the file is ever executed. The constructor checks its structure: every tensor lies within its storage,
/// and every storage within the file. The file must not change afterwards; reading a changed file throws. Copies share
/// the open file. Thread-safe. Throws FileError, naming the file and the tensor or the class, for all other files.
class PickleFile : public PickleSource {
 public:
  explicit PickleFile(const std::filesystem::path& path, ForeignObjects foreign = ForeignObjects::refused);

  const std::filesystem::path& path() const override;
  /// In the order of the file. Names of nested dicts and lists are joined by a point: "state_dict.fc1.weight",
  /// "state.0.exp_avg". Tied tensors have each of their names.
  const std::vector<std::string>& names() const;
  bool contains(const std::string& name) const;
  /// Type, shape, strides and storage. Throws UsageError, with the nearest name, if there is no such tensor.
  const PickledTensor& tensor(const std::string& name) const;
  const TensorSpec& spec(const std::string& name) const { return tensor(name).spec; }

  /// Reads the tensor, with its original strides. Only the part of the storage that it spans is read.
  at::Tensor get(const std::string& name) const { return get(tensor(name)); }
  at::Tensor get(const PickledTensor& tensor) const override;
  /// Reads `count` rows from `first` along the first dimension, and only these.
  at::Tensor get_rows(const std::string& name, std::int64_t first, std::int64_t count) const;
  /// The tensor in a memory map of the file, as SafetensorsFile::view.
  at::Tensor view(const std::string& name) const;

  const PickleValue& value() const override;

 private:
  struct Content;
  std::shared_ptr<const Content> content_;
};

}  // namespace hortator::formats
