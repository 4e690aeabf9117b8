#pragma once

#include <torch/nn/module.h>

#include <filesystem>
#include <hortator/bigmodel/weights.hpp>
#include <memory>
#include <string>
#include <vector>

#include "weights/filling.hpp"
#include "weights/weight_source.hpp"

namespace hortator::accelerator {

/// Weights found for a module: compared with it, but not read yet.
class Loading {
 public:
  /// Throws if the weights do not fit the module; changes nothing.
  Loading(torch::nn::Module& module, const std::filesystem::path& checkpoint, const LoadWeightsOptions& options);

  const weights::WeightSource& source() const { return *source_; }
  std::shared_ptr<const weights::WeightSource> shared_source() const { return source_; }
  const std::vector<weights::Filling>& fillings() const { return fillings_; }
  /// Describes in one line what is left out; empty if nothing is.
  const std::string& omissions() const { return omissions_; }
  /// A text that is equal on two ranks if they load the same from the same files.
  std::string outline() const;

  /// The type that a tensor of the module will have.
  at::ScalarType type_for(const std::string& name, const at::Tensor& tensor) const;
  /// Converts the module's tensors to the requested types, and allocates those that will be filled and have no memory.
  void prepare_module() const;
  /// Throws Error, with their names, if tied tensors have different values in the file. Call it after filling; tensors
  /// that are not in memory as a whole are compared by the file's values.
  void require_tied() const;

 private:
  void convert_module() const;
  at::Tensor values_of(const at::Tensor& tensor) const;

  LoadWeightsOptions options_;
  std::shared_ptr<const weights::WeightSource> source_;
  std::vector<std::pair<std::string, at::Tensor>> tensors_;  ///< of the module, each once
  std::vector<weights::Filling> fillings_;
  std::vector<weights::Filling> twins_;  ///< further names in the file of what is filled
  std::string omissions_;
};

}  // namespace hortator::accelerator
