#pragma once

#include <torch/nn/module.h>

#include <hortator/training/fp8.hpp>
#include <memory>
#include <string>

#include "interception/weight_operators.hpp"
#include "packed/fp8/scaled_cast.hpp"

namespace hortator::packed {

/// What the tensors of one layer are scaled by.
struct Fp8State {
  explicit Fp8State(Fp8Options chosen) : options(std::move(chosen)) {}
  Fp8State(const Fp8State&) = delete;
  Fp8State& operator=(const Fp8State&) = delete;

  Fp8Options options;
  AmaxHistory inputs{options}, weights{options}, gradients{options};

  at::ScalarType gradient_type() const {
    return options.format == Fp8Format::hybrid ? at::kFloat8_e5m2 : at::kFloat8_e4m3fn;
  }
  AmaxHistory* of(AmaxHistory& history) const { return options.scaling == Fp8Scaling::delayed ? &history : nullptr; }
};

/// A weight whose layer computes in 8 bits.
class Fp8Weight final : public interception::WeightOperator {
 public:
  Fp8Weight(std::string name, bool is_transposed, std::weak_ptr<torch::nn::Module> module, const Fp8Options& options)
      : name_(std::move(name)),
        is_transposed_(is_transposed),
        module_(std::move(module)),
        state_(std::make_shared<Fp8State>(options)) {}

  bool run(const interception::WeightCall& call) override;
  bool changes_products() const override { return true; }

 private:
  bool concerns(const interception::WeightCall& call) const;
  void require_repeatable() const;

  std::string name_;
  bool is_transposed_;  ///< the layer has the matrix as [inputs, outputs]
  std::weak_ptr<torch::nn::Module> module_;
  std::shared_ptr<Fp8State> state_;  ///< also of backward passes
};

}  // namespace hortator::packed
