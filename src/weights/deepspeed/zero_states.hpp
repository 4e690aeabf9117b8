#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "weights/deepspeed/zero_reading.hpp"

namespace hortator::weights {

/// A checkpoint of DeepSpeed's ZeRO, stage 1, 2 or 3: where in its files each tensor is. The constructor reads only
/// what the files say about their tensors, and checks that these fit together. Throws FileError, naming the file,
/// otherwise. Not thread-safe.
class ZeroStates {
 public:
  explicit ZeroStates(const std::filesystem::path& folder);

  const std::filesystem::path& path() const { return folder_; }
  /// The names of the model's tensors, in Python's order.
  const std::vector<std::string>& names() const { return names_; }
  const StoredTensor& tensor(const std::string& name) const;
  /// The first name of a tied parameter; of others their own.
  const std::string& first_name(const std::string& name) const;

  const std::vector<ZeroParameter>& parameters() const { return parameters_; }
  /// Rank 0's file of the optimizer: the options, and what it keeps for each array.
  const formats::ZeroArrays& optimizer() const { return optimizer_; }

  /// Reads a range of elements.
  void read(const StoredTensor& tensor, core::Range elements, std::byte* to) const;
  at::Tensor whole(const StoredTensor& tensor) const;
  void require_unchanged() const { files_.require_unchanged(); }

 private:
  std::filesystem::path folder_;
  formats::FilePool files_;
  std::vector<std::string> names_;
  std::map<std::string, StoredTensor> tensors_;
  std::map<std::string, std::string> shared_;
  std::vector<ZeroParameter> parameters_;
  formats::ZeroArrays optimizer_;
};

}  // namespace hortator::weights
