#include "parallel/zero/flat_parameters.hpp"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <exception>
#include <hortator/error.hpp>
#include <numeric>
#include <set>
#include <utility>

#include "core/text/text.hpp"
#include "interception/claims.hpp"
#include "interception/storage_memory.hpp"
#include "machine/memory/freed_memory.hpp"
#include "machine/memory/recycling_allocator.hpp"
#include "mpi/agree.hpp"
#include "parallel/tensor/divided_tensor.hpp"
#include "parallel/zero/int8_blocks.hpp"
#include "parallel/zero/parameter_names.hpp"

namespace hortator::parallel {
namespace {

std::int64_t version_of(const at::Tensor& tensor) { return static_cast<std::int64_t>(tensor._version()); }

[[noreturn]] void throw_overlap(const std::string& a, const std::string& b) {
  throw UsageError({.what = text::concat("The parameters ", text::quote(a), " and ", text::quote(b),
                                         " share memory but are different tensors"),
                    .why = "ZeRO gives each parameter memory of its own, so that they would drift apart",
                    .hint = "register the same tensor under both names, or use stage 0, where they keep their memory"});
}

[[noreturn]] void throw_offloaded(const std::string& name) {
  throw UsageError({.what = text::concat("The parameter ", text::quote(name), " is offloaded and cannot be sharded"),
                    .why = "disk_offload() or cpu_offload() manages its memory",
                    .hint = "set zero.offload_parameters instead of calling them"});
}

[[noreturn]] void throw_no_int8(const std::string& name, at::ScalarType type) {
  throw UsageError({.what = text::concat("The parameter ", text::quote(name), " cannot be gathered in int8: it is ",
                                         c10::toString(type)),
                    .why = "zero.int8_gathers rounds matrices of fp32, bf16 and fp16",
                    .hint = "name it in zero.keep_resident, or gather without zero.int8_gathers"});
}

// Blocks then lie within one parameter and one rank's part.
static_assert(ShardLimits().grain % int8_block_values == 0);

/// Zeros of the tensor's sizes that share one element, as a tensor that is not a view: LibTorch detaches
/// gradients in place.
at::Tensor zeros_in_one_element(const at::Tensor& like) {
  const auto options = like.options().requires_grad(false);
  const auto element = at::zeros({1}, options);
  auto zeros = at::empty({0}, options);
  zeros.set_(element.storage(), 0, like.sizes(), std::vector<std::int64_t>(static_cast<std::size_t>(like.dim()), 0));
  return zeros;
}

}  // namespace

FlatParameters::FlatParameters(comm::Communicator& communicator, std::vector<Parameter> parameters,
                               const ShardLimits& limits, Masters masters, const ParameterPlacement& placement,
                               const RankCoordination& ranks)
    : communicator_(communicator), parameters_(std::move(parameters)) {
  const at::NoGradGuard no_grad;
  const PartsOnly each_rank_has;
  for (std::size_t i = 0; i < parameters_.size(); ++i) numbers_.emplace(parameters_[i].tensor.unsafeGetTensorImpl(), i);
  check_movable();
  if (!parameters_.empty()) came_from_ = parameters_.front().tensor.device();
  make_plan(limits, masters == Masters::fp32, placement);
  slices_.resize(parameters_.size());
  keepers_.resize(parameters_.size());
  versions_.resize(parameters_.size());
  slice_versions_.resize(parameters_.size());
  for (const auto& one : parameters_) shapes_.push_back(one.tensor.sizes().vec());
  const machine::RecyclingAllocator blocks(0);  // temporary memory leaves no holes
  try {
    make_arrays(placement, ranks);
    make_slices(placement.masters, ranks);
    note_versions(all_flats());
  } catch (...) {  // a full disk, or out of memory: the other ranks may not get here
    release(ReleaseMode::local);
    throw;
  }
  machine::return_freed_memory();  // the parameters' former memory
}

std::optional<std::size_t> FlatParameters::find(const at::Tensor& parameter) const {
  const auto found = numbers_.find(parameter.unsafeGetTensorImpl());
  return found == numbers_.end() ? std::nullopt : std::optional(found->second);
}

void FlatParameters::check_movable() const {
  struct MemoryRange {
    const char* begin;
    const char* end;
    const std::string* name;
  };
  std::vector<MemoryRange> ranges;
  for (const auto& [name, tensor] : parameters_) {
    if (tensor.layout() != at::kStrided || tensor.device() != parameters_.front().tensor.device()) {
      throw UsageError({.what = text::concat("The parameter ", text::quote(name), " cannot be sharded: it is ",
                                             tensor.layout(), " on ", tensor.device()),
                        .why = "a model's parameters are sharded together, as dense tensors on one device",
                        .hint = "use ZeRO stage 0 for this model"});
    }
    if (dynamic_cast<paging::Pager*>(interception::claim_of(tensor).provider) != nullptr) throw_offloaded(name);
    const auto* memory = interception::memory_of(tensor.storage());
    if (memory == nullptr || tensor.numel() == 0 || !tensor.is_non_overlapping_and_dense()) continue;
    const auto* begin = reinterpret_cast<const char*>(memory) +
                        tensor.storage_offset() * static_cast<std::int64_t>(tensor.element_size());
    ranges.push_back({begin, begin + tensor.nbytes(), &name});
  }
  std::sort(ranges.begin(), ranges.end(), [](const MemoryRange& a, const MemoryRange& b) { return a.begin < b.begin; });
  for (std::size_t i = 1; i < ranges.size(); ++i) {
    if (ranges[i].begin < ranges[i - 1].end) throw_overlap(*ranges[i - 1].name, *ranges[i].name);
  }
}

// Vectors (of norms, and biases) are small, and some operators read them whole: they get arrays of their own.
ArrayKind FlatParameters::kind_for(const Parameter& parameter, const ParameterPlacement& placement) {
  const auto& tensor = parameter.tensor;
  ArrayKind kind{.type = tensor.scalar_type(), .frozen = !tensor.requires_grad()};
  kind.paged = placement.pages_parameters() && !is_among(placement.keep_resident, parameter.name);
  if (!kind.paged || !placement.sharded || tensor.dim() < 2) return kind;
  if (placement.int8 && !packs_int8(kind.type)) throw_no_int8(parameter.name, kind.type);
  kind.int8 = placement.int8;
  kind.cast = !placement.int8 && placement.casts && kind.type == at::kFloat;
  return kind;
}

void FlatParameters::make_plan(const ShardLimits& limits, bool with_masters, const ParameterPlacement& placement) {
  std::vector<ShardItem> items;
  for (const auto& parameter : parameters_) {
    const auto kind = kind_for(parameter, placement);
    items.push_back({.elements = parameter.tensor.numel(),
                     .element_bytes = static_cast<std::int64_t>(parameter.tensor.element_size()),
                     .kind = kind});
    masters_.push_back(with_masters && !kind.frozen && at::isReducedFloatingType(kind.type));
  }
  plan_ = plan_shards(items, communicator_.size(), limits);
}

at::ScalarType FlatParameters::type_of(std::size_t flat) const {
  return parameters_[plan_.flats[flat].items.front()].tensor.scalar_type();
}

at::Tensor FlatParameters::published_slice(std::size_t parameter) const {
  const auto& place = plan_.positions[parameter];
  const auto mine = owned(parameter);
  const auto& part = parts_[place.flat];
  if (!part.defined()) return in_array(parameter, mine);
  const auto begin = place.offset + mine.begin - plan_.part(place.flat, communicator_.rank()).begin;
  return range_of(part, mine.size() > 0 ? begin : 0, {mine.size()});
}

// Broadcasts each rank's slice in turn.
at::Tensor FlatParameters::join(std::size_t parameter, const at::Tensor& mine) const {
  const PartsOnly each_rank_has;
  auto whole = at::empty({plan_.positions[parameter].elements}, mine.options().requires_grad(false));
  for (int rank = 0; rank < communicator_.size(); ++rank) {
    const auto owned = plan_.owned(parameter, rank);
    if (owned.size() == 0) continue;
    const auto slice = whole.narrow(0, owned.begin, owned.size());
    if (rank == communicator_.rank()) slice.copy_(mine);
    communicator_.broadcast(slice, rank).wait();
  }
  return whole.view(shapes_[parameter]);
}

at::Tensor FlatParameters::in_array(std::size_t parameter, core::Range elements) const {
  const auto& place = plan_.positions[parameter];
  return range_of(arrays_[place.flat], place.offset + elements.begin, {elements.size()});
}

// A barrier by all-reduce of one number: no rank gets the result before all have entered. On a GPU its stream waits,
// not this thread.
bool FlatParameters::arrive(std::optional<bool> flag) {
  if (lent_) {
    throw UsageError({.what = "An optimizer step was called while the model's full parameters are summoned",
                      .why = "it would step the shards, not the summoned parameters",
                      .hint = "destroy what summon_full_parameters() returned first"});
  }
  if (parameters_.empty()) return flag.value_or(false);
  const auto options = parameters_.front().tensor.options().dtype(at::kFloat).requires_grad(false);
  const auto raised = at::full({1}, flag.value_or(false) ? 1 : 0, options);
  communicator_.all_reduce(raised, comm::ReduceOp::sum).wait();
  return flag && raised.item<float>() > 0;
}

// Gathers the parts of all ranks into each rank's array. @collective
comm::Work FlatParameters::gather(std::size_t flat) {
  const auto part = plan_.part(flat, communicator_.rank());
  const auto& array = arrays_[flat];
  if (kind_of(flat).paged) return {};  // fetched when it is used
  return communicator_.all_gather(array, array.narrow(0, part.begin, part.size()));
}

// Makes what ranks have written to their parts of the common file visible to all. @collective
void FlatParameters::exchange_by_file() {
  if (communicator_.size() == 1) return;
  std::exception_ptr problem;
  try {
    on_disk_->publish_changed();
  } catch (...) {
    problem = std::current_exception();
  }
  const auto failed = at::full({1}, problem ? communicator_.rank() : communicator_.size(), at::kInt);
  communicator_.all_reduce(failed, comm::ReduceOp::min).wait();
  if (problem) std::rethrow_exception(problem);
  const int culprit = failed.item<int>();
  if (culprit < communicator_.size()) {
    throw Error({.what = text::concat("Rank ", culprit, " of the group cannot write a model's parameters to its disk"),
                 .why = "the ranks would continue with different parameters",
                 .hint = "see that rank's own error; zero.offload_parameters may name another folder"});
  }
  on_disk_->forget();
}

void FlatParameters::publish(const std::vector<std::size_t>& flats) {
  const at::NoGradGuard no_grad;
  const PartsOnly each_rank_has;
  std::vector<comm::Work> works;
  for (const auto flat : flats) {
    write_masters(flat);
    works.push_back(gather(flat));
  }
  for (auto& work : works) work.wait();
  switch (home_) {
    case ArrayHome::memory:
      break;
    case ArrayHome::common_file:
      exchange_by_file();
      break;
    case ArrayHome::parts:
      peers_->parts_changed();
      break;
  }
  bump_versions(flats);
}

void FlatParameters::write_masters(std::size_t flat) {
  for (const auto item : plan_.flats[flat].items) {
    if (masters_[item]) published_slice(item).copy_(slices_[item]);
  }
}

// A graph that saved these for its backward pass must not use the new values as the old ones.
void FlatParameters::bump_versions(const std::vector<std::size_t>& flats) {
  for (const auto flat : flats) {
    for (const auto item : plan_.flats[flat].items) torch::autograd::impl::bump_version(parameters_[item].tensor);
  }
  note_versions(flats);
}

void FlatParameters::publish_all() {
  publish(all_flats());
  is_stale_ = false;
}

void FlatParameters::publish_alone(bool in_common_memory) {
  const at::NoGradGuard no_grad;
  const PartsOnly each_rank_has;
  for (const auto flat : all_flats()) write_masters(flat);
  if (peers_) peers_->parts_changed();
  bump_versions(all_flats());
  const auto is_paged = [this](std::size_t flat) { return parts_[flat].defined(); };
  const bool all_are_fetched = home_ == ArrayHome::parts && std::ranges::all_of(all_flats(), is_paged);
  is_stale_ = communicator_.size() > 1 && !all_are_fetched && !(home_ == ArrayHome::memory && in_common_memory);
}

void FlatParameters::take_published(std::size_t parameter) {
  const at::NoGradGuard no_grad;
  const PartsOnly each_rank_has;
  if (masters_[parameter]) slices_[parameter].copy_(published_slice(parameter));
}

void FlatParameters::check_can_lend() const {
  if (lent_) throw UsageError({.what = "The model's full parameters are already summoned"});
  check_untouched();
}

void FlatParameters::lend(const Choice& choice) {
  const at::NoGradGuard no_grad;
  const PartsOnly each_rank_has;
  check_can_lend();
  lent_ = true;  // take_back() then restores what has left the arrays, if this throws
  // A rank that has no memory for its copies takes part in the gathers that are left.
  std::exception_ptr problem;
  for (const auto flat : all_flats()) {
    const auto chosen = chosen_in(flat, choice);
    if (chosen.empty()) continue;
    lent_items_.insert(lent_items_.end(), chosen.begin(), chosen.end());
    const auto present = hold_exact(flat);
    try {
      if (!problem) copy_out(chosen);
    } catch (...) {
      problem = std::current_exception();
    }
  }
  if (problem) std::rethrow_exception(problem);
}

std::vector<std::size_t> FlatParameters::chosen_in(std::size_t flat, const Choice& choice) const {
  std::vector<std::size_t> chosen;
  for (const auto item : plan_.flats[flat].items) {
    if (!choice || choice(parameters_[item].tensor)) chosen.push_back(item);
  }
  return chosen;
}

void FlatParameters::copy_out(const std::vector<std::size_t>& items) {
  for (const auto item : items) {
    auto& tensor = parameters_[item].tensor;
    replace_data(tensor, tensor.detach().clone());
  }
}

void FlatParameters::lend_together(const mpi::Communicator& host, const Choice& choice) {
  mpi::all_or_none(host, [&] { check_can_lend(); });
  try {
    mpi::all_or_none(host, [&] { lend(choice); });
  } catch (...) {
    take_back(/*keep_changes=*/false);
    throw;
  }
}

std::vector<std::size_t> FlatParameters::lent_flats() const {
  std::set<std::size_t> flats;
  for (const auto item : lent_items_) flats.insert(plan_.positions[item].flat);
  return {flats.begin(), flats.end()};
}

void FlatParameters::take_back(bool keep_changes, comm::Communicator* replicas) {
  const at::NoGradGuard no_grad;
  const PartsOnly each_rank_has;
  const auto flats = lent_flats();
  const auto items = std::exchange(lent_items_, {});
  lent_ = false;
  if (keep_changes) arrive();
  for (const auto item : keep_changes ? items : std::vector<std::size_t>()) {
    write_owned(item);
    if (replicas != nullptr) take_from_first(item, *replicas);
    take_published(item);
  }
  for (const auto flat : flats) put_in_array(flat);
  note_versions(flats);
  if (keep_changes) publish_all();
}

// By way of memory of its own: the slice may be paged. @collective over `replicas`
void FlatParameters::take_from_first(std::size_t parameter, comm::Communicator& replicas) {
  if (owned(parameter).size() == 0) return;
  const auto values = published_slice(parameter).clone();
  replicas.broadcast(values, 0).wait();
  published_slice(parameter).copy_(values);
}

void FlatParameters::note_versions(const std::vector<std::size_t>& flats) {
  for (const auto flat : flats) {
    for (const auto item : plan_.flats[flat].items) {
      versions_[item] = version_of(parameters_[item].tensor);
      if (slices_[item].defined()) slice_versions_[item] = version_of(slices_[item]);
    }
  }
}

void FlatParameters::guard_slices() {
  if (guards_.empty()) {
    for (const auto& slice : slices_) guards_.push_back(zeros_in_one_element(slice));
  }
  for (std::size_t i = 0; i < slices_.size(); ++i) {
    if (keepers_[i] > 0 && !slices_[i].grad().defined()) slices_[i].mutable_grad() = guards_[i];
  }
}

bool FlatParameters::is_in_array(std::size_t parameter) const {
  const auto& tensor = parameters_[parameter].tensor;
  const auto& place = plan_.positions[parameter];
  const auto& array = arrays_[place.flat];
  return array.defined() && tensor.has_storage() &&
         tensor.storage().unsafeGetStorageImpl() == array.storage().unsafeGetStorageImpl() &&
         tensor.storage_offset() == array.storage_offset() + place.offset;
}

void FlatParameters::check_untouched() const {
  if (lent_) return;
  if (is_stale_) {
    throw UsageError({.what = "An exception has ended Ema::use(), and the model still has averaged weights",
                      .why = "the trained ones are on all ranks, which could not exchange them at that time",
                      .hint = "let a scope of Ema::use() end on all ranks without an exception, or load a checkpoint"});
  }
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const auto& [name, tensor] = parameters_[i];
    if (!is_in_array(i)) {
      throw UsageError(
          {.what = text::concat("The parameter ", text::quote(name), " was given other memory after prepare()"),
           .why = "its optimizer steps the memory that it had before",
           .hint = "move or convert the module before prepare()"});
    }
    if (version_of(tensor) != versions_[i]) {
      throw UsageError(
          {.what = text::concat("The parameter ", text::quote(name), " was written past its optimizer"),
           .why = "under ZeRO the ranks of a node hold one copy of it, and each of them has written to it",
           .hint = "write within accelerator.summon_full_parameters(model), where each rank has its own copy; give an "
                   "optimizer that steps it to prepare(), and call step() of what that returns"});
    }
    if (version_of(slices_[i]) != slice_versions_[i]) {
      throw UsageError(
          {.what = text::concat("The parameter ", text::quote(name), " was stepped past its optimizer's handle"),
           .why = "under ZeRO the optimizer has this rank's slices, and the other ranks get them from the handle only",
           .hint = "call step() and zero_grad() of what prepare() returned, not of your own optimizer"});
    }
  }
}

std::vector<std::size_t> FlatParameters::all_flats() const {
  std::vector<std::size_t> flats(plan_.flats.size());
  std::iota(flats.begin(), flats.end(), std::size_t{0});
  return flats;
}

}  // namespace hortator::parallel
