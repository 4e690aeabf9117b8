#include "shard/flat_parameters.hpp"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <hortator/error.hpp>
#include <numeric>

#include "base/text.hpp"

namespace hortator::shard {
namespace {

// Not a view: LibTorch refuses to detach views in place.
at::Tensor stretch_of(const at::Tensor& memory, std::int64_t begin, at::IntArrayRef sizes) {
  auto stretch = at::empty({0}, memory.options());
  stretch.set_(memory.storage(), memory.storage_offset() + begin, sizes);
  return stretch;
}

std::int64_t version_of(const at::Tensor& tensor) { return static_cast<std::int64_t>(tensor._version()); }

[[noreturn]] void throw_overlap(const std::string& a, const std::string& b) {
  throw UsageError({.what = text::concat("the parameters ", a, " and ", b, " share memory without being one tensor"),
                    .why = "each would get a place of its own, and they would drift apart",
                    .hint = "register the same tensor under both names"});
}

}  // namespace

FlatParameters::FlatParameters(comm::Communicator& communicator, std::vector<Parameter> parameters,
                               const Limits& limits, Masters masters)
    : communicator_(communicator), parameters_(std::move(parameters)) {
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < parameters_.size(); ++i) numbers_.emplace(parameters_[i].tensor.unsafeGetTensorImpl(), i);
  check_movable();
  make_plan(limits, masters == Masters::fp32);
  move_in();
}

std::optional<std::size_t> FlatParameters::find(const at::Tensor& parameter) const {
  const auto found = numbers_.find(parameter.unsafeGetTensorImpl());
  return found == numbers_.end() ? std::nullopt : std::optional(found->second);
}

void FlatParameters::check_movable() const {
  struct Extent {
    const char* begin;
    const char* end;
    const std::string* name;
  };
  std::vector<Extent> extents;
  for (const auto& [name, tensor] : parameters_) {
    if (tensor.layout() != at::kStrided || tensor.device() != parameters_.front().tensor.device()) {
      throw UsageError({.what = text::concat("the parameter ", name, " cannot be sharded: it is ", tensor.layout(),
                                             " on ", tensor.device()),
                        .why = "a model's parameters are sharded together, as dense tensors on one device",
                        .hint = "use ZeRO stage 0 for this model"});
    }
    const auto* begin = static_cast<const char*>(tensor.const_data_ptr());
    if (tensor.numel() > 0 && tensor.is_non_overlapping_and_dense())
      extents.push_back({begin, begin + tensor.nbytes(), &name});
  }
  std::sort(extents.begin(), extents.end(), [](const Extent& a, const Extent& b) { return a.begin < b.begin; });
  for (std::size_t i = 1; i < extents.size(); ++i) {
    if (extents[i].begin < extents[i - 1].end) throw_overlap(*extents[i - 1].name, *extents[i].name);
  }
}

// The last bit of a kind: frozen. Their arrays have no gradients.
void FlatParameters::make_plan(const Limits& limits, bool with_masters) {
  std::vector<Item> items;
  for (const auto& parameter : parameters_) {
    const auto type = parameter.tensor.scalar_type();
    const bool trained = parameter.tensor.requires_grad();
    items.push_back({.elements = parameter.tensor.numel(),
                     .element_bytes = static_cast<std::int64_t>(parameter.tensor.element_size()),
                     .kind = static_cast<int>(type) * 2 + (trained ? 0 : 1)});
    masters_.push_back(with_masters && trained && at::isReducedFloatingType(type));
  }
  plan_ = plan_shards(items, communicator_.size(), limits);
}

// Each rank brings what it owns, so that shared memory is written once. @collective
void FlatParameters::move_in() {
  for (const auto& flat : plan_.flats) {
    const auto type = parameters_[flat.items.front()].tensor.scalar_type();
    arrays_.push_back(communicator_.allocate_common(flat.elements, type));
  }
  slices_.resize(parameters_.size());
  keepers_.resize(parameters_.size());
  versions_.resize(parameters_.size());
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    write_slice(i);
    make_slice(i);
  }
  // From here on the arrays are whole on every rank.
  publish_all();
  put_in_arrays();
}

// What this rank owns of a parameter that lies elsewhere.
void FlatParameters::write_slice(std::size_t parameter) {
  const auto mine = owned(parameter);
  const auto values = parameters_[parameter].tensor.detach().reshape({-1});
  published_slice(parameter).copy_(values.narrow(0, mine.begin, mine.size()));
}

void FlatParameters::put_in_arrays() {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    auto& tensor = parameters_[i].tensor;
    const auto& place = plan_.places[i];
    tensor.set_data(stretch_of(arrays_[place.flat], place.offset, tensor.sizes()));
  }
  note_versions(all_flats());
}

void FlatParameters::make_slice(std::size_t parameter) {
  slices_[parameter] = masters_[parameter] ? published_slice(parameter).to(at::kFloat, false, /*copy=*/true)
                                           : published_slice(parameter);
}

at::Tensor FlatParameters::in_array(std::size_t parameter, Range elements) const {
  const auto& place = plan_.places[parameter];
  return stretch_of(arrays_[place.flat], place.offset + elements.begin, {elements.size()});
}

// A sum of nothing, which none has before all have come. Where the device is a GPU its stream waits, not this thread.
void FlatParameters::arrive() {
  if (lent_) {
    throw UsageError({.what = "an optimizer's step came while the model's full parameters were summoned",
                      .why = "it would step others than these",
                      .hint = "let what summon_full_parameters() has returned go first"});
  }
  if (parameters_.empty()) return;
  communicator_
      .all_reduce(at::zeros({1}, parameters_.front().tensor.options().dtype(at::kFloat).requires_grad(false)),
                  comm::ReduceOp::sum)
      .wait();
}

void FlatParameters::publish(const std::vector<std::size_t>& flats) {
  const at::NoGradGuard no_grad;
  std::vector<comm::Work> works;
  for (const auto flat : flats) {
    for (const auto item : plan_.flats[flat].items) {
      if (masters_[item]) published_slice(item).copy_(slices_[item]);
    }
    const auto part = plan_.part(flat, communicator_.rank());
    works.push_back(communicator_.all_gather(arrays_[flat], arrays_[flat].narrow(0, part.begin, part.size())));
  }
  for (auto& work : works) work.wait();
  // A graph that has kept these for its backward pass must not take the new for the old.
  for (const auto flat : flats) {
    for (const auto item : plan_.flats[flat].items) torch::autograd::impl::bump_version(parameters_[item].tensor);
  }
  note_versions(flats);
}

void FlatParameters::publish_all() { publish(all_flats()); }

void FlatParameters::take_published(std::size_t parameter) {
  const at::NoGradGuard no_grad;
  if (masters_[parameter]) slices_[parameter].copy_(published_slice(parameter));
}

void FlatParameters::lend() {
  const at::NoGradGuard no_grad;
  if (lent_) throw UsageError({.what = "the model's full parameters are summoned already"});
  check_untouched();
  for (auto& [name, tensor] : parameters_) tensor.set_data(tensor.detach().clone());
  lent_ = true;
}

void FlatParameters::take_back(bool keep_changes) {
  const at::NoGradGuard no_grad;
  lent_ = false;
  arrive();
  for (std::size_t i = 0; keep_changes && i < parameters_.size(); ++i) {
    write_slice(i);
    take_published(i);
  }
  put_in_arrays();
  if (keep_changes) publish_all();
}

void FlatParameters::note_versions(const std::vector<std::size_t>& flats) {
  for (const auto flat : flats) {
    for (const auto item : plan_.flats[flat].items) versions_[item] = version_of(parameters_[item].tensor);
  }
}

void FlatParameters::check_untouched() const {
  if (lent_) return;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const auto& [name, tensor] = parameters_[i];
    const auto& place = plan_.places[i];
    const auto& array = arrays_[place.flat];
    const bool is_there = tensor.storage().unsafeGetStorageImpl() == array.storage().unsafeGetStorageImpl() &&
                          tensor.storage_offset() == array.storage_offset() + place.offset;
    if (!is_there) {
      throw UsageError({.what = text::concat("the parameter ", name, " was given other memory after prepare()"),
                        .why = "its optimizer steps the memory that it had then",
                        .hint = "move or convert the module before prepare()"});
    }
    if (version_of(tensor) != versions_[i]) {
      throw UsageError({.what = text::concat("the parameter ", name, " was written past its optimizer"),
                        .why = "under ZeRO the ranks of a node hold one copy of it, and each of them has written to it",
                        .hint = "write within accelerator.summon_full_parameters(model), where each rank has its own"});
    }
  }
}

void FlatParameters::release() {
  const at::NoGradGuard no_grad;
  for (auto& [name, tensor] : parameters_) {
    if (tensor.use_count() > 1) tensor.set_data(tensor.detach().clone());
  }
  parameters_.clear();
  numbers_.clear();
  slices_.clear();
  arrays_.clear();
}

std::vector<std::size_t> FlatParameters::all_flats() const {
  std::vector<std::size_t> flats(plan_.flats.size());
  std::iota(flats.begin(), flats.end(), std::size_t{0});
  return flats;
}

}  // namespace hortator::shard
