#pragma once

#include <hortator/models/exported.hpp>
#include <memory>

#include "simulation/networks/network.hpp"
#include "simulation/sections/section.hpp"

namespace hortator::simulation {

/// A .pt2 file of torch.export.save, with as many inputs and outputs as the Python model has tensors. Its parameters
/// and buffers have Python's names, can be trained and are saved as any model's.
class ExportedFile : public Network {
 public:
  /// Keys: file, relative to the folder of the settings. Throws UsageError if there is no such file.
  explicit ExportedFile(const Section& section);

  Tensors forward(const Tensors& inputs) override;
  void train(bool on = true) override;
  const ExportedModule& model() const { return *model_; }

 private:
  std::shared_ptr<ExportedModule> model_;
};

}  // namespace hortator::simulation
