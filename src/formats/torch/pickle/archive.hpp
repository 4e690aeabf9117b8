#pragma once

#include <optional>
#include <string>

#include "formats/torch/pickle/machine.hpp"
#include "formats/torch/zip/records.hpp"

namespace hortator::formats {

/// What an archive of torch.save holds: a pickle, and the storages of its tensors, each a record. Checked as a whole:
/// every tensor lies within its storage, every storage within the archive. ZipFault or PickleFault for all else.
class PickleArchive {
 public:
  explicit PickleArchive(const ByteSource& bytes, ForeignObjects foreign = ForeignObjects::refused);

  const PickleValue& value() const { return value_; }
  /// Of a tensor's storage. Only for tensors that have elements.
  const ZipRecord& storage(const PickledTensor& tensor) const { return *find_storage(tensor.storage); }

 private:
  const ZipRecord* find_storage(const std::string& name) const { return records_.find(folder_ + "data/" + name); }

  ZipRecords records_;
  std::string folder_;  ///< in the archive, with a slash behind it
  PickleValue value_;
};

}  // namespace hortator::formats
