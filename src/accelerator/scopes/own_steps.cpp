#include "accelerator/scopes/own_steps.hpp"

#include <hortator/error.hpp>

#include "accelerator/channels/channels.hpp"
#include "accelerator/training/training.hpp"
#include "core/text/text.hpp"

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

void require_whole_weights(const Training& training, std::string_view call) {
  if (!training.channels.zero()) return;
  throw UsageError({.what = text::concat(call, " was called under ZeRO"),
                    .why = "parameters are sharded over the ranks, so that no rank can train its own",
                    .hint = "use stage 0"});
}

}  // namespace hortator::accelerator
