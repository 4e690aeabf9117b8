#include "step/reproducible/virtual_shards.hpp"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <bit>
#include <map>

#include "core/text/text.hpp"
#include "step/model_core.hpp"

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

void VirtualShards::add(const ModelCore& model) {
  std::map<std::pair<at::ScalarType, c10::DeviceType>, std::vector<at::Tensor>> by_type;
  for (const auto& parameter : model.own_parameters()) {
    by_type[{parameter.scalar_type(), parameter.device().type()}].push_back(parameter);
  }
  Model added{.gradients = {}, .buffers = ShardBuffers(model.distinct_buffers())};
  for (auto& [type, parameters] : by_type) added.gradients.emplace_back(std::move(parameters));
  models_.push_back(std::move(added));
}

void VirtualShards::forget() {
  models_.clear();
  is_synchronised_ = true;
}

void VirtualShards::restart() {
  for (auto& model : models_) {
    for (auto& gradients : model.gradients) gradients.restart();
    model.buffers.restart();
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
  }
  is_synchronised_ = false;
}

void VirtualShards::take_shard() {
  if (is_synchronised_) return;
  const at::NoGradGuard no_grad;
  for (auto& model : models_) {
    // Parameters of one type may have no gradient in a shard whose backward reached others.
    if (std::ranges::none_of(model.gradients, &ShardGradients::has_gradients)) continue;
    for (auto& gradients : model.gradients) gradients.take_shard();
  }
}

// Sums are over all ranks: one without a shard would leave the others waiting, and alone it would skip an update.
void VirtualShards::require_whole_step() {
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
      if (!gradients.empty()) gradients.publish(communicator_, 1.0 / shards_);
    }
    model.buffers.publish(communicator_);
  }
  is_synchronised_ = true;
  return true;
}

}  // namespace hortator::step
