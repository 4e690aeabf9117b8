#include "accelerator/state/divided_state.hpp"

#include <algorithm>
#include <charconv>

namespace hortator::accelerator {
namespace {

using parallel::Axis;

/// Whether the rank is of the tensor group that writes: the first along all other axes.
bool writes(const parallel::MeshShape& mesh, int rank) {
  return std::ranges::all_of(parallel::all_axes,
                             [&](Axis axis) { return axis == Axis::tensor || mesh.index(axis, rank) == 0; });
}

/// The elements that a rank writes of a tensor of `elements`.
core::Range range_of(const parallel::MeshShape& mesh, int rank, std::int64_t elements) {
  if (!writes(mesh, rank)) return {};
  const std::int64_t ranks = mesh.size(Axis::tensor), index = mesh.index(Axis::tensor, rank);
  return {.begin = elements * index / ranks, .end = elements * (index + 1) / ranks};
}

}  // namespace

parallel::Sizes DivisionInModel::whole_sizes() const {
  return parallel::whole_sizes(divided->parameter.sizes(), divided->division, module->ranks().size());
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

parallel::DividedModule* divided_module(const Training& training, const torch::nn::Module& module) {
  for (const auto& model : training.prepared.models()) {
    if (model->wraps(module)) return model->divided();
  }
  return nullptr;
}

formats::TensorSpec whole_spec(const Training& training, const at::Tensor& tensor) {
  auto spec = formats::spec_of(tensor);
  if (const auto division = find_division(training, tensor)) spec.shape = division.whole_sizes();
  return spec;
}

checkpoint::ShardedTensor divided_share(const Training& training, const DivisionInModel& division,
                                        const at::Tensor& part) {
  checkpoint::ShardedTensor share{.whole = {.type = part.scalar_type(), .shape = division.whole_sizes()}};
  const auto& mesh = training.channels.mesh().shape();
  const auto& ranks = division.module->ranks();
  const auto elements = part.numel() * ranks.size();
  for (int rank = 0; rank < mesh.ranks(); ++rank) share.of_ranks.push_back(range_of(mesh, rank, elements));
  const auto& own = share.of_ranks[static_cast<std::size_t>(training.host().rank())];
  const parallel::PartsOnly each_rank_has;
  const at::NoGradGuard no_grad;
  if (!writes(mesh, training.host().rank())) {
    share.part = part.detach().flatten().narrow(0, 0, 0).clone();
  } else {
    share.part = ranks.join(part, division.divided->division).flatten().narrow(0, own.begin, own.size()).clone();
  }
  return share;
}

at::Tensor read_own_part(const checkpoint::Reader& reader, const std::string& name, const DivisionInModel& division) {
  const auto& ranks = division.module->ranks();
  const auto& how = division.divided->division;
  const auto part = division.divided->parameter.sizes();
  if (how.dim != 0 || how.blocks != 1) return ranks.part_of(reader.read(name), how);
  const auto elements = division.divided->parameter.numel();
  return reader.read_part(name, {.begin = elements * ranks.index(), .end = elements * (ranks.index() + 1)}).view(part);
}

}  // namespace hortator::accelerator
