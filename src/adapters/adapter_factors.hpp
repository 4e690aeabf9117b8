#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <memory>
#include <string>

namespace hortator::adapters {

class AdaptedWeight;

/// The module "lora_A", "lora_B", "lora_embedding_A", ... of a layer: one factor of each of the layer's adapters, under
/// the adapter's name.
class AdapterFactors final : public torch::nn::Module {
 public:
  using Module::Module;
  /// The first factors own the layer's adapters.
  explicit AdapterFactors(std::string name, std::shared_ptr<AdaptedWeight> adapted);
  ~AdapterFactors() override;
  AdapterFactors(const AdapterFactors&) = delete;
  AdapterFactors& operator=(const AdapterFactors&) = delete;

  AdaptedWeight* adapted() const { return adapted_.get(); }

  /// Registers "NAME.weight", or NAME itself if `is_direct`.
  void add(const std::string& name, const at::Tensor& weight, bool is_direct, const at::Tensor& bias = {});
  void remove(const std::string& name);

  // A layer moves its own weight after its children; then the weight would be a tensor that no adapter knows.
  void to(torch::Device device, torch::Dtype dtype, bool non_blocking) override;
  void to(torch::Dtype dtype, bool non_blocking) override;
  void to(torch::Device device, bool non_blocking) override;

 private:
  template <typename... Options>
  void move(Options... options);

  std::shared_ptr<AdaptedWeight> adapted_;
};

}  // namespace hortator::adapters
