#include "accelerator/state/sharded_state.hpp"

#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>

#include <map>

#include "accelerator/channels/channels.hpp"
#include "accelerator/prepared/prepared.hpp"
#include "accelerator/state/divided_state.hpp"
#include "accelerator/state/staged_state.hpp"
#include "accelerator/training/training.hpp"
#include "core/text/text.hpp"
#include "step/moments/moment_layout.hpp"

namespace hortator::accelerator {
namespace {

using Part = step::ShardedOptimizer::ShardedParameter;
constexpr auto master = "master";

/// The optimizer's sharded parts, by "state/<parameter>"; none if it is not sharded.
std::map<std::string, Part> parts_of(const step::OptimizerCore& optimizer, const step::ParameterNames& names) {
  std::map<std::string, Part> parts;
  if (optimizer.shards() == nullptr) return parts;
  for (const auto& group : optimizer.shards()->groups()) {
    for (const auto& part : group) {
      if (part.flat != nullptr) parts.emplace("state/" + names.at(part.parameter.unsafeGetTensorImpl()), part);
    }
  }
  return parts;
}

/// The part to which the moment at `path` ("state/<parameter>/<moment>") belongs; null if it is not sharded.
const Part* find_part(const std::map<std::string, Part>& parts, const std::string& path) {
  const auto [parameter, moment] = step::split_moment_path(path);
  const auto found = parts.find(parameter);
  return found == parts.end() || step::moment_layout(moment) == step::MomentLayout::whole ? nullptr : &found->second;
}

step::MomentLayout layout_of(const std::string& path) {
  return step::moment_layout(step::split_moment_path(path).moment);
}

/// The shape of the whole tensor at `path`.
std::vector<std::int64_t> shape_at(const std::string& path, const at::Tensor& parameter) {
  if (layout_of(path) == step::MomentLayout::blocks) return {step::blocks_of(parameter.numel())};
  return parameter.sizes().vec();
}

void require_shape_of(const Training& training, const Part& part, const std::string& path, at::IntArrayRef shape) {
  const auto expected = layout_of(path) == step::MomentLayout::blocks ? shape_at(path, part.parameter)
                                                                      : whole_spec(training, part.parameter).shape;
  if (shape == expected) return;
  throw Error({.what = text::concat(path, " has shape [", text::join(shape), "], its parameter has [",
                                    text::join(expected), "]"),
               .why = "the checkpoint is of another model",
               .hint = "build the model that was saved"});
}

using parallel::FlatParameter;

/// The parameter in the sharded models; empty if no model has it.
FlatParameter find_sharded(const Training& training, const at::Tensor& parameter) {
  for (const auto& model : training.prepared.models()) {
    if (const auto found = model->find_sharded(parameter)) return found;
  }
  return {};
}

/// Describes a sharded tensor of the parameter's shape, or the moment of it at `path`; `mine` is this rank's slice of
/// it.
checkpoint::ShardedTensor share_of(const FlatParameter& sharded, const at::Tensor& mine, const Training& training,
                                   const std::string& path = {}) {
  const auto& [flat, number] = sharded;
  const auto& parameter = flat->parameters()[number].tensor;
  checkpoint::ShardedTensor share{.whole = {.type = mine.scalar_type(), .shape = shape_at(path, parameter)},
                                  .part = mine};
  const auto& zero = *training.channels.zero();
  const auto& mesh = training.channels.mesh().shape();
  for (int rank = 0; rank < mesh.ranks(); ++rank)
    share.of_ranks.push_back(
        zero.counts(rank)
            ? step::moment_range(layout_of(path), flat->plan().owned(number, mesh.index(parallel::Axis::shard, rank)))
            : core::Range{});
  // Replicas hold the same and write nothing.
  if (!zero.counts(training.host().rank())) share.part = mine.narrow(0, 0, 0);
  return share;
}

/// Adds a slice of a tensor that is sharded, or of a part of one that is divided as well.
void put_slice(SnapshotDraft& draft, const std::string& name, const Training& training, const FlatParameter& sharded,
               const at::Tensor& mine, const std::string& path = {}) {
  const auto& parameter = sharded.flat->parameters()[sharded.number].tensor;
  if (const auto division = find_division(training, parameter)) {
    draft.unjoined.push_back({.name = name, .division = division, .mine = mine, .sliced = sharded});
  } else {
    draft.snapshot.shards.emplace(name, share_of(sharded, mine, training, path));
  }
}

/// Adds a value of an optimizer's state that belongs to no sharded parameter, but may to one that tensor ranks divide.
void put_moment(SnapshotDraft& draft, const std::string& name, const std::string& path, const Training& training,
                const StateDict::Value& value) {
  const auto* tensor = std::get_if<at::Tensor>(&value);
  const auto division = tensor != nullptr ? find_division(training, path) : DivisionInModel();
  if (division && division.has_sizes_of_part(*tensor)) {
    draft.unjoined.push_back({.name = name, .division = division, .mine = *tensor});
  } else {
    std::visit([&](const auto& held) { draft.snapshot.common.put(name, held); }, value);
  }
}

/// Reads this rank's slice of a tensor.
at::Tensor read_slice(const checkpoint::Reader& reader, const std::string& name, const Training& training,
                      const at::Tensor& parameter, core::Range owned) {
  const auto division = find_division(training, parameter);
  return division ? read_own_elements(reader, name, division, owned) : reader.read_part(name, owned);
}

at::Tensor read_slice(const checkpoint::Reader& reader, const std::string& name, const Training& training,
                      const Part& part) {
  return read_slice(reader, name, training, part.parameter, part.flat->owned(part.number));
}

/// Cuts what this rank has out of a whole moment.
at::Tensor own_part(const at::Tensor& whole, const Training& training, const Part& part, const std::string& path) {
  const auto division = find_division(training, part.parameter);
  const auto mine = division ? division.module->ranks().part_of(whole, division.divided->division) : whole;
  const auto owned = step::moment_range(layout_of(path), part.flat->owned(part.number));
  return mine.reshape({-1}).narrow(0, owned.begin, owned.size()).clone();
}

/// Adds what this rank has of a whole moment that belongs to no sharded parameter. The moments of models whose
/// parameters are lent stay whole.
void put_own_moment(StateDict& state, const std::string& path, const StateDict::Value& value,
                    const Training& training) {
  const auto* tensor = std::get_if<at::Tensor>(&value);
  const auto division = tensor != nullptr ? find_division(training, path) : DivisionInModel();
  if (division && !division.module->is_lent() && tensor->sizes() == division.whole_sizes()) {
    state.put(path, division.module->ranks().part_of(*tensor, division.divided->division));
  } else {
    std::visit([&](const auto& held) { state.put(path, held); }, value);
  }
}

}  // namespace

void put_optimizer(SnapshotDraft& draft, const std::string& prefix, const Training& training,
                   const step::OptimizerCore& optimizer, const step::ParameterNames& names) {
  auto state = step::save_optimizer(optimizer.optimizer(), names);
  const auto parts = parts_of(optimizer, names);
  for (const auto& [path, value] : state.values()) {
    const auto* part = find_part(parts, path);
    const auto* tensor = std::get_if<at::Tensor>(&value);
    const auto name = prefix + "/" + path;
    if (part != nullptr && tensor != nullptr) {
      put_slice(draft, name, training, {part->flat, part->number}, *tensor, path);
    } else {
      put_moment(draft, name, path, training, value);
    }
  }
  for (const auto& [path, part] : parts) {
    if (part.flat->has_master(part.number))
      put_slice(draft, text::concat(prefix, "/", path, "/", master), training, {part.flat, part.number}, part.slice);
  }
}

// Tied parameters are saved under each of their names, so that any of them can be looked up. Parameters that no rank
// has as a whole are written as slices.
void put_model(SnapshotDraft& draft, const std::string& prefix, const Training& training, const step::ModelCore& model,
               bool only_trainable) {
  if (model.divided() != nullptr) model.divided()->check_untouched();
  for (const auto& item : model.module().named_parameters()) {
    if (only_trainable && !item.value().requires_grad()) continue;
    if (parallel::is_of_other_stage(item.value())) continue;
    const auto name = prefix + "/" + item.key();
    if (!item.value().requires_grad()) draft.snapshot.frozen.insert(name);
    const auto sharded = find_sharded(training, item.value());
    const auto* divided =
        model.divided() != nullptr && !model.is_lent() ? model.divided()->find(item.value()) : nullptr;
    if (divided != nullptr) {
      draft.unjoined.push_back(unjoined(name, model, *divided));
    } else if (sharded && sharded.is_sharded() && !sharded.flat->is_lent()) {
      put_slice(draft, name, training, sharded, sharded.published_slice());
    } else {
      draft.snapshot.common.put(name, item.value());
    }
  }
  for (const auto& item : model.module().named_buffers()) {
    const auto of_first = draft.buffers.find(item.value().unsafeGetTensorImpl());
    draft.snapshot.common.put(prefix + "/" + item.key(),
                              of_first == draft.buffers.end() ? item.value() : of_first->second);
  }
}

void put_like(SnapshotDraft& draft, const std::string& name, const Training& training, const at::Tensor& parameter,
              const at::Tensor& mine) {
  for (const auto& model : training.prepared.models()) {
    if (model->staged() != nullptr && model->staged()->knows(parameter))
      draft.staged.emplace(name,
                           StagedParameter{.module = model->staged(), .name = model->staged()->name_of(parameter)});
  }
  if (const auto sharded = find_sharded(training, parameter)) return put_slice(draft, name, training, sharded, mine);
  if (const auto division = find_division(training, parameter)) {
    draft.unjoined.push_back({.name = name, .division = division, .mine = mine});
  } else {
    draft.snapshot.common.put(name, mine);
  }
}

at::Tensor read_like(const checkpoint::Reader& reader, const std::string& name, const Training& training,
                     const at::Tensor& parameter) {
  if (const auto sharded = find_sharded(training, parameter))
    return read_slice(reader, name, training, parameter, sharded.owned());
  const auto division = find_division(training, parameter);
  return division ? read_own_part(reader, name, division) : reader.read(name);
}

std::function<StateDict(const StateDict& whole)> own_parts(const Training& training,
                                                           const step::OptimizerCore& optimizer,
                                                           const step::ParameterNames& names) {
  return [&, parts = parts_of(optimizer, names)](const StateDict& whole) {
    StateDict state;
    for (const auto& [path, value] : whole.values()) {
      const auto* part = find_part(parts, path);
      const auto* tensor = std::get_if<at::Tensor>(&value);
      if (part == nullptr || tensor == nullptr) {
        put_own_moment(state, path, value, training);
      } else {
        require_shape_of(training, *part, path, tensor->sizes());
        state.put(path, own_part(*tensor, training, *part, path));
      }
    }
    return state;
  };
}

StateDict without_other_stages(const StateDict& values, const std::string& prefix, const Training& training) {
  if (training.channels.stages() == nullptr) return values;
  StateDict own;
  for (const auto& [name, value] : values.values()) {
    if (is_of_other_stage(training, prefix + "/" + name)) continue;
    std::visit([&, &name = name](const auto& held) { own.put(name, held); }, value);
  }
  return own;
}

// The optimizer's state in a checkpoint, by its names there. whole() returns the value for an unsharded tensor,
// of_part() puts that for a sharded one. Skips the fp32 copies of parameters, which restore_masters() reads.
template <typename Whole, typename OfPart>
StateDict stored_state(const checkpoint::Reader& reader, const std::string& prefix, const Training& training,
                       const std::map<std::string, Part>& parts, const Whole& whole, const OfPart& of_part) {
  StateDict state = without_other_stages(reader.values().under(prefix), prefix, training);
  for (const auto& [name, spec] : reader.tensors()) {
    if (!name.starts_with(prefix + "/") || is_of_other_stage(training, name)) continue;
    const auto path = name.substr(prefix.size() + 1);
    const auto* part = find_part(parts, path);
    if (part == nullptr) {
      state.put(path, whole(name, spec));
    } else if (!path.ends_with(text::concat("/", master))) {
      require_shape_of(training, *part, path, spec.shape);
      of_part(state, path, name, *part);
    }
  }
  return state;
}

void check_moments(const checkpoint::Reader& reader, const std::string& prefix, const Training& training,
                   const step::OptimizerCore& optimizer, const step::ParameterNames& names) {
  const auto parts = parts_of(optimizer, names);
  const auto shape_alone = [&](const std::string& name, const auto& spec) {
    const auto division = find_division(training, name.substr(prefix.size() + 1));
    const bool is_divided = division && spec.shape == division.whole_sizes();
    const auto shape = is_divided ? division.divided->parameter.sizes().vec() : spec.shape;
    return at::empty({}, at::TensorOptions().dtype(spec.type)).expand(shape);
  };
  const auto nothing = [](StateDict&, const std::string&, const std::string&, const Part&) {};
  step::check_optimizer(optimizer.optimizer(), names,
                        stored_state(reader, prefix, training, parts, shape_alone, nothing));
}

StateDict read_slices(const checkpoint::Reader& reader, const std::string& prefix, const Training& training,
                      const step::OptimizerCore& optimizer, const step::ParameterNames& names) {
  const auto parts = parts_of(optimizer, names);
  const auto whole = [&](const std::string& name, const auto& spec) {
    const auto division = find_division(training, name.substr(prefix.size() + 1));
    return division && spec.shape == division.whole_sizes() ? read_own_part(reader, name, division) : reader.read(name);
  };
  const auto slice = [&](StateDict& state, const std::string& path, const std::string& name, const Part& part) {
    const auto owned = step::moment_range(layout_of(path), part.flat->owned(part.number));
    state.put(path, read_slice(reader, name, training, part.parameter, owned));
  };
  return stored_state(reader, prefix, training, parts, whole, slice);
}

void read_parameter(const checkpoint::Reader& reader, const std::string& name, const Training& training,
                    const at::Tensor& tensor) {
  const auto division = find_division(training, tensor);
  if (division && division.module->is_lent()) return reader.read_into(name, tensor);
  const parallel::PartsOnly each_rank_has;
  if (const auto sharded = find_sharded(training, tensor)) {
    sharded.published_slice().copy_(read_slice(reader, name, training, tensor, sharded.owned()));
  } else if (division) {
    tensor.copy_(read_own_part(reader, name, division));
  } else {
    reader.read_into(name, tensor);
  }
}

void restore_masters(const checkpoint::Reader& reader, const std::string& prefix, const Training& training,
                     const step::OptimizerCore& optimizer, const step::ParameterNames& names) {
  const at::NoGradGuard no_grad;
  for (const auto& [path, part] : parts_of(optimizer, names)) {
    if (!part.flat->has_master(part.number)) continue;
    const auto name = text::concat(prefix, "/", path, "/", master);
    if (reader.tensors().contains(name)) {
      part.slice.copy_(read_slice(reader, name, training, part));
    } else {
      part.slice.copy_(part.flat->published_slice(part.number));
    }
  }
}

}  // namespace hortator::accelerator
