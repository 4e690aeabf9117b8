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

/// Weights that fit a module, found and compared but not read.
class Loading {
 public:
  /// Throws what does not fit; changes nothing.
  Loading(torch::nn::Module& module, const std::filesystem::path& checkpoint, const LoadWeightsOptions& options);

  const weights::WeightSource& source() const { return *source_; }
  std::shared_ptr<const weights::WeightSource> shared_source() const { return source_; }
  const std::vector<weights::Filling>& fillings() const { return fillings_; }
  /// What is left out, in a line; empty when nothing is.
  const std::string& omissions() const { return omissions_; }
  /// What is loaded from where, as a text that is the same where that is.
  std::string outline() const;

  /// The type that a tensor of the module is to have.
  at::ScalarType type_for(const std::string& name, const at::Tensor& tensor) const;
  /// Gives the module's tensors the types that were asked for, and memory to those that are filled and have none.
  void prepare_module() const;
  /// After filling: throws, naming them, where tied tensors have different values in the file. Of those that are not
  /// in memory the file's values are compared.
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
