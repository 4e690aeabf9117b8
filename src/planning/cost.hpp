#pragma once

#include <cstdint>
#include <string>

#include "planning/candidate.hpp"
#include "planning/machine.hpp"

/// What a candidate costs. Pure.
namespace hortator::planning {

/// How a quantity shrinks on an axis of n ranks: by a share that is divided among them.
struct Divided {
  double share = 0;  ///< 0: each rank has all of it; 1: each has 1 / n

  double on(int ranks) const { return 1 - share + share / ranks; }
  /// From the quantity on one rank and on `ranks` ranks; the share lies from 0 to 1.
  static Divided fitted(double on_one, double on_several, int ranks);
};

/// What an axis does to a run.
struct AxisEffect {
  Divided parameters, activations, operations;
  double sent_bytes = 0;  ///< by a rank of two in an update, along the axis
  double calls = 0;
};

/// What the planner knows of a program, from rehearsals of a few small runs.
struct ModelFacts {
  double parameters = 0, gradients = 0, moments = 0, buffers = 0, activations = 0;  ///< bytes on one rank
  double layers_in_use = 0;     ///< bytes of whole parameters that a rank of stage 3 holds beside its shard
  double operations = 0;        ///< of an update on one rank
  double element_bytes = 4;     ///< of what gradients travel in
  bool splits_batches = false;  ///< more ranks share the batch of one; otherwise each brings its own
  AxisEffect tensor, context, pipeline;
  double recomputed_activations = 1, recomputed_operations = 1;  ///< factors of recomputation
  bool is_16bit = false;
};

struct MemoryCost {
  double parameters = 0, gradients = 0, moments = 0, buffers = 0, activations = 0;
  double on_host = 0;  ///< offloaded, and not in the total

  double total() const { return parameters + gradients + moments + buffers + activations; }
};

/// Bytes of the rank that needs most.
MemoryCost memory_cost(const ModelFacts& facts, const Candidate& candidate);

/// What a rank computes and sends in an update.
struct Work {
  double operations = 0;
  double tensor_bytes = 0, tensor_calls = 0;
  double context_bytes = 0, context_calls = 0;
  double stage_bytes = 0;                 ///< to neighbours in a pipeline
  double data_bytes = 0, data_calls = 0;  ///< gradients, and parameters of ZeRO
};

/// As the facts predict it.
Work predicted_work(const ModelFacts& facts, const Candidate& candidate);

struct TimeCost {
  double computing = 0;
  double communicating = 0;  ///< not hidden behind computing
  double idle = 0;           ///< in the bubble of a pipeline

  double total() const { return computing + communicating + idle; }
};

/// Seconds of an update. Gradients travel behind the backward pass; what the layers of a batch exchange does not.
TimeCost time_cost(const Work& work, const Candidate& candidate, const Machine& machine, bool is_16bit);

/// The part of a pipeline's time in which a rank waits, if all stages cost the same: (p - 1) / (v m + p - 1),
/// where v is 1, the stages of a rank, or 3 where gradients of weights fill two thirds of the bubble.
double bubble(Schedule schedule, int ranks, int micro_batches);

/// Micro-batches whose activations a rank of the first stage holds at once.
int held_micro_batches(Schedule schedule, int ranks, int micro_batches);

/// The part of what n ranks reduce or gather that each sends in a ring: (n - 1) / n.
double ring_share(int ranks);

/// Samples in a second, relative to those of one rank's batch: what plans are compared by.
double throughput(const ModelFacts& facts, const Candidate& candidate, const TimeCost& time);

}  // namespace hortator::planning
