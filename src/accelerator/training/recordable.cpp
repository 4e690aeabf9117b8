#include "accelerator/training/recordable.hpp"

#include "core/text/text.hpp"

namespace hortator::accelerator {

std::string why_not_recordable(const RecordingFacts& facts) {
  if (facts.kind == nullptr) return "the device is no CUDA device";
  if (!facts.kind->records_steps) return text::concat(facts.kind->title, " devices cannot record work");
  if (facts.ranks > 1) {
    return text::concat("gradients are averaged over ", facts.ranks,
                        " ranks: the host starts each bucket as it fills, and asks NCCL whether it has taken it over");
  }
  if (facts.waits_for_verdicts) {
    return "with fp16 the host looks at each step's gradients before the optimizer steps (with "
           "grad_scaler.late_verdict "
           "it does not; bf16 needs no scaler)";
  }
  if (facts.is_protected)
    return "with protection.on_nonfinite the host looks at each loss and gradient before the step";
  if (facts.is_sharded) return "with ZeRO the host brings parameters in and sends them off";
  if (facts.is_paged)
    return "with offloaded modules (cpu_offload, disk_offload) the host brings parameters in and sends them off";
  if (facts.is_reproducible) return "with reproducible = true the host sums gradients shard by shard";
  if (facts.records_operators)
    return "with record.operators each operator of a step is looked at, and a replayed step calls none";
  if (facts.accumulation_steps > 1) return "with gradient accumulation steps differ: some only add up gradients";
  if (!facts.has_fused_optimizers)
    return "with fused_optimizer = false optimizers read their learning rate on the host";
  return {};
}

}  // namespace hortator::accelerator
