#include "accelerator/weights/loading.hpp"

#include <ATen/ops/empty_like.h>

#include <algorithm>
#include <hortator/accelerator.hpp>
#include <hortator/error.hpp>
#include <map>
#include <optional>
#include <set>

#include "accelerator/training.hpp"
#include "accelerator/weights/checkpoint_weights.hpp"
#include "accelerator/weights/matching.hpp"
#include "accelerator/weights/module_weights.hpp"
#include "base/activity.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "mpi/agree.hpp"

namespace hortator {
namespace accelerator {
namespace {

std::vector<Wanted> wanted_of(const std::vector<ModuleWeight>& weights) {
  std::vector<Wanted> wanted;
  for (const auto& [name, tensor, first] : weights)
    wanted.push_back({.name = name, .spec = io::spec_of(tensor), .first = first});
  return wanted;
}

std::vector<Filling> fillings_of(const std::vector<Matching::Pair>& pairs, const std::vector<ModuleWeight>& weights) {
  std::vector<Filling> fillings;
  for (const auto& [wanted, stored] : pairs) fillings.push_back({.stored = stored, .tensor = weights[wanted].tensor});
  return fillings;
}

/// Into the order in which the bytes lie in the files.
void sort_as_stored(std::vector<Filling>& fillings, const io::WeightSource& source) {
  std::map<std::string, std::size_t> places;
  for (const auto& name : source.names()) places.emplace(name, places.size());
  std::ranges::sort(fillings, {}, [&](const Filling& one) { return places.at(one.stored); });
}

void require_materialised(const std::vector<ModuleWeight>& weights) {
  const auto empty = std::ranges::find_if(weights, [](const ModuleWeight& weight) { return weight.tensor.is_meta(); });
  if (empty == weights.end()) return;
  throw UsageError(
      {.what = text::concat("the tensor ", text::quote(empty->name), " of the model is on the meta device"),
       .why = "it has no memory to load values into",
       .hint = "make the model on a device first"});
}

/// Whether `name` is, or lies in, a module of `modules`, or in one whose name has it as a part.
bool is_in(const std::vector<std::string>& modules, const std::string& name) {
  return std::ranges::any_of(modules, [&](const std::string& module) {
    return name == module || name.find(module + ".") != std::string::npos;
  });
}

}  // namespace

Loading::Loading(torch::nn::Module& module, const std::filesystem::path& checkpoint, const LoadWeightsOptions& options)
    : options_(options), source_(open_weights_or_checkpoint(checkpoint, options.model)) {
  const auto weights = weights_of(module);
  require_materialised(weights);
  const auto matching = match(wanted_of(weights), *source_, options.rename);
  require_match(matching, *source_, options.strict);
  omissions_ = accelerator::omissions(matching, *source_);
  fillings_ = fillings_of(matching.loads, weights);
  sort_as_stored(fillings_, *source_);
  twins_ = fillings_of(matching.twins, weights);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (weights[i].first == i) tensors_.emplace_back(weights[i].name, weights[i].tensor);
  }
}

std::string Loading::outline() const {
  std::vector<std::string> lines;
  for (const auto& [stored, tensor] : fillings_) lines.push_back(stored + io::to_string(source_->spec(stored)));
  return text::join(lines);
}

void Loading::convert_module() const {
  if (!options_.dtype) return;
  std::set<const at::TensorImpl*> filled;
  for (const auto& one : fillings_) filled.insert(one.tensor.unsafeGetTensorImpl());
  const at::NoGradGuard no_grad;
  for (const auto& [name, tensor] : tensors_) {
    const auto type = is_in(options_.keep_in_fp32_modules, name) ? at::kFloat : *options_.dtype;
    if (!tensor.is_floating_point() || tensor.scalar_type() == type) continue;
    const bool is_filled = filled.contains(tensor.unsafeGetTensorImpl());
    tensor.set_data(is_filled ? at::empty_like(tensor, tensor.options().dtype(type)) : tensor.to(type));
  }
}

void Loading::require_tied() const {
  std::vector<std::string> untied;
  for (const auto& twin : twins_) {
    if (!holds(*source_, twin)) untied.push_back(text::quote(twin.stored));
  }
  if (untied.empty()) return;
  throw Error({.what = text::concat("the weights of ", source_->path(), " have other values in ", text::join(untied),
                                    " than in the tensors to which the model ties them"),
               .why = "a tied parameter has one value; what was read stands in the model",
               .hint = "untie them in the model, or tie them where the weights come from"});
}

}  // namespace accelerator

namespace detail {

void load_weights(torch::nn::Module& module, const std::filesystem::path& checkpoint,
                  const LoadWeightsOptions& options) {
  const accelerator::Loading loading(module, checkpoint, options);
  if (!loading.omissions().empty()) log::warn(loading.omissions());
  loading.convert_module();
  accelerator::fill(loading.source(), loading.fillings());
  loading.require_tied();
}

}  // namespace detail

// The ranks of one node find in the system's cache what one of them has read. Between nodes nothing is read twice: a
// file system that serves many of them is slower than the network.
void Accelerator::load_into(torch::nn::Module& module, const std::filesystem::path& checkpoint,
                            const LoadWeightsOptions& options) {
  const activity::PhaseScope phase(activity::Phase::checkpoint);
  const auto& host = training_->host();
  std::optional<accelerator::Loading> loading;
  mpi::all_or_none(host, [&] { loading.emplace(module, checkpoint, options); });
  mpi::same_on_all(host, loading->outline(), "what is loaded into the model");
  if (is_main_process() && !loading->omissions().empty()) log::warn(loading->omissions());
  mpi::all_or_none(host, [&] {
    loading->convert_module();
    const auto& fillings = loading->fillings();
    if (num_nodes() == 1) {
      accelerator::fill(loading->source(), fillings);
    } else {
      accelerator::fill_together(training_->communicator_of({}), loading->source(), fillings);
    }
    loading->require_tied();
  });
}

void Accelerator::load_checkpoint_in_model(const ModelBase& model, const std::filesystem::path& checkpoint,
                                           const LoadWeightsOptions& options) {
  model.core().check_alive();
  load_into(model.core().module(), checkpoint, options);
}

}  // namespace hortator
