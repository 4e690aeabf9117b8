#include "simulation/networks/exported_file.hpp"

#include <filesystem>
#include <system_error>

#include "core/text/text.hpp"

namespace hortator::simulation {

ExportedFile::ExportedFile(const Section& section) {
  const auto path = std::filesystem::path(section.file()).parent_path() / section.text("file");
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) {
    throw section.error("file", text::concat(text::quote(path.string()), " does not exist"),
                        "export the model in Python with export_for_hortator.py or torch.export.save");
  }
  model_ = exported_module(path);
  adopt(*model_);
  ExportedFile::train(true);
}

Network::Tensors ExportedFile::forward(const Tensors& inputs) {
  const auto outputs = model_->forward(inputs);
  Tensors tensors;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].defined() && !outputs.are_numbers[i]) tensors.push_back(outputs[i]);
  }
  return tensors;
}

void ExportedFile::train(bool on) {
  torch::nn::Module::train(on);
  model_->train(on);
}

}  // namespace hortator::simulation
