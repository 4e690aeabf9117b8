#include "accelerator/training/training.hpp"

#include <ATen/Context.h>
#include <c10/core/CachingDeviceAllocator.h>

#include <algorithm>
#include <exception>
#include <hortator/error.hpp>
#include <utility>

#include "accelerator/channels/channels.hpp"
#include "accelerator/options/common_options.hpp"
#include "accelerator/options/planned_settings.hpp"
#include "accelerator/prepared/memory_snapshot.hpp"
#include "accelerator/prepared/prepared.hpp"
#include "accelerator/prepared/refused_gradients.hpp"
#include "accelerator/protection/straggler_report.hpp"
#include "accelerator/training/checked_options.hpp"
#include "accelerator/training/complete_checkpoints.hpp"
#include "accelerator/training/launched.hpp"
#include "accelerator/training/reproducing.hpp"
#include "accelerator/training/run_output.hpp"
#include "accelerator/training/run_status.hpp"
#include "accelerator/training/step_control.hpp"
#include "accelerator/training/unrecorded.hpp"
#include "core/call_site.hpp"
#include "core/log.hpp"
#include "core/text/text.hpp"
#include "core/whole_file.hpp"
#include "machine/memory/freed_memory.hpp"
#include "mpi/agree.hpp"
#include "mpi/collectives.hpp"
#include "mpi/rehearsed_world.hpp"
#include "observe/operators/step_recording.hpp"
#include "parallel/data_parallel/common_pass.hpp"
#include "parallel/tensor/joint_work.hpp"
#include "step/capture/step_recording.hpp"
#include "step/gradients/protection.hpp"

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

// mpirun hands variables to other hosts only when it is asked to: an option may be invalid, or differ, on some ranks.
LaunchedOptions agreed_on(const AcceleratorOptions& options, const core::Variables& set,
                          const mpi::Communicator& host) {
  LaunchedOptions result;
  NamedValues variables;
  mpi::all_or_none(host, [&] {
    result = accelerator::launched(options, set);
    result.options = checked(std::move(result.options));
    variables = result.values();
    const auto& record = result.options.record;
    if (host.rank() == 0) require_folder(record);
    if (!record.operators.empty()) observe::clear_record(record, host.rank());
  });
  require_common(result.options, variables, host);
  return result;
}

void record_plan(const LaunchedOptions& launched, const std::filesystem::path& folder) {
  if (launched.plan.empty() || runtime::current_run().is_foreign_folder) return;
  const auto file = folder / plan_file;
  if (!core::write_whole(file, file.string() + ".new", launched.plan))
    log::warn("The plan could not be written to ", file.string());
}

}  // namespace

LaunchedOptions Training::agreed(const AcceleratorOptions& options, const runtime::World& world) {
  const auto variables = core::process_variables();
  auto result = agreed_on(options, variables, world.comm());
  if (!result.options.parallel.automatic || mpi::rehearsed_world()) return result;
  auto plan = plan_for(result.options, world);
  result = agreed_on(options, with_settings(variables, settings_in_plan(plan)), world.comm());
  result.plan = std::move(plan);
  return result;
}

// Destroyed from the last to the first, so that a background save, which may take long, is waited for when the
// communicators are gone. Training's destructor first forgets what was prepared and what runs over the communicators.
struct Training::Parts {
  Parts(const AcceleratorOptions& options, runtime::World& world, const std::function<void()>& report)
      : output(options, world, report),
        control(options, prepared, world.comm(), output.background_save()),
        channels(world) {}

  Prepared prepared;
  RunOutput output;
  StepControl control;
  Channels channels;
  std::unique_ptr<const MemorySnapshot> memory_copy;  ///< null unless updates are rolled back
};

Training::Training(const AcceleratorOptions& options, runtime::World& world)
    : launched_(agreed(options, world)),
      parts_(std::make_unique<Parts>(launched_.options, world, [this] { report_status(); })),
      prepared(parts_->prepared),
      output(parts_->output),
      control(parts_->control),
      channels(parts_->channels) {
  if (!device().is_cpu()) {
    at::globalContext().setAllowTF32CuBLAS(launched_.options.tf32);
    at::globalContext().setAllowTF32CuDNN(launched_.options.tf32);
  }
  if (!output.node_levels().empty() || output.save_interval().is_set())
    control.stopping().also_save_when([this] { return due_saves(); });
  connect();
  if (world.topology().rank == 0) record_plan(launched_, output.project().dir());
  if (!launched_.options.record.operators.empty()) start_recording();  // some ranks may have no folder
}

// The end of a run that fails is published by the report of its failure.
Training::~Training() {
  try {
    if (std::uncaught_exceptions() == 0) publish_end();
  } catch (const std::exception& error) {
    log::warn("The end of the run could not be written to its status: ", error.what());
  }
  try {
    forget();
  } catch (const std::exception& error) {  // a rank that has a part of the parameters has ended
    log::warn("Sharded parameters could not be given back and have no values: ", error.what());
    prepared.clear();  // models must not outlive the communicators
  }
  control.disconnect();  // neither must what runs over them
}

const mpi::Communicator& Training::host() const { return channels.host(); }

const parallel::RankGroup& Training::data() const { return channels.mesh().data(); }

const parallel::RankGroup& Training::averaging() const { return channels.mesh().averaging(); }

c10::Device Training::device() const { return channels.device(); }

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
  protection->rewind_by(
      {.remember =
           [this] {
             mpi::all_or_none(host(), [&] {
               parts_->memory_copy.reset();  // never two copies in memory
               parts_->memory_copy = std::make_unique<MemorySnapshot>(prepared);
             });
           },
       .is_complete = [this] { return parts_->memory_copy && parts_->memory_copy->has_all(prepared); },
       .return_to_copy = [this] { parts_->memory_copy->restore(prepared, host()); },
       .forget = [this] { parts_->memory_copy.reset(); }});
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

void Training::backward(const at::Tensor& loss, const step::GivenLoss& given, bool retain_graph, bool may_reach_none) {
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
  if (may_reach_none) {
    run_backward(start, retain_graph);
  } else {
    control.reach_check().run([&] { run_backward(start, retain_graph); });
  }
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
  const bool passes_are_free = control.abandon_passes(reason);
  return channels.abandon(reason) && passes_are_free;
}

void Training::exchange_together(const std::function<void()>& work) {
  parallel::exchange_together(
      host(), [this] { return abandon("a rank cannot join the parts of parameters"); }, work);
}

// Ranks have left collectives that others were in: nothing can be brought together.
void Training::start_afresh() {
  prepared.clear_gradients();
  prepared.retire_models();
  prepared.release_shards(Prepared::ReleaseMode::local);
  forget_objects();
  empty_cache();
  control.disconnect();
  channels.disconnect();
  connect();
}

void Training::forget() {
  prepared.retire_models();
  prepared.release_shards(Prepared::ReleaseMode::collective);
  forget_objects();
}

void Training::forget_objects() {
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

}  // namespace hortator::accelerator
