#include "planning/cost.hpp"

#include <algorithm>
#include <utility>

namespace hortator::planning {
namespace {

constexpr int parts_of_pass = 3;          // of equal cost: forward, and the halves of backward
constexpr int interleaved_stages = 2;     // of a rank, as `interleaved` has by default
constexpr double hidden_share = 2.0 / 3;  // of computing: the backward pass, behind which gradients travel

// The share of one rank's batch that a data rank computes.
double batch_share(const ModelFacts& facts, const Candidate& one) { return facts.splits_batches ? 1.0 / one.data : 1; }

double computed(const ModelFacts& facts, const Candidate& one) {
  const double recomputed = one.recompute ? facts.recomputed_operations : 1;
  return facts.operations * batch_share(facts, one) * recomputed * facts.tensor.operations.on(one.tensor) *
         facts.context.operations.on(one.context) / one.pipeline;
}

// Effects were measured on two ranks.
double of_ring(double sent_by_two, int ranks) { return sent_by_two * ring_share(ranks) / ring_share(2); }

const Link& link_of(const Machine& machine, int stride, int ranks) {
  return stride * ranks <= machine.ranks_per_node ? machine.within_node : machine.between_nodes;
}

}  // namespace

Divided Divided::fitted(double on_one, double on_several, int ranks) {
  if (on_one <= 0 || ranks < 2) return {};
  const double share = (1 - on_several / on_one) * ranks / (ranks - 1);
  return {.share = std::clamp(share, 0.0, 1.0)};
}

double ring_share(int ranks) { return (ranks - 1.0) / ranks; }

double bubble(Schedule schedule, int ranks, int micro_batches) {
  if (ranks < 2) return 0;
  const int parts = schedule == Schedule::interleaved   ? interleaved_stages
                    : schedule == Schedule::zero_bubble ? parts_of_pass
                                                        : 1;
  return (ranks - 1) / (parts * micro_batches + ranks - 1.0);
}

int held_micro_batches(Schedule schedule, int ranks, int micro_batches) {
  if (ranks < 2) return 1;
  if (schedule == Schedule::gpipe) return micro_batches;
  // The first rank of `interleaved` starts more before its first backward pass; each is half a rank's layers.
  const int begun = schedule == Schedule::interleaved ? ranks + (ranks - 1) / 2 + 1 : ranks;
  return std::min(begun, micro_batches);
}

MemoryCost memory_cost(const ModelFacts& facts, const Candidate& one) {
  const double part = facts.tensor.parameters.on(one.tensor) * facts.pipeline.parameters.on(one.pipeline);
  const double shards = one.data;
  MemoryCost cost{.parameters = facts.parameters * part,
                  .gradients = facts.gradients * part,
                  .moments = facts.moments * part,
                  .buffers = facts.buffers};
  if (one.zero >= 1) cost.moments /= shards;
  if (one.zero >= 2) cost.gradients /= shards;
  if (one.zero >= 3) {
    cost.buffers += std::min(facts.layers_in_use * facts.tensor.parameters.on(one.tensor), cost.parameters);
    cost.parameters /= shards;
  }
  if (one.offload) cost.on_host += std::exchange(cost.moments, 0);
  if (one.offload_parameters) cost.on_host += std::exchange(cost.parameters, 0);
  const double held =
      static_cast<double>(held_micro_batches(one.schedule, one.pipeline, one.micro_batches)) / one.micro_batches;
  cost.activations = facts.activations * batch_share(facts, one) * facts.tensor.activations.on(one.tensor) *
                     facts.context.activations.on(one.context) * (one.recompute ? facts.recomputed_activations : 1) *
                     held / one.pipeline;
  return cost;
}

// Gradients are reduced and parameters gathered: 2 (n - 1) / n of their bytes; stage 3 gathers parameters once more.
// What an axis sends is cut with the layers, and counted for each of the ranks that it adds.
Work predicted_work(const ModelFacts& facts, const Candidate& one) {
  const double share = batch_share(facts, one) / one.pipeline;
  Work work{.operations = computed(facts, one)};
  work.tensor_bytes = of_ring(facts.tensor.sent_bytes, one.tensor) * share;
  work.tensor_calls = one.tensor > 1 ? facts.tensor.calls / one.pipeline : 0;
  work.context_bytes = of_ring(facts.context.sent_bytes, one.context) * share;
  work.context_calls = one.context > 1 ? facts.context.calls / one.pipeline : 0;
  work.stage_bytes = one.pipeline > 1 ? facts.pipeline.sent_bytes * batch_share(facts, one) : 0;
  const int ranks = one.data * one.context;
  const double gradients =
      facts.parameters * facts.tensor.parameters.on(one.tensor) * facts.pipeline.parameters.on(one.pipeline);
  const double passes = one.zero == 3 ? 3 : 2;
  constexpr double bucket_bytes = 25 << 20;
  if (ranks > 1) {
    work.data_bytes = passes * gradients * ring_share(ranks);
    work.data_calls = passes * std::max(1.0, gradients / bucket_bytes);
  }
  return work;
}

TimeCost time_cost(const Work& work, const Candidate& one, const Machine& machine, bool is_16bit) {
  const auto along = [&](int stride, int ranks, double bytes, double calls) {
    return ranks > 1 ? seconds(link_of(machine, stride, ranks), bytes, calls * (ranks - 1)) : 0;
  };
  TimeCost cost{.computing = work.operations / (is_16bit ? machine.flops_16bit : machine.flops_fp32)};
  cost.communicating = along(1, one.tensor, work.tensor_bytes, work.tensor_calls) +
                       along(one.tensor, one.context, work.context_bytes, work.context_calls);
  if (one.pipeline > 1) {
    const auto& link = link_of(machine, one.ranks() / one.pipeline, one.pipeline);
    cost.communicating += seconds(link, work.stage_bytes, 2.0 * one.micro_batches);
    const double waits = bubble(one.schedule, one.pipeline, one.micro_batches);
    cost.idle = (cost.computing + cost.communicating) * waits / (1 - waits);
  }
  const double gradients = along(one.tensor, one.data * one.context, work.data_bytes, work.data_calls);
  cost.communicating += std::max(0.0, gradients - hidden_share * cost.computing);
  return cost;
}

double throughput(const ModelFacts& facts, const Candidate& one, const TimeCost& time) {
  return (facts.splits_batches ? 1 : one.data) / time.total();
}

}  // namespace hortator::planning
