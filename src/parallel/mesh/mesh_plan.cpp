#include "parallel/mesh/mesh_plan.hpp"

#include <hortator/error.hpp>
#include <utility>

#include "core/text/text.hpp"

namespace hortator::parallel {
namespace {

// 1 is what settings files write for an axis that is not used.
int size_of(const std::optional<int>& asked) { return asked.value_or(1); }
bool is_set(const std::optional<int>& asked) { return size_of(asked) != 1; }

void refuse(Axis axis, const std::optional<int>& asked, const char* why, const char* hint) {
  if (!is_set(asked)) return;
  throw UsageError({.what = text::concat("parallel.", name_of(axis), " is ", *asked), .why = why, .hint = hint});
}

// The ranks of a node that get different batches.
int data_ranks_of_a_node(const ParallelConfig& config, int ranks_of_a_node) {
  if (ranks_of_a_node == 0) {  // a replica on fewer ranks would have the same weight in the mean
    throw UsageError(
        {.what = "zero.shard_group = node, but nodes have different numbers of ranks or ranks are out of order",
         .why = "each group of ranks is a replica, and all replicas must have the same size",
         .hint = "start the same number of ranks on each node, one node after the other (hortator launch does)"});
  }
  const int together = size_of(config.context) * size_of(config.tensor);
  if (ranks_of_a_node % together == 0) return ranks_of_a_node / together;
  throw UsageError(
      {.what = text::concat("zero.shard_group = node, but a node has ", text::count(ranks_of_a_node, "rank")),
       .why = text::concat(text::count(together, "rank"),
                           " along tensor and context compute each batch together, and "
                           "shards within a node need whole groups of them"),
       .hint = "start a multiple of them on each node, or use a number for zero.shard_group"});
}

int shard_size(const ParallelConfig& config, const ZeroConfig& zero, int data_ranks, int ranks_of_a_node) {
  const auto group = !zero.shard_group ? std::nullopt
                     : *zero.shard_group == ZeroConfig::node
                         ? std::optional(data_ranks_of_a_node(config, ranks_of_a_node))
                         : zero.shard_group;
  if (is_set(config.shard) && group && *group != *config.shard) {
    throw UsageError({.what = text::concat("parallel.shard is ", *config.shard, ", but zero.shard_group is ", *group),
                      .why = "both are the number of ranks that share one set of shards",
                      .hint = "leave one of them out"});
  }
  if (is_set(config.shard)) return *config.shard;
  if (group) return *group;
  const int replicas = size_of(config.replicate);
  return data_ranks % replicas == 0 ? data_ranks / replicas : 1;  // if not, the product does not fit
}

void check_experts(const ParallelConfig& config) {
  if (size_of(config.experts) < 1) {
    throw UsageError({.what = text::concat("parallel.experts is ", *config.experts),
                      .why = "it is the number of ranks among which experts are divided",
                      .hint = "use a positive number, or leave it out"});
  }
  if (!is_set(config.experts)) return;
  if (is_set(config.tensor)) {
    throw UsageError(
        {.what = text::concat("parallel.experts is ", *config.experts, ", and parallel.tensor is ", *config.tensor),
         .why = "a model is divided among the ranks of one group only",
         .hint = "leave one of the two out"});
  }
}

void check_pipeline(const ParallelConfig& config, const ZeroConfig& zero) {
  for (const auto& [name, asked] :
       {std::pair("stages_per_rank", config.stages_per_rank), std::pair("micro_batches", config.micro_batches)}) {
    if (size_of(asked) >= 1) continue;
    throw UsageError({.what = text::concat("parallel.", name, " is ", *asked),
                      .why = "it is a number of parts",
                      .hint = "use a positive number, or leave it out"});
  }
  if (is_set(config.stages_per_rank) && config.pipeline_schedule != PipelineSchedule::interleaved) {
    throw UsageError({.what = text::concat("parallel.stages_per_rank is ", *config.stages_per_rank,
                                           ", and parallel.pipeline_schedule is not interleaved"),
                      .why = "ranks have one stage each in other schedules",
                      .hint = "set the schedule to interleaved, or leave stages_per_rank out"});
  }
  if (!is_set(config.pipeline)) return;
  if (is_set(config.experts)) {
    throw UsageError(
        {.what = text::concat("parallel.pipeline is ", *config.pipeline, ", and parallel.experts is ", *config.experts),
         .why = "experts are divided among ranks that have the same layers",
         .hint = "leave one of the two out"});
  }
  if (zero.stage.value_or(0) > 1) {
    throw UsageError(
        {.what = text::concat("parallel.pipeline is ", *config.pipeline, ", and zero.stage is ", *zero.stage),
         .why = "stages 2 and 3 would communicate for each micro-batch what a pipeline adds up on its ranks",
         .hint = "use zero.stage 1, which shards the optimizer's state"});
  }
}

}  // namespace

void check(const ParallelConfig& config, const ZeroConfig& zero) {
  check_experts(config);
  for (const auto& [axis, asked] : {std::pair(Axis::replicate, config.replicate), std::pair(Axis::shard, config.shard),
                                    std::pair(Axis::tensor, config.tensor), std::pair(Axis::context, config.context),
                                    std::pair(Axis::pipeline, config.pipeline)}) {
    if (size_of(asked) >= 1) continue;
    throw UsageError({.what = text::concat("parallel.", name_of(axis), " is ", *asked),
                      .why = "it is the number of ranks along an axis of the mesh",
                      .hint = "use a positive number, or leave it out"});
  }
  check_pipeline(config, zero);
  if (zero.stage.value_or(0) == 0) {
    refuse(Axis::shard, config.shard, "the ranks along shard share ZeRO's shards, and zero.stage is 0",
           "set zero.stage (hortator launch --zero-stage 3), or leave parallel.shard out");
  }
}

MeshShape plan_mesh(const ParallelConfig& config, const ZeroConfig& zero, int ranks, int ranks_of_a_node) {
  MeshShape::Request request = {
      .pipeline = size_of(config.pipeline), .context = size_of(config.context), .tensor = size_of(config.tensor)};
  const int data_ranks = MeshShape(request, ranks).data_size();
  if (zero.stage.value_or(0) > 0) request.shard = shard_size(config, zero, data_ranks, ranks_of_a_node);
  if (is_set(config.replicate)) request.replicate = *config.replicate;
  request.experts = size_of(config.experts);
  return MeshShape(request, ranks);
}

std::string warning_of_nodes(const MeshShape& shape, int ranks_of_a_node) {
  const int together = shape.size(Axis::context) * shape.size(Axis::tensor);
  if (together == 1 || (ranks_of_a_node > 0 && ranks_of_a_node % together == 0)) return "";
  return text::concat("the ", text::count(together, "rank"),
                      " that compute each batch together are not always on one "
                      "node, and every layer communicates between them: start a multiple of them on each node, or use "
                      "fewer along tensor and context");
}

}  // namespace hortator::parallel
