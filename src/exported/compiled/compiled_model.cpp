#include <ATen/ops/empty.h>

#include <algorithm>
#include <array>
#include <hortator/error.hpp>
#include <hortator/models/compiled.hpp>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/text/text.hpp"
#include "exported/compiled/compiled_code.hpp"
#include "weights/filling.hpp"
#include "weights/weight_source.hpp"

namespace hortator {
namespace {

namespace fs = std::filesystem;
using exported::CompiledCode;

fs::path weights_beside(const fs::path& package) {
  for (const auto* extension : {".weights.safetensors", ".weights.pt"})
    if (const auto file = fs::path(package).replace_extension(extension); fs::exists(file)) return file;
  return {};
}

/// A weight of the code, and where its values are.
struct StoredWeight {
  exported::CompiledWeight weight;
  const weights::WeightSource* source = nullptr;
  std::string stored = {};
};

/// Throws UsageError with all weights that the file does not have, or has with other shapes.
void require_weights(const CompiledCode& code, const fs::path& file, const std::vector<StoredWeight>& weights) {
  std::vector<std::string> absent, different;
  for (const auto& [weight, source, stored] : weights) {
    if (source == nullptr) {
      absent.push_back(text::quote(weight.name));
    } else if (!weight.spec) {
      different.push_back(text::concat(text::quote(weight.name), ", whose shape the package does not say"));
    } else if (const auto has = source->spec(stored); weight.spec->shape != has.shape) {
      different.push_back(text::concat(text::quote(weight.name), " is ", formats::to_string(has), ", and not ",
                                       formats::to_string(*weight.spec)));
    }
  }
  if (!absent.empty()) {
    throw UsageError({.what = text::concat("The weights ", file, " lack tensors of the compiled package ", code.path(),
                                           ": ", text::join(absent)),
                      .why = "the package was compiled without weights",
                      .hint = "name the weights of its model by CompiledOptions::weights, and other names by .rename"});
  }
  if (!different.empty()) {
    throw UsageError({.what = text::concat("The weights ", file, " are not those of the compiled package ", code.path(),
                                           ": ", text::join(different)),
                      .why = "compiled code reads as many bytes as it was compiled for",
                      .hint = "name weights of the same model, or compile the other one by "
                              "share/python/compile_for_hortator.py"});
  }
}

/// Weights of a file by the names of the package.
class NamedWeights {
 public:
  NamedWeights(const fs::path& file, const Renaming& rename) : source_(weights::open_weights(file)) {
    for (const auto& name : source_->names()) stored_.emplace(rename(name), name);
  }

  /// By the first of its names that the file has.
  void find(StoredWeight& one) const {
    auto names = one.weight.names;
    names.insert(names.begin(), one.weight.name);
    for (const auto& name : names) {
      const auto found = stored_.find(name);
      if (one.source != nullptr || found == stored_.end()) continue;
      one.source = source_.get();
      one.stored = found->second;
    }
  }
  const weights::WeightSource& source() const { return *source_; }

 private:
  std::unique_ptr<weights::WeightSource> source_;
  std::map<std::string, std::string> stored_;
};

/// The weights of the package, in memory, by their names. Constants that the file does not have are those beside the
/// package.
std::map<std::string, at::Tensor> read_weights(const CompiledCode& code, const fs::path& file, const Renaming& rename) {
  const NamedWeights named(file, rename);
  const auto beside = weights_beside(code.path());
  std::optional<NamedWeights> constants;
  if (!beside.empty() && beside != file) constants.emplace(beside, Renaming());
  std::vector<StoredWeight> needed;
  for (auto& weight : code.weights()) {
    needed.push_back({.weight = std::move(weight)});
    named.find(needed.back());
    if (constants && needed.back().weight.is_constant) constants->find(needed.back());
  }
  require_weights(code, file, needed);
  std::map<std::string, at::Tensor> tensors;
  for (const NamedWeights* source : std::array<const NamedWeights*, 2>{&named, constants ? &*constants : nullptr}) {
    std::vector<weights::Filling> fillings;
    for (const auto& [weight, of, name] : needed) {
      if (source == nullptr || of != &source->source()) continue;
      fillings.push_back({.stored = name, .tensor = at::empty(weight.spec->shape, weight.spec->type)});
      tensors.emplace(weight.name, fillings.back().tensor);
    }
    if (!fillings.empty()) weights::fill(source->source(), fillings);
  }
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
                      .why = "it was compiled without them, and there is no " +
                             fs::path(package).replace_extension(".weights.safetensors").filename().string() +
                             " beside it",
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
