#pragma once

#include <filesystem>
#include <hortator/state_dict.hpp>
#include <string>

#include "checkpoint/contents.hpp"
#include "checkpoint/mismatch.hpp"
#include "io/raw_file.hpp"

namespace hortator::checkpoint {

/// Is there something for a Reader to open?
bool exists(const std::filesystem::path& folder);

/// An opened checkpoint. Each rank opens it for itself, whatever the number of ranks that wrote it; nothing here is
/// collective. Errors name the file and the entry.
class Reader {
 public:
  /// Reads the names and values. When a save was killed while it replaced `folder`, the older checkpoint that it had
  /// moved aside is opened.
  explicit Reader(const std::filesystem::path& folder);

  const std::filesystem::path& folder() const { return folder_; }  ///< the one that was opened
  int world_size() const { return static_cast<int>(contents_.world_size); }

  /// What all ranks had.
  const TensorSpecs& tensors() const { return specs_; }
  const StateDict& values() const { return values_; }  ///< numbers and texts
  at::Tensor read(const std::string& name) const;
  /// Into a tensor of the same shape and type, on any device and with any strides.
  void read_into(const std::string& name, const at::Tensor& tensor) const;

  /// What rank `rank` of the world that wrote had for itself, read at once.
  StateDict own(int rank) const;

  /// Throws one error that lists every name that is missing, unexpected, or of another shape or type: to be called
  /// before anything is changed.
  void check(const TensorSpecs& expected) const;

 private:
  const io::StoredTensor& find(const std::string& name) const;
  at::Tensor read_stored(const std::string& name, const io::StoredTensor& stored) const;
  void read_bytes(const std::string& name, const io::StoredTensor& stored, const at::Tensor& tensor) const;

  std::filesystem::path folder_;
  Contents contents_;
  io::RawFile file_;
  TensorSpecs specs_;
  StateDict values_;
};

}  // namespace hortator::checkpoint
