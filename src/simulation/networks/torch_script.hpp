#pragma once

#include <memory>
#include <vector>

#include "simulation/networks/network.hpp"
#include "simulation/sections/section.hpp"

namespace torch::jit {
struct Module;
}

namespace hortator::simulation {

/// A TorchScript file, which takes tensors and returns a tensor, or a tuple or list of tensors. Its parameters and
/// buffers have the file's names, can be trained and are saved as any model's.
class TorchScript : public Network {
 public:
  /// Keys: file, relative to the folder of the settings. Throws UsageError if it cannot be loaded.
  static TorchScript load(const Section& section);

  Tensors forward(const Tensors& inputs) override;
  /// forward() as a const function.
  Tensors call(const Tensors& inputs) const;
  void train(bool on = true) override;

 private:
  explicit TorchScript(torch::jit::Module module);
  void adopt(const std::string& name, const at::Tensor& tensor, bool is_parameter);

  std::shared_ptr<torch::jit::Module> module_;
};

}  // namespace hortator::simulation
