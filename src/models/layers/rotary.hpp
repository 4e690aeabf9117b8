#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hortator::models {

class ConfigFields;

/// Rotary position embedding: pairs of elements of queries and keys are rotated by angles that grow with the position.
/// The scaling types stretch a model to longer texts: default, linear, dynamic, yarn and llama3.
class RotaryEmbedding {
 public:
  /// Reads rope_parameters, or the older rope_theta and rope_scaling. `theta` is the base where none is given.
  RotaryEmbedding(const ConfigFields& fields, std::int64_t width, std::int64_t max_positions, double theta = 1e4);

  /// The cosines and sines of the angles; the first half of the sines has the opposite sign.
  struct Rotation {
    at::Tensor cosine, sine;  ///< [batch or 1, 1, time, width]

    at::Tensor operator()(const at::Tensor& heads) const;

   private:
    at::Tensor rotated_token(const at::Tensor& heads) const;
  };
  /// For positions [batch or 1, time] of a text of `length` tokens so far.
  Rotation rotation(const at::Tensor& positions, std::int64_t length, at::ScalarType type) const;
  /// Whether the frequencies depend on the length.
  bool is_dynamic() const { return type_ == "dynamic"; }

 private:
  std::vector<double> frequencies(double base) const;
  void scale_as_llama3(const ConfigFields& rope);
  void scale_as_yarn(const ConfigFields& rope);

  std::int64_t width_, max_positions_;
  std::string type_;
  double theta_ = 0, factor_ = 1, amplitude_ = 1;
  std::vector<double> frequencies_;
};

}  // namespace hortator::models
