#pragma once

#include <filesystem>
#include <hortator/training/state_dict.hpp>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "checkpoint/manifest.hpp"
#include "checkpoint/read/block_reader.hpp"
#include "formats/tensor/tensor_spec.hpp"
#include "mpi/communicator.hpp"

namespace hortator::checkpoint {

using TensorSpecs = std::map<std::string, formats::TensorSpec>;

/// Returns one line for each name that is missing, unexpected, or differs in shape or type. Pure.
std::vector<std::string> mismatches(const TensorSpecs& expected, const TensorSpecs& found);

/// Whether there is a complete checkpoint that a Reader can open.
bool exists(const std::filesystem::path& folder);

/// Whether `folder` holds a file of a checkpoint, complete or not, or cannot be listed. False for a folder that is
/// empty, has only other files, or does not exist.
bool has_any_file(const std::filesystem::path& folder);

/// Whether the manifest in `folder` can be read and every file that it names has its size. Does not read the data.
bool is_whole(const std::filesystem::path& folder);
/// The same, where the manifest was read already.
bool is_whole(const std::filesystem::path& folder, const Manifest& manifest);

/// The folders that may hold the checkpoint `folder`, newest first: the folder itself, then older versions that killed
/// saves had moved aside while they replaced it.
std::vector<std::filesystem::path> candidates(const std::filesystem::path& folder);

/// The folder to open for the checkpoint `folder`: itself, or if it is missing the newest complete version that was
/// moved aside. Throws FileError if there is none.
std::filesystem::path find(const std::filesystem::path& folder);

/// An open checkpoint, written by any number of ranks. Errors name the file and the entry; unreadable or damaged files
/// throw FileError.
class Reader {
 public:
  /// Opens what find() returns. Not collective.
  explicit Reader(const std::filesystem::path& folder, bool verify = true);
  /// Opens exactly `folder`. One rank reads the manifest for all. @collective
  Reader(const mpi::Communicator& comm, const std::filesystem::path& folder, bool verify = true);

  const std::filesystem::path& folder() const { return folder_; }  ///< the folder that was opened
  const Manifest& manifest() const { return *manifest_; }
  int world_size() const { return static_cast<int>(manifest_->world_size); }

  /// The tensors of the common state.
  const TensorSpecs& tensors() const { return specs_; }
  const StateDict& values() const { return values_; }  ///< numbers and texts
  at::Tensor read(const std::string& name) const;
  /// Reads a range of elements, in row-major order, as a one-dimensional tensor. Reads only the blocks that hold them.
  at::Tensor read_part(const std::string& name, core::Range elements) const;
  /// Reads into a tensor of the same shape and type, on any device and with any strides.
  void read_into(const std::string& name, const at::Tensor& tensor) const;
  /// Reads a range of elements to consecutive bytes.
  void read_elements(const std::string& name, core::Range elements, std::byte* to) const;

  /// Reads the own state of rank `rank` of the run that wrote the checkpoint.
  StateDict own(int rank) const;
  /// Reads of it only what is named "folder/...", without that prefix.
  StateDict own(int rank, const std::string& folder) const;

 private:
  struct Exact {};
  Reader(const std::filesystem::path& folder, bool verify, Exact);
  Reader(std::filesystem::path folder, Manifest manifest, bool verify);

  void require(const std::string& name) const;
  StateDict own_in(int rank, const std::string& path) const;

  std::filesystem::path folder_;
  std::unique_ptr<Manifest> manifest_;
  std::unique_ptr<BlockReader> blocks_;
  TensorSpecs specs_;
  StateDict values_;
};

}  // namespace hortator::checkpoint
