#include "step/reproducible/virtual_shards.hpp"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "core/text/text.hpp"
#include "parallel/pipeline/work/parameter_reads.hpp"
#include "step/model/model_core.hpp"

namespace hortator::step {

int VirtualShards::shards_per_rank(int shards, int ranks) {
  const auto refuse = [&](std::string why) {
    throw UsageError({.what = text::concat("virtual_shards = ", shards, " with ", text::count(ranks, "rank")),
                      .why = std::move(why),
                      .hint = "use a power of two of shards, and of ranks up to that number"});
  };
  if (shards < 1) refuse("a step has at least one shard");
  if (shards % ranks != 0) refuse("every rank must have the same number of shards");
  if (ranks > 1 && !std::has_single_bit(static_cast<unsigned>(shards / ranks)))
    refuse(
        text::concat(shards / ranks, " shards for each rank are not a node of the tree along which shards are summed"));
  return shards / ranks;
}

namespace {

StageReaders readers_of(const parallel::StagedModule* staged, const at::Tensor& parameter) {
  if (staged == nullptr) return {};
  return {.here = staged->own_stages_of(parameter),
          .all = static_cast<int>(staged->stages_of(parameter).size()),
          .ranks = staged->ranks_with(parameter)};
}

// On one rank a parameter's gradients are added in the order of backward, which begins in the last stage: one that
// comes before it is added as a whole.
void require_single_reads(const parallel::StagedModule& staged, int stage, const std::vector<at::Tensor>& results) {
  for (const auto& [name, parameter] : staged.parameters()) {
    if (!parameter.requires_grad() || staged.stages_of(parameter).size() == 1) continue;
    if (!staged.stages_of(parameter).contains(stage) || *staged.stages_of(parameter).rbegin() == stage) continue;
    const int reads = parallel::count_reads(parameter, results);
    if (reads <= 1) continue;
    throw UsageError({.what = text::concat("A stage of a pipeline reads the parameter ", text::quote(name), " ", reads,
                                           " times, and a later stage reads it as well"),
                      .why = "with reproducible = true the gradient of the earlier stage must be one term of a sum",
                      .hint = "read it once before the layers, or leave reproducible out"});
  }
}

// With two stages there is one sum, the same in any order.
void require_two_readers(const parallel::StagedModule& staged) {
  for (const auto& [name, parameter] : staged.parameters()) {
    if (staged.stages_of(parameter).size() <= 2) continue;
    throw UsageError({.what = text::concat("Stages ", text::join(staged.stages_of(parameter), ", "),
                                           " of a pipeline read the parameter ", text::quote(name)),
                      .why = "with reproducible = true at most two may: sums of more depend on how layers are cut",
                      .hint = "use fewer stages, or leave reproducible out"});
  }
}

}  // namespace

void VirtualShards::add(const ModelCore& model) {
  const auto* const staged = model.staged();
  if (staged != nullptr) require_two_readers(*staged);
  std::map<std::tuple<at::ScalarType, c10::DeviceType, std::set<int>>, std::vector<at::Tensor>> alike;
  for (const auto& parameter : model.own_parameters()) {
    const auto stages = staged != nullptr ? staged->stages_of(parameter) : std::set<int>();
    alike[{parameter.scalar_type(), parameter.device().type(), stages}].push_back(parameter);
  }
  Model added{.core = &model, .gradients = {}, .buffers = ShardBuffers(model.distinct_buffers())};
  for (auto& [key, parameters] : alike) {
    const auto readers = readers_of(staged, parameters.front());
    added.gradients.emplace_back(std::move(parameters), readers);
  }
  models_.push_back(std::move(added));
}

VirtualShards::Model& VirtualShards::find(const ModelCore& model) {
  return *std::ranges::find(models_, &model, &Model::core);
}

void VirtualShards::begin_pipeline(const ModelCore& model) {
  auto& found = find(model);
  if (std::exchange(found.has_pipeline, true)) {
    throw UsageError({.what = "pipeline_step() was called twice for one batch",
                      .why = "with reproducible = true it computes the shards of a step, and each has one gradient",
                      .hint = "compute all losses of a batch in one function"});
  }
}

void VirtualShards::begin_stage(const ModelCore& model) { find(model).buffers.begin_stage(); }

void VirtualShards::end_stage(const ModelCore& model, int stage, int part, const std::vector<at::Tensor>& results) {
  auto& found = find(model);
  found.buffers.end_stage(number_ + part);
  if (part == 0 && model.staged() != nullptr) require_single_reads(*model.staged(), stage, results);
}

void VirtualShards::take_stage(const ModelCore& model, int stage, int part) {
  const at::NoGradGuard no_grad;
  for (auto& gradients : find(model).gradients) {
    if (gradients.are_read_in(stage)) gradients.take_shard(number_ + part);
  }
}

bool VirtualShards::has_pipeline() const { return std::ranges::any_of(models_, &Model::has_pipeline); }

void VirtualShards::forget() {
  models_.clear();
  is_synchronised_ = true;
}

void VirtualShards::restart() {
  for (auto& model : models_) {
    for (auto& gradients : model.gradients) gradients.restart();
    model.buffers.restart();
    model.has_pipeline = false;
  }
  is_synchronised_ = true;
}

void VirtualShards::begin_shard(int number) {
  take_shard();
  for (auto& model : models_) {
    for (auto& gradients : model.gradients) {
      if (is_synchronised_)
        gradients.forget();  // drop the last update's mean, since zero_grad() may come after this shard has begun
      if (number == 0) gradients.close_step(own_);
    }
    model.buffers.begin_shard(number);
    model.has_pipeline = false;
  }
  number_ = number;
  is_synchronised_ = false;
}

void VirtualShards::take_shard() {
  if (is_synchronised_) return;
  const at::NoGradGuard no_grad;
  for (auto& model : models_) {
    // Parameters of one type may have no gradient in a shard whose backward reached others.
    if (std::ranges::none_of(model.gradients, &ShardGradients::has_gradients)) continue;
    for (auto& gradients : model.gradients) gradients.take_shard(number_);
  }
}

// Sums are over all ranks: one without a shard would leave the others waiting, and alone it would skip an update.
void VirtualShards::require_whole_step() {
  if (models_.empty()) return;  // the same on all ranks
  auto counts = at::zeros({static_cast<std::int64_t>(models_.size()), 2}, at::kInt);
  auto count = counts.accessor<int, 2>();
  c10::Device device = at::kCPU;
  for (std::size_t i = 0; i < models_.size(); ++i) {
    if (models_[i].gradients.empty()) continue;
    const auto& gradients = models_[i].gradients.front();
    device = gradients.device();
    const auto at = static_cast<std::int64_t>(i);
    count[at][0] = gradients.shards();
    count[at][1] = gradients.steps();
  }
  auto all = at::empty({communicator_.size() * counts.numel()}, counts.options().device(device));
  communicator_.all_gather(all, counts.view({-1}).to(device)).wait();
  const auto by_rank = all.cpu().view({communicator_.size(), -1, 2});
  const auto shards = by_rank.select(2, 0), steps = by_rank.select(2, 1);
  const bool is_whole = shards.eq(0).logical_or(shards.eq(own_)).all().item<bool>();
  if (is_whole && shards.eq(shards[0]).all().item<bool>() && steps.eq(steps[0]).all().item<bool>()) return;
  restart();
  throw UsageError(
      {.what = text::concat("backward() was called for some of the ", shards_, " shards of a step only"),
       .why = "with reproducible = true the gradients of all shards add up to one update",
       .hint = "call backward() once for each batch of the loader, with a loss times 0 where it is skipped"});
}

bool VirtualShards::synchronise() {
  if (is_synchronised_) return false;
  const at::NoGradGuard no_grad;
  take_shard();
  require_whole_step();
  for (auto& model : models_) {
    for (auto& gradients : model.gradients) {
      gradients.close_step(own_);
      gradients.add_other_stages();
    }
  }
  for (auto& model : models_) {
    for (auto& gradients : model.gradients) {
      if (!gradients.empty()) gradients.publish(communicator_, 1.0 / shards_);
    }
    model.buffers.publish(communicator_);
  }
  is_synchronised_ = true;
  return true;
}

}  // namespace hortator::step
