// How parameters move into the arrays, and get memory of their own again.
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <exception>
#include <optional>
#include <span>

#include "core/text/text.hpp"
#include "interception/claimed_operators.hpp"
#include "interception/claims.hpp"
#include "paging/stores/scratch.hpp"
#include "parallel/tensor/divided_tensor.hpp"
#include "parallel/zero/flat_parameters.hpp"

namespace hortator::parallel {
namespace {

/// Makes a tensor whose construction is deferred (DeferredConstruction).
void make_values(const at::Tensor& tensor, const RankCoordination& ranks) {
  ranks.settle(tensor);
  if (const auto former = interception::claim_of(tensor))
    former.provider->hand_over(former.number, interception::Content::keep);
}

/// Frees its memory. It must get other memory before it is used again.
void drop_memory(const at::Tensor& parameter) { replace_data(parameter, at::empty({0}, parameter.options())); }

}  // namespace

void FlatParameters::make_arrays(const ParameterPlacement& placement, const RankCoordination& ranks) {
  std::vector<std::size_t> paged;
  std::vector<std::size_t> shared;
  for (const auto flat : all_flats()) (kind_of(flat).paged ? paged : shared).push_back(flat);
  arrays_.resize(plan_.flats.size());
  parts_.resize(plan_.flats.size());
  make_shared_arrays(shared, ranks);
  if (!paged.empty()) make_paged_arrays(paged, placement, ranks);
  note_versions(all_flats());
}

/// The parameters of these arrays, in the module's order.
std::vector<std::size_t> FlatParameters::items_of(const std::vector<std::size_t>& flats) const {
  std::vector<std::size_t> items;
  for (const auto flat : flats)
    items.insert(items.end(), plan_.flats[flat].items.begin(), plan_.flats[flat].items.end());
  std::sort(items.begin(), items.end());
  return items;
}

// Each rank writes what it owns, so that shared memory is written once. @collective
void FlatParameters::make_shared_arrays(const std::vector<std::size_t>& flats, const RankCoordination& ranks) {
  for (const auto flat : flats)
    arrays_[flat] = communicator_.allocate_common(plan_.flats[flat].elements, type_of(flat));
  for (const auto item : items_of(flats)) {
    make_values(parameters_[item].tensor, ranks);
    write_owned(item);
    drop_memory(parameters_[item].tensor);
  }
  // From here on the arrays are whole on every rank.
  for (const auto flat : flats) gather(flat).wait();
  for (const auto flat : flats) put_in_array(flat);
}

// Filled in the module's order: arrays are laid out from the last parameter to the first.
void FlatParameters::make_paged_arrays(std::vector<std::size_t> flats, const ParameterPlacement& placement,
                                       const RankCoordination& ranks) {
  std::reverse(flats.begin(), flats.end());
  if (placement.parameters.is_offloaded())
    make_offloaded_arrays(specs_of(flats, placement.sharded ? 1 : plan_.ranks), placement, ranks);
  if (placement.sharded) shard(flats, placement, ranks);
  home_ = placement.sharded ? ArrayHome::parts : ArrayHome::common_file;
  fill_paged_arrays(flats, ranks);
}

/// Arrays of `parts` ranks' parts.
std::vector<ArraySpec> FlatParameters::specs_of(const std::vector<std::size_t>& flats, int parts) const {
  std::vector<ArraySpec> specs;
  for (const auto flat : flats) {
    const auto part = std::max<std::int64_t>(plan_.part_elements(flat), 1);
    const bool has_values = plan_.part_elements(flat) > 0;
    specs.push_back({.name = names_in(flat),
                     .elements = part * parts,
                     .type = type_of(flat),
                     .is_int8 = kind_of(flat).int8 && has_values});
  }
  return specs;
}

// A file of this rank's own if sharded, otherwise a file that the ranks of the node share. @collective
void FlatParameters::make_offloaded_arrays(const std::vector<ArraySpec>& specs, const ParameterPlacement& placement,
                                           const RankCoordination& ranks) {
  const auto& arrays = placement.parameters;
  std::optional<paging::CommonScratch> common;
  if (!placement.sharded && communicator_.size() > 1)
    common = paging::make_common_scratch(communicator_, arrays.folder, DiskArrays::room_for(specs), ranks.all_or_none);
  ranks.all_or_none([&] { on_disk_ = std::make_unique<DiskArrays>(specs, arrays, std::move(common)); });
}

// @collective
void FlatParameters::shard(const std::vector<std::size_t>& flats, const ParameterPlacement& placement,
                           const RankCoordination& ranks) {
  const auto specs = specs_of(flats, plan_.ranks);
  std::vector<at::Tensor> parts;
  ranks.all_or_none([&] {
    for (std::size_t i = 0; i < flats.size(); ++i) {
      const auto options = at::TensorOptions(placement.parameters.device).dtype(specs[i].type);
      parts.push_back(on_disk_ ? on_disk_->array(i) : at::zeros({specs[i].elements / plan_.ranks}, options));
    }
  });
  for (std::size_t i = 0; i < flats.size(); ++i) parts_[flats[i]] = parts[i];
  peers_ = std::make_unique<PeerArrays>(communicator_, specs, std::move(parts),
                                        PeerArrays::Options{.resident_bytes = placement.parameters.resident_bytes,
                                                            .first_rank = placement.first_rank,
                                                            .rank_stride = placement.rank_stride,
                                                            .host = placement.host,
                                                            .casts = placement.casts,
                                                            .gathers_ahead = placement.gathers_ahead});
}

// The parameters are the same on all ranks, or become so. Where a disk may fail, each parameter keeps its memory until
// all ranks have written what they own of its array.
void FlatParameters::fill_paged_arrays(const std::vector<std::size_t>& flats, const RankCoordination& ranks) {
  const bool in_parts = home_ == ArrayHome::parts;
  const auto values = [&](std::size_t i, const at::Tensor& memory) {
    fill_owned(flats[i], memory, in_parts ? plan_.part(flats[i], communicator_.rank()).begin : 0, ranks);
  };
  std::size_t kept = 0;
  const auto leave = [&](std::size_t i) {
    for (const auto item : plan_.flats[flats[i]].items) drop_memory(parameters_[item].tensor);
    ++kept;
  };
  std::exception_ptr problem;
  try {
    if (on_disk_) on_disk_->fill(values, leave, ranks.all_or_none);
    for (std::size_t i = 0; !on_disk_ && i < flats.size(); ++i) {
      values(i, parts_[flats[i]]);
      leave(i);
    }
  } catch (...) {
    problem = std::current_exception();
  }
  for (std::size_t i = 0; i < kept; ++i) {
    arrays_[flats[i]] = in_parts ? peers_->array(i) : on_disk_->array(i);
    put_in_array(flats[i]);
  }
  if (!problem) return;
  release(on_disk_ ? ReleaseMode::collective : ReleaseMode::local);  // after a failure of a disk all ranks are here
  std::rethrow_exception(problem);
}

// Copies what this rank owns of an array from parameters that are not in it. `memory` is the array's from element
// `begin` on.
void FlatParameters::fill_owned(std::size_t flat, const at::Tensor& memory, std::int64_t begin,
                                const RankCoordination& ranks) {
  memory.zero_();
  for (const auto item : items_of({flat})) {
    const auto& tensor = parameters_[item].tensor;
    make_values(tensor, ranks);
    const auto mine = owned(item);
    const auto values = tensor.detach().reshape({-1}).narrow(0, mine.begin, mine.size());
    if (mine.size() > 0) memory.narrow(0, plan_.positions[item].offset + mine.begin - begin, mine.size()).copy_(values);
    if (!on_disk_) drop_memory(parameters_[item].tensor);
  }
}

/// "first.weight, first.bias"
std::string FlatParameters::names_in(std::size_t flat) const {
  constexpr std::size_t max_names = 3;
  std::vector<std::string> names;
  for (const auto item : items_of({flat})) names.push_back(parameters_[item].name);
  const auto more = names.size() > max_names ? names.size() - max_names : 0;
  names.resize(names.size() - more);
  return text::concat(text::join(names), more > 0 ? text::concat(" and ", more, " more") : "");
}

// Copies what this rank owns of a parameter that is not in its array.
void FlatParameters::write_owned(std::size_t parameter) {
  const auto mine = owned(parameter);
  const auto values = parameters_[parameter].tensor.detach().reshape({-1});
  published_slice(parameter).copy_(values.narrow(0, mine.begin, mine.size()));
}

void FlatParameters::put_in_array(std::size_t flat) {
  for (const auto item : plan_.flats[flat].items) {
    replace_data(parameters_[item].tensor, range_of(arrays_[flat], plan_.positions[item].offset, shapes_[item]));
  }
}

void FlatParameters::make_slices(const ArrayPlacement& masters, const RankCoordination& ranks) {
  const bool any_master = std::find(masters_.begin(), masters_.end(), true) != masters_.end();
  if (any_master && masters.is_offloaded()) ranks.all_or_none([&] { make_masters_on_disk(masters); });
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (slices_[i].defined()) continue;
    slices_[i] = masters_[i] ? published_slice(i).to(at::kFloat, false, /*copy=*/true) : published_slice(i);
  }
}

void FlatParameters::make_masters_on_disk(const ArrayPlacement& placement) {
  std::vector<DiskArrays::Spec> specs;
  std::vector<std::size_t> items;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (!masters_[i] || owned(i).size() == 0) continue;
    specs.push_back({.name = parameters_[i].name, .elements = owned(i).size(), .type = at::kFloat});
    items.push_back(i);
  }
  if (specs.empty()) return;
  masters_on_disk_ = std::make_unique<DiskArrays>(specs, placement);
  masters_on_disk_->fill([&](std::size_t i, const at::Tensor& array) { array.copy_(published_slice(items[i])); });
  for (std::size_t i = 0; i < items.size(); ++i) slices_[items[i]] = masters_on_disk_->range(i, 0, {specs[i].elements});
}

// Keeps a sharded array present, as its parts are; null for others. @collective for sharded arrays
std::unique_ptr<interception::Hold> FlatParameters::hold_exact(std::size_t flat) const {
  if (!parts_[flat].defined()) return nullptr;
  return std::make_unique<interception::Hold>(std::span(&arrays_[flat], 1), interception::Access::read_exact);
}

bool FlatParameters::is_in_use_elsewhere(std::size_t parameter) const {
  return parameters_[parameter].tensor.use_count() > 1 && is_in_array(parameter);
}

// Back to the device that it came from: the present one may have no room for all that was paged for it. @collective
// for sharded arrays
void FlatParameters::give_own_memory(std::size_t flat) {
  const auto present = hold_exact(flat);
  for (const auto item : plan_.flats[flat].items) {
    auto& tensor = parameters_[item].tensor;
    if (is_in_use_elsewhere(item))
      replace_data(tensor, tensor.detach().to(came_from_, /*non_blocking=*/false, /*copy=*/true));
  }
}

// Sharded arrays are released on all ranks if one of them still uses them, provided that all ranks are here.
// @collective then
std::vector<std::size_t> FlatParameters::flats_to_release(ReleaseMode mode) {
  auto flats = all_flats();
  std::erase_if(flats, [&](std::size_t flat) { return !arrays_[flat].defined(); });
  if (home_ != ArrayHome::parts) return flats;
  auto in_use = at::zeros({static_cast<std::int64_t>(plan_.flats.size())}, at::kInt);
  for (const auto flat : flats) {
    const auto& items = plan_.flats[flat].items;
    const bool any = std::any_of(items.begin(), items.end(), [&](auto item) { return is_in_use_elsewhere(item); });
    in_use[static_cast<std::int64_t>(flat)] = any ? 1 : 0;
  }
  const bool all_are_here = mode == ReleaseMode::collective && std::uncaught_exceptions() == 0;
  if (all_are_here) {
    const auto in_use_anywhere = in_use.to(peers_->array(0).device());
    communicator_.all_reduce(in_use_anywhere, comm::ReduceOp::max).wait();
    in_use = in_use_anywhere.to(at::kCPU);
  }
  std::erase_if(flats, [&](std::size_t flat) {
    return parts_[flat].defined() && !(all_are_here && in_use[static_cast<std::int64_t>(flat)].item<int>() > 0);
  });
  return flats;
}

void FlatParameters::release(ReleaseMode mode) {
  const at::NoGradGuard no_grad;
  const PartsOnly each_rank_has;
  if (!parameters_.empty()) {
    for (const auto flat : flats_to_release(mode)) give_own_memory(flat);
  }
  parameters_.clear();
  numbers_.clear();
  slices_.clear();
  guards_.clear();
  arrays_.clear();
  parts_.clear();
  home_ = ArrayHome::memory;
  masters_on_disk_.reset();
  peers_.reset();
  on_disk_.reset();
}

}  // namespace hortator::parallel
