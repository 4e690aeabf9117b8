#include "bench/measurements.hpp"

#include <algorithm>
#include <hortator/error.hpp>

#include "core/text/text.hpp"

namespace hortator::bench {

bool Selection::wants(std::string_view name) const {
  return cases.empty() || std::find(cases.begin(), cases.end(), name) != cases.end();
}

void check_known(const std::string& option, const std::vector<std::string>& values,
                 const std::vector<std::string>& known) {
  for (const auto& value : values) {
    if (std::find(known.begin(), known.end(), value) != known.end()) continue;
    throw UsageError(
        {.what = text::concat(option, ": unknown value ", text::quote(value)), .hint = text::suggestion(value, known)});
  }
}

const std::vector<Measurement>& measurements() {
  static const std::vector<Measurement> table = {
      {"capture", "a training step that a CUDA device repeats without the host against the bare LibTorch loop",
       capture},
      {"checkpoint", "saving and loading against raw writing, reading and copying of the same bytes", checkpoint},
      {"collectives", "tensor collectives against a copy of the same bytes, and against MPI", collectives},
      {"ema", "a training step with a moving average of the weights against the same step without it", ema},
      {"gathers", "a step at ZeRO stage 3 over several nodes: gathers ahead, in 16 bits and in 8, beside none of them",
       gathers},
      {"hooks",
       "a training step with each ddp.comm_hook, PowerSGD among them, against the same step without an average", hooks},
      {"infer", "the samples of a node's ranks inferred as one batch, beside one call with all of them on one rank",
       infer},
      {"loader", "shuffled batches of samples in memory against bare index_select", loader},
      {"loop", "everything that surrounds a step (accumulation, clipping, schedule, bar) against the bare loop", loop},
      {"loss", "linear_cross_entropy, forward and backward, against cross_entropy of linear", loss},
      {"memory-checkpoints", "a training step with a checkpoint in memory every 10 steps against the same step without",
       memory_checkpoints},
      {"paging", "parameters that come from disk while they are used: an operator, a forward pass, reading the file",
       paging},
      {"partner-load", "a checkpoint from the memory of other nodes against sending the same bytes by MPI",
       partner_load},
      {"pipeline", "a step of a model whose layers are on all ranks beside one of the whole model on each rank",
       pipeline},
      {"record", "a step that is recorded for hortator compare-runs beside the same step without a record", record},
      {"reports", "status rows, metrics and the job's comment beside the intervals in which a run makes them", reports},
      {"reproducible", "a step of a reproducible run beside the same step of one that is not, on several meshes",
       reproducible},
      {"step", "a training step of a small model: the prepared loop against the bare LibTorch loop", step},
      {"tensor", "operators on divided tensors beside ordinary ones, and a step that ranks divide beside the whole one",
       tensor},
      {"weights",
       "save_model, load_checkpoint_in_model and from_pretrained against raw writing and reading of the same bytes",
       weights},
      {"zero", "a training step at each ZeRO stage, and what it keeps in memory, beside stage 0", zero},
  };
  return table;
}

}  // namespace hortator::bench
