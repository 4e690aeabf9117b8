#pragma once

#include <torch/nn/module.h>

#include <ATen/core/Tensor.h>

#include <concepts>
#include <cstddef>
#include <filesystem>
#include <hortator/export.hpp>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

namespace hortator {

class Accelerator;
namespace exported {
class Forms;
}

/// What an exported model returned: the tensors of Python's result, in order, out of all tuples, lists and dicts. None
/// or a text is an undefined tensor, and a number is a tensor without dimensions.
struct ExportedOutputs {
  std::vector<at::Tensor> tensors = {};
  std::shared_ptr<const std::vector<std::string>> names =
      {};  ///< "logits", "hidden_states.0"; empty for a single tensor

  std::vector<bool> are_numbers = {};  ///< in Python: numbers of the same place in `tensors`

  std::size_t size() const { return tensors.size(); }
  const at::Tensor& operator[](std::size_t index) const { return tensors.at(index); }
  /// Throws UsageError, with the nearest name, if there is no such output.
  HORTATOR_API const at::Tensor& operator[](const std::string& name) const;

  auto fields() { return std::tie(tensors); }
};

/// A model that Python's torch.export.save wrote, made by exported_module(). Parameters and buffers have their names in
/// Python, tied ones the first of their names, and are trained, sharded and saved as those of any module. Modules have
/// the names of their classes in Python, as no_split_module_classes takes them. Forward runs the operators of the
/// exported graph, so gradients are those of the Python model.
///
/// A file that share/python/export_for_hortator.py wrote has two forms of the graph, and train() and eval() choose one.
/// torch.export.save writes one form, that of the mode which the model had. It runs in both modes, except that in eval
/// mode a form with dropout or batch normalisation in training throws UsageError.
class HORTATOR_API ExportedModule : public torch::nn::Module {
 public:
  /// Makes the module of the forms of a graph; exported_module() calls it.
  explicit ExportedModule(std::unique_ptr<exported::Forms> forms);
  ~ExportedModule() override;

  /// Runs the model on its inputs in the order of input_names(). Throws UsageError for tensors whose shapes the export
  /// does not allow.
  ExportedOutputs forward(const std::vector<at::Tensor>& inputs);
  /// Runs the model on inputs by name, all of them.
  ExportedOutputs forward(const std::map<std::string, at::Tensor>& inputs);
  template <std::same_as<at::Tensor>... More>
  ExportedOutputs forward(const at::Tensor& first, const More&... more) {
    return forward(std::vector<at::Tensor>{first, more...});
  }

  /// Names of the tensors that the model takes: those of the arguments of Python's forward, with keys and positions
  /// within them ("features.0"). Numbers, texts and None are constants of the export, and are not among them. A number
  /// that was exported as dynamic is given as a tensor without dimensions.
  const std::vector<std::string>& input_names() const;
  /// Names of the outputs: keys and positions in Python's result.
  const std::vector<std::string>& output_names() const;
  /// Other names of tied parameters in Python's state dict, and the names that they have here.
  std::map<std::string, std::string> tied_names() const;

  /// Writes a .pt2 file on the rank that calls it, with the present values of parameters and buffers, which
  /// exported_module() and Python's torch.export.load read: a copy of the file that this module was made of, which must
  /// still be there. Throws UsageError for parameters that are divided among ranks. Local.
  void write(const std::filesystem::path& file) const;
  /// Writes the same on the main process, called by all ranks of the Accelerator, also where it has divided the
  /// parameters: by ZeRO stage 3, tensor parallelism or a pipeline. The main process gets one whole parameter after the
  /// other, and no rank has all of them. If a rank fails, all throw, and `file` is what it was. @collective
  void write(Accelerator& accelerator, const std::filesystem::path& file) const;

  const exported::Forms& forms() const { return *forms_; }  ///< for this library's other sources

 private:
  std::unique_ptr<exported::Forms> forms_;
};

/// Reads a .pt2 file, which torch.export.save of PyTorch 2.9 or newer wrote. Every rank calls it. Throws an error that
/// names the operator or feature and its position in the graph if it is not supported, or not known to this LibTorch.
/// Within construct_deferred(), each parameter of 1 MiB or more is read when it is needed.
///
///     auto net = hortator::exported_module("model.pt2");
///     auto [model, optimizer] = accelerator.prepare(net, adamw);
///     auto loss = mse_loss(model(x)[0], y);
HORTATOR_API std::shared_ptr<ExportedModule> exported_module(const std::filesystem::path& file);

}  // namespace hortator
