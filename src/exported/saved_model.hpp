#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "exported/module_tensors.hpp"

namespace hortator::exported {

struct NamedTensor {
  std::string name = {};
  at::Tensor tensor = {};
};

/// Returns the values of a parameter as a whole.
using WholeValues = std::function<at::Tensor(const NamedTensor& parameter)>;

/// A copy of an archive with other values, in the order of its records.
class ArchiveCopy {
 public:
  /// Keeps references to both.
  ArchiveCopy(const OpenArchive& archive, const ModuleTensors& tensors);

  /// The parameters whose values write() asks for, in that order. One that two records hold is there twice.
  std::vector<NamedTensor> parameters() const;

  /// Writes the copy with the values of `whole` for parameters, one after the other, and the present values of buffers.
  /// A reader of `target` finds the whole file or none. What `whole` throws is passed on.
  void write(const std::filesystem::path& target, const WholeValues& whole) const;

 private:
  /// A tensor of the state dict, as a record holds it.
  struct StoredTensor {
    std::string name;
    Payload payload;
    at::Tensor tensor;
  };
  using Records = std::map<std::string, std::vector<StoredTensor>>;

  static std::vector<NamedTensor> parameters_in(const std::vector<StoredTensor>& stored);
  std::string updated(const std::string& record, const std::vector<StoredTensor>& stored,
                      const WholeValues& whole) const;

  const OpenArchive& archive_;
  Records records_;  ///< those of parameters and buffers, by their names
};

/// The values of a parameter that this rank can read alone. Throws UsageError for one that is divided among ranks.
at::Tensor values_on_this_rank(const NamedTensor& parameter);

}  // namespace hortator::exported
