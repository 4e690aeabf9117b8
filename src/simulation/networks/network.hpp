#pragma once

#include <cstdint>
#include <hortator/models/from_settings.hpp>
#include <optional>

namespace hortator::simulation {

/// Which dimension of a batch holds the features (channels) of samples, and how many there are.
struct FeatureShape {
  std::int64_t dim = -1;  ///< counted from the end where it is negative
  std::int64_t inputs = 0;
  std::int64_t outputs = 0;
};

/// A model of a simulation: tensors in, tensors out.
class Network : public models::TensorModule {
 public:
  /// Computes the outputs where they belong, without a copy, where no gradient is wanted. Returns false, and has done
  /// nothing, if it cannot do so with these tensors.
  virtual bool forward_into(const Tensors& /*inputs*/, const Tensors& /*outputs*/) { return false; }

  /// Whether forward differentiates, so that it needs gradients to be recorded also where none of its own is wanted.
  virtual bool differentiates() const { return false; }

  /// Nothing if the network does not know: those of files from Python and of C++ modules.
  virtual std::optional<FeatureShape> features() const { return {}; }

 protected:
  /// Makes the members of a module members of this one: without the module in between, whose name would be part of
  /// theirs.
  void adopt(const torch::nn::Module& module);
};

/// A network of one input and one output. Throws UsageError for another number of inputs.
class SingleNetwork : public Network {
 public:
  Tensors forward(const Tensors& inputs) final;

 private:
  virtual at::Tensor compute(const at::Tensor& input) = 0;
};

/// Throws UsageError unless `input` has `count` features in dimension `dim`, and at least `min_dims` dimensions.
void require_features(const at::Tensor& input, std::int64_t dim, std::int64_t count, std::int64_t min_dims);

}  // namespace hortator::simulation
