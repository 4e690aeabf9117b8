#pragma once

#include <hortator/parallel/axis.hpp>
#include <hortator/parallel/pipeline.hpp>
#include <hortator/parallel/tensor_plan.hpp>
#include <optional>

namespace hortator {

/// How the ranks along `context` attend to the keys and values of a whole sequence.
enum class ContextAttention {
  gather,  ///< each rank gathers them: faster where they fit
  ring,    ///< they travel from rank to rank, so that a rank holds those of three, whatever the number of ranks
};

/// How the ranks of a run are arranged: their numbers along the axes of a mesh, whose product is the number of all
/// ranks. Accelerate's ParallelismConfig. Ranks along `tensor` are neighbours, so that they share a node; then come
/// `context`, `shard`, `replicate` and `pipeline`. Ranks that differ along replicate and shard get different batches;
/// along the other axes they get the same ones, which the loop itself reads: random numbers that a data set draws
/// depend on the batch. 1 counts as not set. What a program does not set is taken from HORTATOR_REPLICATE,
/// HORTATOR_SHARD, HORTATOR_TENSOR, HORTATOR_CONTEXT, HORTATOR_EXPERTS and HORTATOR_PIPELINE, which `hortator launch
/// --tensor 2` and a file's `tensor: 2` set. Must be equal on all ranks.
///
///     hortator::Accelerator accelerator({.parallel = {.tensor = 2}});  // on 8 ranks: replicate 4 x tensor 2
struct ParallelConfig {
  /// Whether `hortator plan` chooses: with the best settings for these ranks of tensor, context, pipeline,
  /// micro_batches and the schedule, zero.stage and recomputed layers, where the program sets none of its own. The main
  /// process rehearses the program before the Accelerator exists, prints the choice and records it in the run folder
  /// (plan.json), from which the same command on as many ranks reads it again. An error where nothing fits. Also
  /// HORTATOR_PARALLEL=auto, which `hortator launch --parallel auto` sets.
  bool automatic = false;
  /// Replicas of the model, or with ZeRO of the set of shards. Default: the ranks that the other axes leave; with ZeRO
  /// 1, unless zero.shard_group is set. (dp_replicate_size)
  std::optional<int> replicate = {};
  /// Ranks that share one set of ZeRO's shards; needs a zero.stage of at least 1. Default: zero.shard_group, or the
  /// ranks that the other axes leave. (dp_shard_size)
  std::optional<int> shard = {};
  /// Ranks that compute each batch together, with the features of the model divided among them. (tp_size)
  std::optional<int> tensor = {};
  /// Ranks that compute each batch together, with its sequences divided among them: see
  /// Accelerator::maybe_context_parallel(). (cp_size, sp_size)
  std::optional<int> context = {};
  /// How they attend to the whole sequence. Default: gather, or HORTATOR_CONTEXT_ATTENTION, which `hortator launch
  /// --context-attention ring` sets. In a ring, attention has no dropout and is not differentiated twice; its results
  /// are the same up to rounding. (cp_comm_strategy)
  std::optional<ContextAttention> context_attention = {};
  /// Ranks among which the experts of each hortator::nn::MoE are divided. It is not an axis of its own: each group of
  /// that many ranks with different batches holds every expert once, and tokens travel to the ranks of their experts
  /// and back. Other parameters are replicated as always. Must divide the number of ranks with different batches, and
  /// the number of experts. Not with `tensor`.
  std::optional<int> experts = {};
  /// Ranks that have consecutive layers of the model, which HasPipelineLayers names: see Accelerator::pipeline_step().
  /// With a zero.stage of 0 or 1, and not with `experts`. (pp_size)
  std::optional<int> pipeline = {};
  /// The order in which they compute micro-batches. Default: 1f1b, or HORTATOR_PIPELINE_SCHEDULE.
  std::optional<PipelineSchedule> pipeline_schedule = {};
  /// Stages that each of them has, with the schedule interleaved. Default: 2 with that schedule, otherwise 1.
  std::optional<int> stages_per_rank = {};
  /// Parts into which pipeline_step() cuts a batch. Default: 4 for each rank along `pipeline`, or as many as the batch
  /// has rows, if these are fewer; with AcceleratorOptions::reproducible, one for each virtual shard.
  /// (num_micro_batches)
  std::optional<int> micro_batches = {};
  /// How prepared models are divided along `tensor`. Default: the plan that the model brings (HasTensorPlan), as the
  /// models of hortator::models do.
  TensorPlan plan = {};
  /// Divides activations along the sequence between the layers that the plan divides, as a last rule
  /// {"*", TensorDivision::sequence} of the plan does (Megatron's sequence parallelism).
  bool sequence = false;
  /// Makes it an error if an operator has no rule for divided tensors, which are otherwise gathered for it and logged.
  bool strict = false;
};

}  // namespace hortator
