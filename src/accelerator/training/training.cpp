#include "accelerator/training/training.hpp"

#include <ATen/Context.h>
#include <c10/core/CachingDeviceAllocator.h>

#include <algorithm>
#include <hortator/error.hpp>
#include <utility>

#include "accelerator/options/common_options.hpp"
#include "accelerator/protection/refused_gradients.hpp"
#include "accelerator/state/complete_checkpoints.hpp"
#include "accelerator/state/memory_snapshot.hpp"
#include "accelerator/state/staged_state.hpp"
#include "accelerator/training/checked_options.hpp"
#include "accelerator/training/launched.hpp"
#include "accelerator/training/unrecorded.hpp"
#include "core/call_site.hpp"
#include "core/text/text.hpp"
#include "machine/memory/freed_memory.hpp"
#include "mpi/agree.hpp"
#include "mpi/collectives.hpp"
#include "parallel/tensor/joint_work.hpp"
#include "step/capture/step_recording.hpp"

namespace hortator::accelerator {

namespace {

// Some ranks may have no folder, but the main process has one if anything is recorded.
void require_folder(const RecordOptions& record) {
  if (record.step == RecordOptions().step || !record.operators.empty()) return;
  throw UsageError(
      {.what = text::concat("record.step (--record-step) is ", record.step, ", and record.operators is not set"),
       .why = "nothing would be recorded without a folder",
       .hint = "set record.operators, or --record-operators FOLDER"});
}

}  // namespace

// mpirun hands variables to other hosts only when it is asked to: an option may be invalid, or differ, on some ranks.
LaunchedOptions Training::agreed(const AcceleratorOptions& options, const mpi::Communicator& host) {
  LaunchedOptions result;
  NamedValues variables;
  mpi::all_or_none(host, [&] {
    result = accelerator::launched(options);
    result.options = checked(std::move(result.options));
    variables = result.values();
    const auto& record = result.options.record;
    if (host.rank() == 0) require_folder(record);
    if (!record.operators.empty()) observe::clear_record(record, host.rank());
  });
  require_common(result.options, variables, host);
  return result;
}

Training::Training(const AcceleratorOptions& options, runtime::World& world)
    : launched_(agreed(options, world.comm())),
      output(launched_.options, world, [this] { report_status(); }),
      control(launched_.options, prepared, world.comm(), output.background_save()),
      channels(world) {
  if (!device().is_cpu()) {
    at::globalContext().setAllowTF32CuBLAS(launched_.options.tf32);
    at::globalContext().setAllowTF32CuDNN(launched_.options.tf32);
  }
  if (!output.node_levels().empty() || output.save_interval().is_set())
    control.stopping().also_save_when([this] { return due_saves(); });
  connect();
  if (!launched_.options.record.operators.empty()) start_recording();  // some ranks may have no folder
}

DueSaves Training::due_saves() {
  const auto is_due = [&](const auto& level) { return level->is_due(output.updates()); };
  return {.on_nodes = std::ranges::any_of(output.node_levels(), is_due),
          .in_project = output.save_interval().is_due(output.updates())};
}

void Training::start_recording() {
  recording = std::make_unique<observe::StepRecording>(
      options().record,
      observe::StepRecording::Tensors{.parameters = [this] { return prepared.named_parameters(); },
                                      .stepped = [this] { return prepared.stepped(); }},
      host().rank(), host().size());
}

void Training::connect() {
  channels.connect(options().parallel, options().zero);
  control.connect(options(), channels);
  auto* const protection = control.protection();
  if (protection == nullptr || options().protection.on_nonfinite != OnNonfinite::rollback) return;
  protection->rewind_by({.remember =
                             [this] {
                               mpi::all_or_none(host(), [&] {
                                 memory_copy_.reset();  // never two copies in memory
                                 memory_copy_ = std::make_unique<MemorySnapshot>(*this);
                               });
                             },
                         .is_complete = [this] { return memory_copy_ && memory_copy_->has_all(prepared); },
                         .return_to_copy = [this] { memory_copy_->restore(*this); },
                         .forget = [this] { memory_copy_.reset(); }});
}

void Training::settle_seed() {
  if (!seed_) seed_ = mpi::broadcast(host(), at::globalContext().defaultGenerator(at::kCPU).current_seed());
}

void Training::note_backward() {
  announce_completed_saves(*this);
  auto& status = output.status();
  status.count_backward(control.sync_gradients());
  if (status.is_measured() && gradient_bytes_ == 0) gradient_bytes_ = prepared.gradient_bytes();
  report_status();
}

void Training::backward(const at::Tensor& loss, const step::GivenLoss& given, bool retain_graph) {
  if (auto* recording = control.session()->recording()) {
    recording->before_replay([this] { note_backward(); });
    recording->after_replay([this, loss = loss.detach()] { control.loss_check().check(loss); });
  } else {
    control.loss_check().check(loss);
    if (auto* protection = control.protection()) protection->note_loss(given);
    note_backward();
  }
  for (const auto& optimizer : prepared.optimizers()) optimizer->note_backward();
  const auto start = control.scaled(loss);
  if (control.session()->recording() != nullptr) return run_backward(start, retain_graph);
  const RefusedGradients refused(prepared);
  control.reach_check().run([&] { run_backward(start, retain_graph); });
  refused.renew();
}

void Training::run_backward(const at::Tensor& start, bool retain_graph) {
  if (const auto* reproducing = control.reproducing()) reproducing->check_backward_counts();
  if (control.reproducing() || averaging().size() == 1) return start.backward({}, retain_graph);
  std::optional<AnyCallSite> anywhere;
  if (prepared.may_lack_ranks()) anywhere.emplace();  // ranks without batches follow from elsewhere
  try {
    for (const auto& model : prepared.models()) model->drop_interrupted_gradients();
  } catch (...) {
    abandon("an exception has ended its last pass at another place");  // some ranks never send their gradients
    throw;
  }
  try {
    run_pass(start, retain_graph);
  } catch (...) {
    for (const auto& model : prepared.models()) model->interrupt_gradients();
    throw;
  }
}

void Training::run_pass(const at::Tensor& start, bool retain_graph) {
  control.backward_pass().run(start, retain_graph);
  if (auto* stragglers = control.stragglers()) stragglers->times().note_computed();
  try {
    control.agree_on_models();
  } catch (...) {
    abandon("ranks have reached different models");  // gradients are under way that some ranks never send
    throw;
  }
  synchronise_gradients();
}

void Training::synchronise_gradients() {
  if (auto* reproducing = control.reproducing()) {
    const Unrecorded bookkeeping(recording != nullptr);
    if (!control.is_partial() && reproducing->shards().synchronise()) control.loss_weights().settle(data().on_device);
    return;
  }
  for (const auto& model : prepared.models()) model->finish_gradients();
  if (auto* stragglers = control.stragglers()) stragglers->announce();
}

void Training::note_cleared(const std::vector<at::Tensor>& parameters) {
  control.loss_weights().forget(parameters);
  const auto has_gradients = [](const auto& optimizer) { return optimizer->has_gradients(); };
  auto* const protection = control.protection();
  if (protection != nullptr && std::ranges::none_of(prepared.optimizers(), has_gradients)) protection->forget_losses();
}

void Training::drop_gradients() {
  if (auto* const reproducing = control.reproducing()) {
    reproducing->shards().restart();
  } else {
    synchronise_gradients();
  }
  for (const auto& optimizer : prepared.optimizers()) optimizer->drop_gradients();
  control.loss_weights().forget_all();
}

at::Tensor Training::mean_loss(const at::Tensor& loss) {
  if (channels.stages() != nullptr) {
    throw UsageError({.what = "step(closure) was called with parallel.pipeline",
                      .why = "the optimizer decides by the gradients of all parameters, and a rank has those of its "
                             "stages",
                      .hint = "use an optimizer that steps without a closure"});
  }
  if (control.reproducing() || prepared.may_lack_ranks()) {
    throw UsageError(
        {.what = text::concat("step(closure) was called ",
                              control.reproducing() ? "with reproducible = true" : "within join_uneven_inputs"),
         .why = "some ranks may have no loss, so that there is no mean of all",
         .hint = "leave it out for this optimizer, or use one that steps without a closure"});
  }
  auto mean = loss.clone();
  averaging().communicator_of(mean).all_reduce(mean, comm::ReduceOp::mean).wait();
  return mean;
}

bool Training::abandon(std::string_view reason) noexcept {
  const bool common_pass_is_free = control.common_pass().abandon(reason);
  return channels.abandon(reason) && common_pass_is_free;
}

void Training::exchange_together(const std::function<void()>& work) {
  parallel::exchange_together(
      host(), [this] { return abandon("a rank cannot join the parts of parameters"); }, work);
}

// Ranks have left collectives that others were in: nothing can be brought together.
void Training::start_afresh() {
  prepared.clear_gradients();
  forget(ReleaseMode::local);
  empty_cache();
  control.disconnect();
  channels.disconnect();
  connect();
}

void Training::forget(ReleaseMode mode) {
  prepared.retire_models();
  prepared.release_shards(mode);
  control.restart();
  prepared.clear();
  channels.forget_shared_statistics();
}

void Training::forget_protection() {
  if (auto* const protection = control.protection()) protection->forget();
}

void Training::empty_cache() const {
  machine::return_freed_memory();
  if (!device().is_cpu()) c10::getDeviceAllocator(device().type())->emptyCache();
}

void Training::free_memory() {
  control.settle_steps();
  MomentsOfStages of_stages(*this);
  prepared.give_back_optimizers();
  of_stages.collect(*this);
  prepared.clear_gradients();
  forget();
  of_stages.give_back();
  empty_cache();
}

}  // namespace hortator::accelerator
