#pragma once

#include <optional>
#include <string>

#include "formats/torch/pickle/machine.hpp"
#include "formats/torch/zip/records.hpp"

namespace hortator::formats {

/// The contents of a torch.save archive: a pickle, and the storages of its tensors, each a record. The constructor
/// checks that every tensor lies within its storage and every storage within the archive; else it throws ZipFault or
/// PickleFault.
class PickleArchive {
 public:
  explicit PickleArchive(const ByteSource& bytes, ForeignObjects foreign = ForeignObjects::refused);

  const PickleValue& value() const { return value_; }
  /// The record of a tensor's storage. Only for tensors that have elements.
  const ZipRecord& storage(const PickledTensor& tensor) const { return *find_storage(tensor.storage); }

 private:
  const ZipRecord* find_storage(const std::string& name) const { return records_.find(folder_ + "data/" + name); }

  ZipRecords records_;
  std::string folder_;  ///< in the archive, ends with a slash
  PickleValue value_;
};

}  // namespace hortator::formats
