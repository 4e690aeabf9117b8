#include "accelerator/state/divided_state.hpp"

#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "accelerator/channels/channels.hpp"
#include "accelerator/prepared/prepared.hpp"
#include "accelerator/training/training.hpp"
#include "machine/memory/recycling_allocator.hpp"
#include "mpi/agree.hpp"

namespace hortator::accelerator {
namespace {

using parallel::Axis;

/// The first ranks with different batches that hold all experts, and all ranks that share ZeRO's shards with one of
/// them.
int writers_of_experts(const parallel::MeshShape& mesh) { return std::max(mesh.experts(), mesh.size(Axis::shard)); }

/// Whether the rank is of the ranks that write what stage `stage` of a pipeline has: the first along all axes but those
/// along which parts lie.
bool writes(const parallel::MeshShape& mesh, int rank, int stage) {
  if (mesh.index(Axis::pipeline, rank) != stage) return false;
  const bool are_experts = mesh.experts() > 1;
  if (are_experts && mesh.data_index(rank) >= writers_of_experts(mesh)) return false;
  return std::ranges::all_of(parallel::all_axes, [&](Axis axis) {
    const bool lie_along = axis == Axis::pipeline || axis == Axis::tensor || axis == Axis::shard ||
                           (are_experts && axis == Axis::replicate);
    return lie_along || mesh.index(axis, rank) == 0;
  });
}

/// The elements that a rank writes of a tensor of `elements`. In the order of the ranks, which tensor ranks follow each
/// other in.
core::Range range_of(const parallel::MeshShape& mesh, int rank, int stage, std::int64_t elements) {
  if (!writes(mesh, rank, stage)) return {};
  const bool are_experts = mesh.experts() > 1;
  const std::int64_t together = mesh.size(Axis::tensor);
  const std::int64_t ranks = are_experts ? writers_of_experts(mesh) : mesh.size(Axis::shard) * together;
  const std::int64_t index =
      are_experts ? mesh.data_index(rank) : mesh.index(Axis::shard, rank) * together + mesh.index(Axis::tensor, rank);
  return {.begin = elements * index / ranks, .end = elements * (index + 1) / ranks};
}

}  // namespace

parallel::Sizes DivisionInModel::whole_sizes() const {
  return parallel::whole_sizes(divided->part, divided->division, module->ranks().size());
}

DivisionInModel find_division(const Training& training, const at::Tensor& parameter) {
  for (const auto& model : training.prepared.models()) {
    if (model->divided() == nullptr) continue;
    if (const auto* found = model->divided()->find(parameter)) return {.module = model->divided(), .divided = found};
  }
  return {};
}

// Names of parameters begin with the number of their model.
DivisionInModel find_division(const Training& training, const std::string& path) {
  const std::string folder = "state/";
  const auto end = path.rfind('/');
  if (!path.starts_with(folder) || end < folder.size()) return {};
  const auto name = path.substr(folder.size(), end - folder.size());
  const auto slash = name.find('/');
  std::size_t number = 0;
  const auto& models = training.prepared.models();
  if (slash == std::string::npos ||
      std::from_chars(name.data(), name.data() + slash, number).ptr != name.data() + slash || number >= models.size())
    return {};
  const auto parameters = models[number]->module().named_parameters();
  const auto* parameter = parameters.find(name.substr(slash + 1));
  return parameter != nullptr ? find_division(training, *parameter) : DivisionInModel();
}

std::shared_ptr<step::ModelCore> find_model(const Training& training, const torch::nn::Module& module) {
  for (const auto& model : training.prepared.models()) {
    if (model->wraps(module)) return model;
  }
  return nullptr;
}

formats::TensorSpec whole_spec(const Training& training, const at::Tensor& tensor) {
  auto spec = formats::spec_of(tensor);
  if (const auto division = find_division(training, tensor)) spec.shape = division.whole_sizes();
  return spec;
}

at::Tensor joined(const UnjoinedTensor& one) {
  const auto part = one.sliced ? one.sliced.flat->join(one.sliced.number, one.mine) : one.mine;
  return one.division.module->ranks().join(part, one.division.divided->division);
}

UnjoinedTensor unjoined(const std::string& name, const step::ModelCore& model,
                        const parallel::DividedModule::DividedParameter& divided) {
  const at::NoGradGuard no_grad;
  const parallel::PartsOnly each_rank_has;
  const auto found = model.sharded() != nullptr ? model.sharded()->find(divided.parameter) : parallel::FlatParameter();
  UnjoinedTensor one{.name = name, .division = {.module = model.divided(), .divided = &divided}};
  if (found && found.is_sharded()) {
    one.mine = found.published_slice();
    one.sliced = found;
  } else {
    one.mine = divided.parameter.detach();
  }
  return one;
}

namespace {

void make_room(SnapshotDraft& draft, const Training& training) {
  const auto& mesh = training.channels.mesh().shape();
  const auto stage = mesh.index(Axis::pipeline, training.host().rank());
  for (const auto& one : draft.unjoined) {
    checkpoint::ShardedTensor share{.whole = {.type = one.mine.scalar_type(), .shape = one.division.whole_sizes()}};
    for (int rank = 0; rank < mesh.ranks(); ++rank)
      share.of_ranks.push_back(range_of(mesh, rank, stage, share.whole.elements()));
    const auto& own = share.of_ranks[static_cast<std::size_t>(training.host().rank())];
    share.part = at::empty({own.size()}, one.mine.options().device(at::kCPU).requires_grad(false));
    draft.snapshot.shards.emplace(one.name, std::move(share));
  }
}

// With one whole tensor in memory at a time. @collective over the ranks that write
void join_parts(SnapshotDraft& draft, const Training& training) {
  const auto rank = training.host().rank();
  const auto& mesh = training.channels.mesh().shape();
  if (!writes(mesh, rank, mesh.index(Axis::pipeline, rank))) return;
  const parallel::PartsOnly each_rank_has;
  const at::NoGradGuard no_grad;
  for (const auto& one : draft.unjoined) {
    auto& share = draft.snapshot.shards.at(one.name);
    const auto& own = share.of_ranks[static_cast<std::size_t>(rank)];
    share.part.copy_(joined(one).flatten().narrow(0, own.begin, own.size()));
  }
}

// A part whose last elements may be padding, which no file has.
at::Tensor read_padded_elements(const checkpoint::Reader& reader, const std::string& name,
                                const DivisionInModel& division, core::Range of_part) {
  const auto& ranks = division.module->ranks();
  const auto& how = division.divided->division;
  if (how.dim != 0)
    return ranks.part_of(reader.read(name), how).flatten().narrow(0, of_part.begin, of_part.size()).clone();
  std::int64_t elements = 1;
  for (const auto size : division.whole_sizes()) elements *= size;
  const auto runs = parallel::runs_of(division.divided->part, how);
  const auto cover = parallel::cover_of(runs, of_part, ranks.index(), ranks.size());
  const core::Range stored{.begin = std::min(cover.begin, elements), .end = std::min(cover.end, elements)};
  return at::constant_pad_nd(reader.read_part(name, stored), {0, cover.size() - stored.size()});
}

}  // namespace

void join_together(SnapshotDraft& draft, Training& training) {
  const machine::RecyclingAllocator blocks(0);  // whole tensors leave no holes
  mpi::all_or_none(training.host(), [&] { make_room(draft, training); });
  training.exchange_together([&] { join_parts(draft, training); });
}

// Reads only the runs of a part if they are long, and whole rows otherwise.
at::Tensor read_own_elements(const checkpoint::Reader& reader, const std::string& name, const DivisionInModel& division,
                             core::Range of_part) {
  const auto& ranks = division.module->ranks();
  if (division.divided->division.padding > 0) return read_padded_elements(reader, name, division, of_part);
  const auto runs = parallel::runs_of(division.divided->part, division.divided->division);
  const auto cover = parallel::cover_of(runs, of_part, ranks.index(), ranks.size());
  return ranks.own_elements(reader.read_part(name, cover), runs, of_part);
}

at::Tensor read_own_part(const checkpoint::Reader& reader, const std::string& name, const DivisionInModel& division) {
  std::int64_t elements = 1;
  for (const auto size : division.divided->part) elements *= size;
  return read_own_elements(reader, name, division, {.begin = 0, .end = elements}).view(division.divided->part);
}

}  // namespace hortator::accelerator
