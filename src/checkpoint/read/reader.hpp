#pragma once

#include <filesystem>
#include <hortator/training/state_dict.hpp>
#include <memory>
#include <string>
#include <vector>

#include "checkpoint/manifest.hpp"
#include "checkpoint/read/block_reader.hpp"
#include "checkpoint/read/mismatch.hpp"
#include "mpi/communicator.hpp"

namespace hortator::checkpoint {

/// Is there a completed checkpoint for a Reader to open?
bool exists(const std::filesystem::path& folder);

/// What there may be to open when `folder` is asked for, newest first: the folder, and what saves that were killed
/// while they replaced it had moved aside.
std::vector<std::filesystem::path> candidates(const std::filesystem::path& folder);

/// The one that is meant by `folder`: itself, or where it is missing the newest that was moved aside and is complete.
/// Throws FileError when there is none.
std::filesystem::path find(const std::filesystem::path& folder);

/// An opened checkpoint, whatever the number of ranks that wrote it. Errors name the file and the entry; what cannot be
/// read, or is damaged, is a FileError.
class Reader {
 public:
  /// By this rank alone: what find() finds.
  explicit Reader(const std::filesystem::path& folder, bool verify = true);
  /// Exactly `folder`, by all ranks: one reads the manifest for all. @collective
  Reader(const mpi::Communicator& comm, const std::filesystem::path& folder, bool verify = true);

  const std::filesystem::path& folder() const { return folder_; }  ///< the one that was opened
  const Manifest& manifest() const { return *manifest_; }
  int world_size() const { return static_cast<int>(manifest_->world_size); }

  /// What all ranks had.
  const TensorSpecs& tensors() const { return specs_; }
  const StateDict& values() const { return values_; }  ///< numbers and texts
  at::Tensor read(const std::string& name) const;
  /// Some of its elements, counted in row-major order: one dimension. Nothing but their blocks is read.
  at::Tensor read_part(const std::string& name, core::Range elements) const;
  /// Into a tensor of the same shape and type, on any device and with any strides.
  void read_into(const std::string& name, const at::Tensor& tensor) const;
  /// Some of its elements, one after the other, as BlockReader does it.
  void read_elements(const std::string& name, core::Range elements, std::byte* to) const;

  /// What rank `rank` of the world that wrote had for itself, read at once.
  StateDict own(int rank) const;

 private:
  struct Exact {};
  Reader(const std::filesystem::path& folder, bool verify, Exact);
  Reader(std::filesystem::path folder, Manifest manifest, bool verify);

  void require(const std::string& name) const;

  std::filesystem::path folder_;
  std::unique_ptr<Manifest> manifest_;
  std::unique_ptr<BlockReader> blocks_;
  TensorSpecs specs_;
  StateDict values_;
};

}  // namespace hortator::checkpoint
