#include "simulation/networks/torch_script.hpp"

#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/serialization/import.h>

#include <filesystem>
#include <hortator/error.hpp>

#include "core/text/text.hpp"

namespace hortator::simulation {
namespace {

[[noreturn]] void refuse_result(const std::string& type) {
  throw UsageError({.what = "The TorchScript module returned a value of type " + type,
                    .hint = "return a tensor, or a tuple or list of tensors"});
}

Network::Tensors tensors_of(const c10::IValue& result) {
  if (result.isTensor()) return {result.toTensor()};
  if (result.isTensorList()) return result.toTensorVector();
  if (!result.isTuple()) refuse_result(result.tagKind());
  Network::Tensors tensors;
  for (const auto& element : result.toTupleRef().elements()) {
    if (!element.isTensor()) refuse_result(element.tagKind());
    tensors.push_back(element.toTensor());
  }
  return tensors;
}

}  // namespace

TorchScript TorchScript::load(const Section& section) {
  const auto path = std::filesystem::path(section.file()).parent_path() / section.text("file");
  try {
    return TorchScript(torch::jit::load(path.string()));
  } catch (const c10::Error& error) {
    std::error_code ignored;
    const bool is_missing = !std::filesystem::exists(path, ignored);
    throw section.error("file",
                        text::concat(text::quote(path.string()), is_missing ? " does not exist" : " cannot be loaded: ",
                                     is_missing ? "" : text::first_line(error.what_without_backtrace())),
                        "save the module in Python with torch.jit.script(module).save(FILE)");
  }
}

TorchScript::TorchScript(torch::jit::Module module) : module_(std::make_shared<torch::jit::Module>(std::move(module))) {
  for (const auto& parameter : module_->named_parameters()) adopt(parameter.name, parameter.value, true);
  for (const auto& buffer : module_->named_buffers()) adopt(buffer.name, buffer.value, false);
  TorchScript::train(true);
}

// Names in the file have dots; a module's own tensors may not.
void TorchScript::adopt(const std::string& name, const at::Tensor& tensor, bool is_parameter) {
  torch::nn::Module* owner = this;
  auto parts = text::split(name, '.');
  const auto leaf = parts.back();
  parts.pop_back();
  for (const auto& part : parts) {
    const auto children = owner->named_children();
    const auto* known = children.find(part);
    owner =
        known != nullptr ? known->get() : owner->register_module(part, std::make_shared<torch::nn::Module>(part)).get();
  }
  if (is_parameter) {
    owner->register_parameter(leaf, tensor, tensor.requires_grad());
  } else {
    owner->register_buffer(leaf, tensor);
  }
}

Network::Tensors TorchScript::call(const Tensors& inputs) const {
  const std::vector<c10::IValue> arguments(inputs.begin(), inputs.end());
  return tensors_of(module_->forward(arguments));
}

Network::Tensors TorchScript::forward(const Tensors& inputs) { return call(inputs); }

void TorchScript::train(bool on) {
  torch::nn::Module::train(on);
  module_->train(on);
}

}  // namespace hortator::simulation
