#include "accelerator/state/staged_state.hpp"

#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>

#include <charconv>
#include <nlohmann/json.hpp>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

#include "accelerator/channels/channels.hpp"
#include "accelerator/prepared/prepared.hpp"
#include "accelerator/training/training.hpp"
#include "mpi/collectives.hpp"
#include "parallel/pipeline/staged_module.hpp"
#include "step/moments/moment_layout.hpp"
#include "step/moments/optimizer_state.hpp"

namespace hortator::accelerator {
namespace {

using nlohmann::json;
using parallel::Axis;

/// "0/layers.0.weight" as the number of a model and a name in it.
StagedParameter find_parameter(const Training& training, std::string_view path) {
  const auto slash = path.find('/');
  std::size_t number = 0;
  const auto& models = training.prepared.models();
  if (slash == std::string_view::npos ||
      std::from_chars(path.data(), path.data() + slash, number).ptr != path.data() + slash || number >= models.size() ||
      models[number]->staged() == nullptr)
    return {};
  auto name = std::string(path.substr(slash + 1));
  if (!models[number]->staged()->has_parameter_named(name)) return {};
  return {.module = models[number]->staged(), .name = std::move(name)};
}

StagedParameter find_entry(const Training& training, const std::string& entry) {
  constexpr std::string_view models = "models/", optimizers = "optimizers/", state = "/state/";
  if (entry.starts_with(models)) return find_parameter(training, std::string_view(entry).substr(models.size()));
  if (!entry.starts_with(optimizers)) return {};
  const auto at = entry.find(state);
  if (at == std::string::npos) return {};
  const auto path = step::split_moment_path(std::string_view(entry).substr(at + state.size()));
  return find_parameter(training, path.parameter);
}

StagedParameter find_entry(const SnapshotDraft& draft, const Training& training, const std::string& entry) {
  const auto known = draft.staged.find(entry);
  return known != draft.staged.end() ? known->second : find_entry(training, entry);
}

json described(const checkpoint::ShardedTensor& share) {
  json ranges = json::array();
  for (const auto& range : share.of_ranks) ranges.push_back({range.begin, range.end});
  return {{"type", static_cast<int>(share.whole.type)}, {"shape", share.whole.shape}, {"of_ranks", ranges}};
}

checkpoint::ShardedTensor share_from(const json& fields) {
  checkpoint::ShardedTensor share{.whole = {.type = static_cast<at::ScalarType>(fields.at("type").get<int>()),
                                            .shape = fields.at("shape").get<std::vector<std::int64_t>>()}};
  for (const auto& range : fields.at("of_ranks"))
    share.of_ranks.push_back({.begin = range.at(0).get<std::int64_t>(), .end = range.at(1).get<std::int64_t>()});
  share.part = at::empty({0}, at::TensorOptions().dtype(share.whole.type));
  return share;
}

/// What this rank's stages have: the tensors that are among the shards, and numbers.
json own_entries(const SnapshotDraft& draft, const Training& training) {
  json tensors = json::object(), values = json::object();
  for (const auto& [name, share] : draft.snapshot.shards) {
    if (find_entry(draft, training, name)) tensors[name] = described(share);
  }
  for (const auto& [name, value] : draft.snapshot.common.values()) {
    if (!find_entry(draft, training, name)) continue;
    std::visit(
        [&, &name = name](const auto& held) {
          if constexpr (!std::is_same_v<std::decay_t<decltype(held)>, at::Tensor>) values[name] = held;
        },
        value);
  }
  return {{"tensors", tensors}, {"values", values}};
}

/// Adds numbers and texts that `state` does not have.
void add_values(StateDict& state, const json& values) {
  for (const auto& [name, value] : values.items()) {
    if (state.contains(name)) continue;
    if (value.is_number_integer()) {
      state.put(name, value.get<std::int64_t>());
    } else if (value.is_number()) {
      state.put(name, value.get<double>());
    } else {
      state.put(name, value.get<std::string>());
    }
  }
}

void add(SnapshotDraft& draft, const json& entries) {
  for (const auto& [name, fields] : entries.at("tensors").items()) {
    if (!draft.snapshot.shards.contains(name)) draft.snapshot.shards.emplace(name, share_from(fields));
  }
  add_values(draft.snapshot.common, entries.at("values"));
}

/// Moves tensors that not all ranks have from the common ones to the shards. The first rank along the pipeline that has
/// one writes it, with the ranks that hold replicas of it.
void make_shards(SnapshotDraft& draft, const Training& training) {
  const at::NoGradGuard no_grad;
  StateDict common;
  const auto rank = static_cast<std::size_t>(training.host().rank());
  for (const auto& [name, value] : draft.snapshot.common.values()) {
    const auto* tensor = std::get_if<at::Tensor>(&value);
    const auto entry = tensor != nullptr ? find_entry(draft, training, name) : StagedParameter();
    if (!entry) {
      std::visit([&, &name = name](const auto& held) { common.put(name, held); }, value);
      continue;
    }
    if (!entry.module->is_first_with(entry.name)) continue;
    checkpoint::ShardedTensor share{.whole = formats::spec_of(*tensor)};
    share.of_ranks = written_by_stage(training, share.whole.elements());
    const auto& own = share.of_ranks[rank];
    share.part = tensor->detach().reshape({-1}).narrow(0, own.begin, own.size());
    draft.snapshot.shards.emplace(name, std::move(share));
  }
  draft.snapshot.common = std::move(common);
}

/// Parts that several ranks along the pipeline have joined: the first of them writes.
void keep_first(SnapshotDraft& draft, const Training& training) {
  std::erase_if(draft.snapshot.shards, [&](const auto& item) {
    const auto entry = find_entry(draft, training, item.first);
    return entry && !entry.module->is_first_with(entry.name);
  });
}

/// The optimizer's own entries of parameters that this rank is the first along the pipeline to have.
StateDict first_entries(const Training& training, const StateDict& state) {
  StateDict own;
  for (const auto& [path, value] : state.values()) {
    const auto entry = find_entry(training, "optimizers/0/" + path);
    if (!entry || !entry.module->is_first_with(entry.name)) continue;
    std::visit([&, &path = path](const auto& held) { own.put(path, held); }, value);
  }
  return own;
}

/// Adds the entries of all ranks along the pipeline to `state`, tensors in host memory. @collective over these ranks
void exchange(StateDict& state, const StateDict& own, const parallel::RankGroup& ranks) {
  json tensors = json::object(), values = json::object();
  for (const auto& [path, value] : own.values()) {
    std::visit(
        [&, &path = path](const auto& held) {
          if constexpr (std::is_same_v<std::decay_t<decltype(held)>, at::Tensor>) {
            tensors[path] = {{"type", static_cast<int>(held.scalar_type())}, {"shape", held.sizes().vec()}};
          } else {
            values[path] = held;
          }
        },
        value);
  }
  const auto all = mpi::all_gather(ranks.host, json({{"tensors", tensors}, {"values", values}}).dump());
  for (int rank = 0; rank < ranks.size(); ++rank) {
    const auto entries = json::parse(all[static_cast<std::size_t>(rank)]);
    for (const auto& [path, fields] : entries.at("tensors").items()) {
      const auto type = static_cast<at::ScalarType>(fields.at("type").get<int>());
      const auto tensor = rank == ranks.index() ? own.get<at::Tensor>(path).to(at::kCPU).contiguous()
                                                : at::empty(fields.at("shape").get<std::vector<std::int64_t>>(), type);
      ranks.on_cpu.broadcast(tensor, rank).wait();
      state.put(path, tensor);
    }
    add_values(state, entries.at("values"));
  }
}

}  // namespace

// A stage whose parameters are all frozen has no state: another rank's shows that the optimizer lives.
MomentsOfStages::MomentsOfStages(const Training& training) : names_(training.prepared.parameter_names()) {
  const auto* stages = training.channels.stages();
  if (stages == nullptr) return;
  for (const auto& optimizer : training.prepared.optimizers()) {
    if (mpi::all_reduce(stages->ranks.host, optimizer->keeps_state() ? 1 : 0, mpi::Op::max) != 0)
      all_.push_back({.optimizer = &optimizer->optimizer()});
  }
}

void MomentsOfStages::collect(const Training& training) {
  const at::NoGradGuard no_grad;
  for (auto& [optimizer, state] : all_) {
    state = step::save_optimizer(*optimizer, names_);
    exchange(state, first_entries(training, state), training.channels.stages()->ranks);
  }
}

void MomentsOfStages::give_back() const {
  for (const auto& [optimizer, state] : all_) step::load_optimizer(*optimizer, names_, state);
}

std::vector<core::Range> written_by_stage(const Training& training, std::int64_t elements) {
  const auto& mesh = training.channels.mesh().shape();
  const auto stage = mesh.index(Axis::pipeline, training.host().rank());
  std::vector<core::Range> ranges;
  for (int rank = 0; rank < mesh.ranks(); ++rank) {
    const bool writes = mesh.index(Axis::pipeline, rank) == stage && mesh.index(Axis::context, rank) == 0 &&
                        mesh.index(Axis::tensor, rank) == 0;
    ranges.push_back(writes ? core::balanced(elements, mesh.data_size(), mesh.data_index(rank)) : core::Range{});
  }
  return ranges;
}

bool is_of_other_stage(const Training& training, const std::string& entry) {
  const auto found = find_entry(training, entry);
  return found && !found.module->has(found.name);
}

void share_buffers_of_stages(const Training& training) {
  for (const auto& model : training.prepared.models()) {
    if (model->staged() != nullptr) model->staged()->share_buffers();
  }
}

void add_other_stages(SnapshotDraft& draft, const Training& training) {
  const auto* stages = training.channels.stages();
  if (stages == nullptr) return;
  keep_first(draft, training);
  make_shards(draft, training);
  for (const auto& entries : mpi::all_gather(stages->ranks.host, own_entries(draft, training).dump()))
    add(draft, json::parse(entries));
}

}  // namespace hortator::accelerator
