// Environment variables and options that only some ranks have.
#include <cstdlib>
#include <functional>

#include "fixtures.hpp"
#include "support/catch.hpp"

using namespace hortator;

namespace {

struct OptionCase {
  std::string name;
  std::function<void(AcceleratorOptions&)> set;
};

const std::vector<OptionCase> option_cases = {
    {"gradient_accumulation_steps", [](auto& options) { options.gradient_accumulation_steps = 3; }},
    {"gradient_accumulation.sync_with_dataloader",
     [](auto& options) { options.gradient_accumulation.sync_with_dataloader = false; }},
    {"gradient_accumulation.sync_each_batch",
     [](auto& options) { options.gradient_accumulation.sync_each_batch = true; }},
    {"schedule_step", [](auto& options) { options.schedule_step = ScheduleStep::per_update; }},
    {"step_scheduler_with_optimizer", [](auto& options) { options.step_scheduler_with_optimizer = false; }},
    {"fused_optimizer", [](auto& options) { options.fused_optimizer = false; }},
    {"grad_scaler.enabled", [](auto& options) { options.grad_scaler.enabled = false; }},
    {"grad_scaler.init_scale", [](auto& options) { options.grad_scaler.init_scale = 8; }},
    {"grad_scaler.growth_factor", [](auto& options) { options.grad_scaler.growth_factor = 4; }},
    {"grad_scaler.backoff_factor", [](auto& options) { options.grad_scaler.backoff_factor = 0.25; }},
    {"grad_scaler.growth_interval", [](auto& options) { options.grad_scaler.growth_interval = 7; }},
    {"autocast.enabled", [](auto& options) { options.autocast.enabled = false; }},
    {"protection.on_nonfinite", [](auto& options) { options.protection.on_nonfinite = OnNonfinite::stop; }},
    {"protection.max_skips_in_a_row", [](auto& options) { options.protection.max_skips_in_a_row = 3; }},
    {"protection.snapshot_every", [](auto& options) { options.protection.snapshot_every = 3; }},
    {"protection.max_rollbacks_in_a_row", [](auto& options) { options.protection.max_rollbacks_in_a_row = 1; }},
    {"stragglers.on_straggler", [](auto& options) { options.stragglers.on_straggler = [](const Straggler&) {}; }},
    {"stragglers.factor", [](auto& options) { options.stragglers.factor = 3; }},
    {"stragglers.patience", [](auto& options) { options.stragglers.patience = 2; }},
    {"data.split_batches", [](auto& options) { options.data.split_batches = true; }},
    {"data.even_batches", [](auto& options) { options.data.even_batches = false; }},
    {"data.dispatch_batches", [](auto& options) { options.data.dispatch_batches = false; }},
    {"ddp.broadcast_buffers", [](auto& options) { options.ddp.broadcast_buffers = false; }},
    {"ddp.bucket_cap_mb", [](auto& options) { options.ddp.bucket_cap_mb = 1; }},
    {"ddp.find_unused_parameters", [](auto& options) { options.ddp.find_unused_parameters = true; }},
    {"ddp.comm_hook", [](auto& options) { options.ddp.comm_hook = DDPCommunicationHookType::bf16; }},
    {"ddp.bucket_hook", [](auto& options) { options.ddp.bucket_hook = [](BucketExchange&) {}; }},
    {"ddp.check_replicas_every", [](auto& options) { options.ddp.check_replicas_every = 9; }},
    {"zero.keep_resident", [](auto& options) { options.zero.keep_resident = {"head"}; }},
    {"parallel.plan",
     [](auto& options) {
       options.parallel.plan = {{"head", TensorDivision::columns}};
     }},
    {"parallel.sequence", [](auto& options) { options.parallel.sequence = true; }},
    {"parallel.strict", [](auto& options) { options.parallel.strict = true; }},
    {"checkpoint.writer", [](auto& options) { options.checkpoint.writer = CheckpointWriter::mpio; }},
    {"checkpoint.nodes_per_file", [](auto& options) { options.checkpoint.nodes_per_file = 1; }},
    {"checkpoint.asynchronous", [](auto& options) { options.checkpoint.asynchronous = true; }},
};

}  // namespace

TEST_CASE("an option that only some ranks have is an error on all ranks that names it") {
  const State state;
  if (state.num_processes() == 1) return;
  for (const auto& [name, set] : option_cases) {
    AcceleratorOptions mine;
    if (state.is_last_process()) set(mine);
    CHECK_THROWS_WITH(Accelerator(mine), ContainsSubstring(name) && ContainsSubstring("differs between ranks"));
  }
  AcceleratorOptions feedback{.ddp = {.comm_hook = DDPCommunicationHookType::bf16}};
  feedback.ddp.error_feedback = state.is_last_process();
  CHECK_THROWS_WITH(Accelerator(feedback), ContainsSubstring("ddp.error_feedback differs between ranks"));
  AcceleratorOptions spikes{.protection = {.on_nonfinite = OnNonfinite::skip}};
  spikes.protection.loss_spike_factor = state.is_last_process() ? 4 : 5;
  CHECK_THROWS_WITH(Accelerator(spikes), ContainsSubstring("protection.loss_spike_factor differs between ranks"));
}

TEST_CASE("an environment variable that only some ranks have is an error on all ranks that names it") {
  const State state;
  if (state.num_processes() == 1) return;
  for (const auto* name : {"HORTATOR_ZERO_STAGE", "HORTATOR_GRADIENT_ACCUMULATION_STEPS"}) {
    if (state.is_last_process()) setenv(name, "2", 1);
    CHECK_THROWS_WITH(Accelerator(), ContainsSubstring(name) && ContainsSubstring("differs between ranks"));
    unsetenv(name);
  }
  CHECK_NOTHROW(Accelerator());
}
