#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "formats/torch/pickle/machine.hpp"
#include "formats/torch/pickle/value.hpp"

namespace hortator::formats {

/// Tensors by name in a file of torch.save (`.pt`, `.bin`, `.pth`; its zip format), as SafetensorsFile has them.
/// Nothing of the file is executed, whatever it says. Its structure is checked when it is opened: every tensor lies
/// within its storage, and every storage within the file. It must stay as it is from then on: what is read of a file
/// that has changed is an error. Copies share the open file; all of it may be used by several threads. FileError,
/// naming the file and the tensor or the class, for what is none.
class PickleFile {
 public:
  explicit PickleFile(const std::filesystem::path& path, ForeignObjects foreign = ForeignObjects::refused);

  const std::filesystem::path& path() const;
  /// In the order of the file. A tensor of a dict in the dict, or of a list, has both names, with a point between them:
  /// "state_dict.fc1.weight", "state.0.exp_avg". Tensors that were tied have each of their names.
  const std::vector<std::string>& names() const;
  bool contains(const std::string& name) const;
  /// All of what was said of it. UsageError, with the nearest name, where there is none.
  const PickledTensor& tensor(const std::string& name) const;
  const TensorSpec& spec(const std::string& name) const { return tensor(name).spec; }

  /// The tensor, read into memory of its own, with the strides that it had. No more of its storage is read than it
  /// spans.
  at::Tensor get(const std::string& name) const { return get(tensor(name)); }
  at::Tensor get(const PickledTensor& tensor) const;
  /// Rows first, first + 1, ... along its first dimension: no more than these are read.
  at::Tensor get_rows(const std::string& name, std::int64_t first, std::int64_t count) const;
  /// The tensor in the file's own pages, as SafetensorsFile::view.
  at::Tensor view(const std::string& name) const;

  /// Everything that is in it.
  const PickleValue& value() const;

 private:
  struct Content;
  std::shared_ptr<const Content> content_;
};

}  // namespace hortator::formats
