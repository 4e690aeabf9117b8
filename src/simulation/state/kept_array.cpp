#include "simulation/state/kept_array.hpp"

#include <hortator/error.hpp>
#include <numeric>

#include "checkpoint/format.hpp"
#include "checkpoint/read/reader.hpp"
#include "checkpoint/write/save.hpp"
#include "core/hash.hpp"
#include "core/text/text.hpp"
#include "mpi/collectives.hpp"
#include "simulation/calls/local_outcome.hpp"

namespace hortator::simulation {
namespace {

/// What must be equal on all ranks: nothing of an array that each rank has for itself.
std::string common_shape(const at::Tensor& tensor, hortator_distribution distribution) {
  if (distribution == HORTATOR_EACH) return "";
  const auto sizes = distribution == HORTATOR_ROWS ? tensor.sizes().slice(1) : tensor.sizes();
  return text::concat(tensor.scalar_type(), " [", text::join(sizes), "]");
}

void require_distribution(const std::string& name, const at::Tensor& tensor, hortator_distribution distribution) {
  if (distribution != HORTATOR_EACH && distribution != HORTATOR_SAME && distribution != HORTATOR_ROWS)
    throw UsageError({.what = text::concat("An unknown distribution: ", static_cast<int>(distribution))});
  if (distribution == HORTATOR_ROWS && tensor.dim() == 0) {
    throw UsageError({.what = text::concat("The kept array ", text::quote(name), " is a single number"),
                      .why = "it has no rows to distribute",
                      .hint = "keep it as HORTATOR_EACH or HORTATOR_SAME"});
  }
}

std::uint64_t hash_of(const formats::TensorSpec& spec) {
  return core::hash(text::concat(spec.type, " [", text::join(spec.shape), "]"));
}

formats::TensorSpec spec_of_shape(const at::Tensor& tensor, const std::vector<std::int64_t>& shape) {
  auto spec = formats::spec_of(tensor);
  spec.shape = shape;
  return spec;
}

}  // namespace

KeptArray::KeptArray(const mpi::Communicator& comm, std::string name, at::Tensor tensor,
                     hortator_distribution distribution)
    : name_(std::move(name)),
      tensor_(std::move(tensor)),
      distribution_(distribution),
      rank_(comm.rank()),
      world_(comm.size()) {
  all_succeed(comm, [&] { require_distribution(name_, tensor_, distribution_); });
  mpi::same_on_all(comm, text::concat(name_, ' ', static_cast<int>(distribution_)), "the kept array");
  mpi::same_on_all(comm, common_shape(tensor_, distribution_), text::concat("the shape of the kept array ", name_));
  if (distribution_ == HORTATOR_ROWS) rows_ = mpi::all_gather(comm, tensor_.size(0));
  if (distribution_ == HORTATOR_EACH) shapes_ = mpi::all_gather(comm, hash_of(formats::spec_of(tensor_)));
}

std::vector<std::int64_t> KeptArray::whole_shape() const {
  auto shape = tensor_.sizes().vec();
  if (distribution_ == HORTATOR_ROWS) shape[0] = std::accumulate(rows_.begin(), rows_.end(), std::int64_t{0});
  return shape;
}

void KeptArray::save(checkpoint::Snapshot& snapshot) const {
  if (distribution_ == HORTATOR_EACH) return snapshot.own.put(path() + "/each", tensor_.contiguous());
  if (distribution_ == HORTATOR_SAME) return snapshot.common.put(path(), tensor_.contiguous());
  checkpoint::ShardedTensor shards{.whole = spec_of_shape(tensor_, whole_shape()), .part = tensor_.reshape({-1})};
  std::int64_t row_elements = 1;
  for (const auto size : tensor_.sizes().slice(1)) row_elements *= size;
  std::int64_t begin = 0;
  for (const auto rows : rows_) {
    shards.of_ranks.push_back({begin, begin + rows * row_elements});
    begin += rows * row_elements;
  }
  snapshot.shards.emplace(path(), std::move(shards));
}

bool KeptArray::has_own_of_all(const checkpoint::Reader& reader) const {
  const auto& datasets = reader.manifest().datasets;
  for (int rank = 0; rank < world_; ++rank) {
    const auto saved = datasets.find(checkpoint::rank_folder(rank) + "/" + path() + "/each");
    if (saved == datasets.end() || hash_of(saved->second.spec) != shapes_[static_cast<std::size_t>(rank)]) return false;
  }
  return true;
}

// All ranks find the same.
std::vector<std::string> KeptArray::misfits(const checkpoint::Reader& reader) const {
  const auto wanted = spec_of_shape(tensor_, whole_shape());
  if (distribution_ == HORTATOR_EACH) {
    if (reader.world_size() != world_) {
      return {text::concat("the kept array '", name_, "' is each rank's own, and was saved by ",
                           text::count(reader.world_size(), "rank"), ", not ", world_)};
    }
    if (has_own_of_all(reader)) return {};
    return {text::concat("the kept array '", name_, "' is missing, or has another shape or type")};
  }
  const auto found = reader.tensors().find(path());
  if (found != reader.tensors().end() && found->second == wanted) return {};
  return {text::concat("the kept array '", name_, "' is missing, or has another shape or type: expected [",
                       text::join(wanted.shape), "]")};
}

void KeptArray::load(const checkpoint::Reader& reader) const {
  const at::NoGradGuard no_grad;
  const at::Tensor target = tensor_;
  if (distribution_ == HORTATOR_SAME) return reader.read_into(path(), target);
  if (distribution_ == HORTATOR_EACH) {
    target.copy_(reader.own(rank_, path()).get<at::Tensor>("each"));
    return;
  }
  if (target.numel() == 0) return;
  const auto row_elements = target.numel() / target.size(0);
  const auto first = std::accumulate(rows_.begin(), rows_.begin() + rank_, std::int64_t{0}) * row_elements;
  target.copy_(reader.read_part(path(), {first, first + target.numel()}).view(target.sizes()));
}

accelerator::CheckpointPart KeptArray::part() const {
  return {.save = [kept = *this](checkpoint::Snapshot& snapshot) { kept.save(snapshot); },
          .misfits = [kept = *this](const checkpoint::Reader& reader) { return kept.misfits(reader); },
          .load = [kept = *this](const checkpoint::Reader& reader) { kept.load(reader); }};
}

}  // namespace hortator::simulation
