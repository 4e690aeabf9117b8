#pragma once

#include <memory>

#include "simulation/networks/network.hpp"
#include "simulation/sections/section.hpp"

namespace torch::inductor {
class AOTIModelPackageLoader;
}

namespace hortator::simulation {

/// A package that AOTInductor has compiled (torch._inductor.aoti_compile_and_package), for inference only: it has no
/// parameters. Inputs are made contiguous.
class CompiledPackage : public Network {
 public:
  /// Keys: file, relative to the folder of the settings. Throws UsageError if it cannot be loaded.
  explicit CompiledPackage(const Section& section);
  ~CompiledPackage() override;

  Tensors forward(const Tensors& inputs) override;

 private:
  std::unique_ptr<torch::inductor::AOTIModelPackageLoader> package_;
};

}  // namespace hortator::simulation
