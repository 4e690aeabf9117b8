#include <ATen/ops/empty.h>

#include <algorithm>
#include <hortator/error.hpp>
#include <hortator/models/compiled.hpp>
#include <map>
#include <utility>

#include "core/text/text.hpp"
#include "exported/compiled/compiled_code.hpp"
#include "weights/filling.hpp"
#include "weights/weight_source.hpp"

namespace hortator {
namespace {

namespace fs = std::filesystem;
using exported::CompiledCode;

fs::path weights_beside(const fs::path& package) {
  for (const auto* name : {"weights.safetensors", "weights.pt"})
    if (const auto file = package.parent_path() / name; fs::exists(file)) return file;
  return {};
}

/// The weights of the package, in memory, by their names.
std::map<std::string, at::Tensor> read_weights(const CompiledCode& code, const fs::path& file, const Renaming& rename) {
  const auto source = weights::open_weights(file);
  std::map<std::string, std::string> stored;
  for (const auto& name : source->names()) stored.emplace(rename(name), name);
  std::map<std::string, at::Tensor> tensors;
  std::vector<weights::Filling> fillings;
  std::vector<std::string> absent;
  for (const auto& name : code.weight_names()) {
    const auto found = stored.find(name);
    if (found == stored.end()) {
      absent.push_back(text::quote(name));
      continue;
    }
    const auto spec = source->spec(found->second);
    fillings.push_back({.stored = found->second, .tensor = at::empty(spec.shape, spec.type)});
    tensors.emplace(name, fillings.back().tensor);
  }
  if (!absent.empty()) {
    throw UsageError({.what = text::concat("The weights ", file, " lack tensors of the compiled package ", code.path(),
                                           ": ", text::join(absent)),
                      .why = "the package was compiled without weights",
                      .hint = "name the weights of its model by CompiledOptions::weights, and other names by .rename"});
  }
  weights::fill(*source, fillings);
  return tensors;
}

torch::nn::Module& module_below(torch::nn::Module& root, const std::string& path) {
  auto* module = &root;
  for (const auto& name : text::split(path, '.')) {
    const auto children = module->named_children();
    const auto* found = children.find(name);
    module = found != nullptr ? found->get()
                              : module->register_module(name, std::make_shared<torch::nn::Module>(name)).get();
  }
  return *module;
}

void register_weight(torch::nn::Module& root, const std::string& name, const at::Tensor& weight) {
  const auto dot = name.rfind('.');
  auto& module = dot == std::string::npos ? root : module_below(root, name.substr(0, dot));
  const auto own = dot == std::string::npos ? name : name.substr(dot + 1);
  if (weight.is_floating_point()) {
    module.register_parameter(own, weight, /*requires_grad=*/false);
  } else {
    module.register_buffer(own, weight);
  }
}

[[noreturn]] void refuse_to_move() {
  throw UsageError({.what = "to() was called on a compiled model",
                    .why = "compiled code has one type and one device",
                    .hint = "compile it for the other one, or use hortator::exported_module()"});
}

}  // namespace

CompiledModel::CompiledModel(std::unique_ptr<CompiledCode> code) : code_(std::move(code)) { eval(); }
CompiledModel::~CompiledModel() = default;

std::vector<at::Tensor> CompiledModel::forward(const std::vector<at::Tensor>& inputs) { return code_->run(inputs); }

void CompiledModel::to(torch::Device /*device*/, torch::Dtype /*dtype*/, bool /*non_blocking*/) { refuse_to_move(); }
void CompiledModel::to(torch::Dtype /*dtype*/, bool /*non_blocking*/) { refuse_to_move(); }
void CompiledModel::to(torch::Device device, bool /*non_blocking*/) {
  const auto tensors = parameters();
  if (std::ranges::any_of(tensors, [&](const auto& one) { return one.device() != device; })) refuse_to_move();
}

std::shared_ptr<CompiledModel> load_compiled(const fs::path& package, const CompiledOptions& options) {
  auto code = std::make_unique<CompiledCode>(package);
  const auto is_separate = code->notes().contains("weights");
  const auto file = !options.weights.empty() ? options.weights : is_separate ? weights_beside(package) : fs::path();
  if (is_separate && file.empty()) {
    throw UsageError({.what = text::concat("The compiled package ", package, " has no weights of its own"),
                      .why = "it was compiled without them, and there is no weights.safetensors beside it",
                      .hint = "name them by CompiledOptions::weights"});
  }
  std::map<std::string, at::Tensor> weights;
  if (!file.empty()) weights = read_weights(*code, file, options.rename);
  if (!weights.empty()) code->use(weights);
  auto model = std::make_shared<CompiledModel>(std::move(code));
  for (const auto& [name, weight] : weights) register_weight(*model, name, weight);
  return model;
}

}  // namespace hortator
