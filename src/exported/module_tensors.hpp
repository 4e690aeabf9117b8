#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "exported/file/payload.hpp"
#include "exported/stored_model.hpp"

namespace hortator::exported {

/// The archive of an open file, which must not change while it is in use.
struct OpenArchive {
  std::filesystem::path path;
  Archive archive;
};
std::shared_ptr<const OpenArchive> open_archive(const std::filesystem::path& file);

/// The parameters and buffers of a model, as the state dict of the file has them, and its other tensors.
class ModuleTensors {
 public:
  /// Reads the tensors of the state dict; parameters later if this thread constructs without memory. Throws
  /// ExportFault for parameters that share memory without being the same.
  ModuleTensors(std::shared_ptr<const OpenArchive> file, const StoredProgram& program);

  /// The tensor of an input of a program of the file. Buffers outside the state dict are the same in all programs.
  at::Tensor find(const StoredProgram& program, const InputSpec& input);
  /// The parameter or buffer of this name of the state dict; undefined if there is none.
  at::Tensor of_state(const std::string& name) const;
  /// The buffer of this name outside the state dict; undefined if there is none.
  at::Tensor other_buffer(const std::string& name) const;
  const OpenArchive& archive() const { return *file_; }
  /// Registers the state dict in modules with the names that it has: "layers.0.weight" as "weight" of the module "0" of
  /// the module "layers". The modules' name() is that of their class in Python, where the graph has it. Tied parameters
  /// have the first of their names, as in Python's named_parameters().
  void register_in(torch::nn::Module& module) const;
  /// Other names of tied parameters, and the names under which they are registered.
  std::map<std::string, std::string> other_names() const;

 private:
  struct Entry {
    std::string name;
    Payload payload;
    at::Tensor tensor;
  };
  void add(const std::string& name, const Payload& payload);
  at::Tensor parameter(const std::string& name, const Payload& payload);
  at::Tensor buffer(const std::string& name, const Payload& payload);

  std::shared_ptr<const OpenArchive> file_;
  PayloadReader reader_;
  std::map<std::string, std::string> classes_;       ///< of modules, by their paths
  std::vector<Entry> state_;                         ///< in the order of Python's parameters and buffers
  std::map<std::string, at::Tensor> by_name_;        ///< the tensors of state_
  std::map<std::string, at::Tensor> other_buffers_;  ///< outside the state dict
};

}  // namespace hortator::exported
