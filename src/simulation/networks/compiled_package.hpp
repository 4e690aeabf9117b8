#pragma once

#include "exported/compiled/compiled_code.hpp"
#include "simulation/networks/network.hpp"
#include "simulation/sections/section.hpp"

namespace hortator::simulation {

/// A package that AOTInductor has compiled (torch._inductor.aoti_compile_and_package), for inference only: it has no
/// parameters. Inputs are made contiguous.
class CompiledPackage : public Network {
 public:
  /// Keys: file, relative to the folder of the settings. Throws UsageError if it cannot be loaded.
  explicit CompiledPackage(const Section& section);

  Tensors forward(const Tensors& inputs) override { return code_.run(inputs); }

 private:
  exported::CompiledCode code_;
};

}  // namespace hortator::simulation
