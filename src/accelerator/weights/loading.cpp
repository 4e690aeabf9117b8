#include "accelerator/weights/loading.hpp"

#include <ATen/ops/empty_like.h>

#include <algorithm>
#include <hortator/error.hpp>
#include <map>
#include <optional>
#include <set>

#include "accelerator/weights/checkpoint_weights.hpp"
#include "accelerator/weights/floating_type.hpp"
#include "core/log.hpp"
#include "core/text/text.hpp"
#include "interception/weight_operators.hpp"
#include "packed/stored_layers.hpp"
#include "paging/deferred/construction_scope.hpp"
#include "parallel/tensor/divided_tensor.hpp"
#include "weights/matching.hpp"
#include "weights/module_weights.hpp"

namespace hortator::accelerator {
namespace {

/// `packed`: layers that become packed.
std::vector<weights::Wanted> wanted_of(const std::vector<weights::ModuleWeight>& weights,
                                       const std::vector<packed::PackableLayer>& packed) {
  std::vector<weights::Wanted> wanted;
  for (const auto& [name, tensor, first] : weights)
    wanted.push_back({.name = name, .spec = formats::spec_of(tensor), .first = first});
  for (const auto& layer : packed) {
    for (std::size_t i = 0; i < weights.size(); ++i)
      if (weights[i].tensor.is_same(layer.weight))
        wanted[i].spec = {.type = at::kByte, .shape = {layer.layout.bytes(), 1}};
  }
  return wanted;
}

std::vector<weights::Filling> fillings_of(const std::vector<weights::Matching::Pair>& pairs,
                                          const std::vector<weights::ModuleWeight>& weights) {
  std::vector<weights::Filling> fillings;
  for (const auto& [wanted, stored] : pairs) fillings.push_back({.stored = stored, .tensor = weights[wanted].tensor});
  return fillings;
}

/// Sorts fillings into the order of their bytes in the files.
void sort_as_stored(std::vector<weights::Filling>& fillings, const weights::WeightSource& source) {
  std::map<std::string, std::size_t> places;
  for (const auto& name : source.names()) places.emplace(name, places.size());
  std::ranges::sort(fillings, {}, [&](const weights::Filling& one) { return places.at(one.stored); });
}

void require_materialised(const std::vector<weights::ModuleWeight>& weights) {
  const auto empty =
      std::ranges::find_if(weights, [](const weights::ModuleWeight& weight) { return weight.tensor.is_meta(); });
  if (empty == weights.end()) return;
  throw UsageError(
      {.what = text::concat("The tensor ", text::quote(empty->name), " of the model is on the meta device"),
       .why = "it has no memory to load values into",
       .hint = "make the model on a device first"});
}

/// Whether `name` is in a module of `modules`, or in one whose name contains one of them.
bool is_in(const std::vector<std::string>& modules, const std::string& name) {
  return std::ranges::any_of(modules, [&](const std::string& module) {
    return name == module || name.find(module + ".") != std::string::npos;
  });
}

}  // namespace

Loading::Loading(torch::nn::Module& module, const std::filesystem::path& checkpoint, const LoadWeightsOptions& options)
    : options_(options), source_(packed::with_packed_layers(open_weights_or_checkpoint(checkpoint, options.model))) {
  require_floating(options.dtype);
  const auto weights = weights::weights_of(module);
  require_materialised(weights);
  const auto packed_in_file = packed::layers_packed_in(*source_, module, options.rename);
  const auto matching = weights::match(wanted_of(weights, packed_in_file), *source_, options.rename);
  weights::require_match(matching, *source_, options.strict);
  for (const auto& layer : packed_in_file) packed::become_packed(layer);
  omissions_ = weights::omissions(matching, *source_);
  fillings_ = fillings_of(matching.loads, weights);
  sort_as_stored(fillings_, *source_);
  twins_ = fillings_of(matching.twins, weights);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (weights[i].first == i) tensors_.emplace_back(weights[i].name, weights[i].tensor);
  }
}

std::string Loading::outline() const {
  std::vector<std::string> lines;
  for (const auto& filling : fillings_)
    lines.push_back(filling.stored + formats::to_string(source_->spec(filling.stored)));
  return text::join(lines);
}

at::ScalarType Loading::type_for(const std::string& name, const at::Tensor& tensor) const {
  if (!options_.dtype || !tensor.is_floating_point()) return tensor.scalar_type();
  return is_in(options_.keep_in_fp32_modules, name) ? at::kFloat : *options_.dtype;
}

void Loading::prepare_module() const {
  convert_module();
  std::vector<at::Tensor> filled;
  for (const auto& one : fillings_) filled.push_back(one.tensor);
  paging::give_lacking_memory(filled);
}

void Loading::convert_module() const {
  if (!options_.dtype) return;
  std::set<const at::TensorImpl*> filled;
  for (const auto& one : fillings_) filled.insert(one.tensor.unsafeGetTensorImpl());
  const at::NoGradGuard no_grad;
  for (const auto& [name, tensor] : tensors_) {
    const auto type = type_for(name, tensor);
    if (tensor.scalar_type() == type) continue;
    const bool is_filled = filled.contains(tensor.unsafeGetTensorImpl());
    tensor.set_data(is_filled ? at::empty_like(tensor, tensor.options().dtype(type)) : tensor.to(type));
  }
  interception::refresh_weights();
}

at::Tensor Loading::values_of(const at::Tensor& tensor) const {
  if (!paging::lacks_memory(tensor) && !parallel::is_divided(tensor) && !interception::is_packed(tensor)) return tensor;
  // One storage may hold many parameters.
  const auto is_it = [&](const weights::Filling& one) {
    return one.tensor.is_same(tensor) ||
           (one.tensor.storage().unsafeGetStorageImpl() == tensor.storage().unsafeGetStorageImpl() &&
            one.tensor.storage_offset() == tensor.storage_offset());
  };
  const auto loaded = std::ranges::find_if(fillings_, is_it);
  auto values = source_->tensor(loaded->stored);
  return interception::is_packed(tensor) ? values : values.to(tensor.scalar_type());
}

void Loading::require_tied() const {
  std::vector<std::string> untied;
  for (const auto& twin : twins_) {
    const bool is_same = weights::holds(*source_, {.stored = twin.stored, .tensor = values_of(twin.tensor)});
    if (!is_same) untied.push_back(text::quote(twin.stored));
  }
  if (untied.empty()) return;
  throw Error({.what = text::concat("The weights of ", source_->path(), " have other values in ", text::join(untied),
                                    " than in the tensors to which the model ties them"),
               .why = "a tied parameter has one value; what was read stands in the model",
               .hint = "untie them in the model, or tie them where the weights come from"});
}

}  // namespace hortator::accelerator
