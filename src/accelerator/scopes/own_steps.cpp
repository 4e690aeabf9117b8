#include "accelerator/scopes/own_steps.hpp"

#include <hortator/error.hpp>

#include "accelerator/channels/channels.hpp"
#include "accelerator/prepared/prepared.hpp"
#include "accelerator/training/training.hpp"
#include "core/text/text.hpp"
#include "parallel/batch_norm/shared_statistics.hpp"
#include "parallel/experts/divided_experts.hpp"

namespace hortator::accelerator {

void require_own_steps(const Training& training, std::string_view call) {
  if (training.data().size() < training.host().size()) {
    throw UsageError(
        {.what = text::concat(call, " was called with the mesh ", training.channels.mesh().shape().text()),
         .why = "ranks along tensor, context and pipeline train one model together and cannot train their own",
         .hint = text::concat("leave parallel.tensor, parallel.context and parallel.pipeline out, or train without ",
                              call)});
  }
  if (!training.channels.expert_ranks()) return;
  throw UsageError({.what = text::concat(call, " was called with parallel.experts"),
                    .why = "ranks that hold different experts train one model together and cannot train their own",
                    .hint = text::concat("leave parallel.experts out, or train without ", call)});
}

void require_group_steps(const Training& training, const step::ModelCore& model, std::string_view call) {
  const auto& shape = training.channels.mesh().shape();
  if (!training.channels.zero() || shape.ranks() == 1) return;
  const auto refuse_if = [&](bool is_used, const auto&... what) {
    if (!is_used) return;
    throw UsageError({.what = text::concat(call, " was called under ZeRO ", what...),
                      .why = "all ranks would have to take the same steps, and groups of ranks take their own",
                      .hint = "leave it out, or use stage 0; parallel.replicate (--replicate 2) makes groups"});
  };
  refuse_if(shape.size(parallel::Axis::replicate) == 1, "with one group of ranks, which share all shards");
  for (const auto& other : training.prepared.models())
    refuse_if(other.get() != &model && other->sends_gradients(), "beside ", other->name(), ", which all ranks train");
  refuse_if(training.options().ddp.comm_hook == DDPCommunicationHookType::power_sgd, "with ddp.comm_hook = power_sgd");
  refuse_if(parallel::has_synchronized_norms(model.module()), "with SyncBatchNorm layers");
  refuse_if(parallel::has_experts(model.module()), "with mixtures of experts");
}

}  // namespace hortator::accelerator
