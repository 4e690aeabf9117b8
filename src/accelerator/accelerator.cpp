#include <ATen/ops/full.h>
#include <ATen/ops/stack.h>

#include <hortator/accelerator.hpp>

#include "accelerator/channels/channels.hpp"
#include "accelerator/prepared/prepared.hpp"
#include "accelerator/state/free_memory.hpp"
#include "accelerator/training/memory_by_owner.hpp"
#include "accelerator/training/run_output.hpp"
#include "accelerator/training/step_control.hpp"
#include "accelerator/training/training.hpp"
#include "core/call_site.hpp"
#include "formats/hdf5/library.hpp"
#include "interception/weight_operators.hpp"
#include "mpi/agree.hpp"
#include "parallel/data_parallel/common_pass.hpp"
#include "runtime/banner.hpp"
#include "runtime/compatibility.hpp"
#include "runtime/identity/run_folder.hpp"

namespace hortator {
namespace {

// Checked before anything of the program's is read: parts built with different libraries would misread its data.
StateOptions state_options(const AcceleratorOptions& options, const BuiltWith& built) {
  runtime::check_program(built);
  formats::check_hdf5(formats::built_hdf5_version(), formats::loaded_hdf5());
  return {.cpu = options.cpu, .communicator = options.communicator, .collective_timeout = options.collective_timeout};
}

}  // namespace

Accelerator::Accelerator(const AcceleratorOptions& options, const BuiltWith& built)
    : State(state_options(options, built)), training_(std::make_unique<accelerator::Training>(options, world())) {
  runtime::set_run_folder(training_->output.project().dir());
  if (is_main_process()) training_->launched().report_file();
}

const AcceleratorOptions& Accelerator::options() const { return training_->options(); }

const std::filesystem::path& Accelerator::project_dir() const { return training_->output.project().dir(); }

JoinUnevenInputs Accelerator::join_uneven_inputs(std::vector<ModelBase> models, const JoinOptions& options) {
  return JoinUnevenInputs(*training_, std::move(models), options);
}

GradientTimes Accelerator::gradient_times() const {
  GradientTimes times;
  for (const auto& model : training_->prepared.models()) times += model->times();
  times.waiting += training_->control.common_pass().seconds_waited();
  return times;
}

void Accelerator::log(std::initializer_list<std::pair<std::string, Loggable>> values,
                      std::optional<std::int64_t> step) {
  log(std::vector<std::pair<std::string, Loggable>>(values), step);
}

void Accelerator::log(const std::vector<std::pair<std::string, Loggable>>& values, std::optional<std::int64_t> step) {
  training_->control.session()->refuse_in_recording("log() was called");
  for (const auto& [name, value] : values) training_->output.progress().set(name, value);
  auto all = values;
  if (!device().is_cpu()) {
    for (const auto& [name, value] : accelerator::device_memory_values(device_memory())) all.emplace_back(name, value);
  }
  for (const auto& [name, value] : training_->output.status().energy_values()) all.emplace_back(name, value);
  training_->output.trackers().log(all, step);
  training_->report_status();
}

void Accelerator::log(std::initializer_list<std::pair<std::string, Loggable>> values, Reduce over_ranks,
                      std::optional<std::int64_t> step) {
  const CallSite site(__builtin_return_address(0));
  log(std::vector<std::pair<std::string, Loggable>>(values), over_ranks, step);
}

void Accelerator::log(const std::vector<std::pair<std::string, Loggable>>& values, Reduce over_ranks,
                      std::optional<std::int64_t> step) {
  const CallSite site(__builtin_return_address(0));
  if (values.empty()) return log(values, step);
  const auto options = at::TensorOptions(device()).dtype(at::kDouble);
  std::vector<at::Tensor> numbers;
  for (const auto& [name, value] : values) {
    const auto* const tensor = value.tensor();
    numbers.push_back(tensor != nullptr ? tensor->reshape({}).to(options, /*non_blocking=*/true)
                                        : at::full({}, value.value(), options));
  }
  const auto reduced = reduce(at::stack(numbers), over_ranks);
  auto all = values;
  for (std::size_t i = 0; i < all.size(); ++i) all[i].second = reduced[static_cast<std::int64_t>(i)];
  log(all, step);
}

void Accelerator::init_trackers(const std::string& name, const TrackerConfig& config) {
  mpi::all_or_none(training_->host(), [&] { training_->output.trackers().start(name, config); });
}

Tracker& Accelerator::get_tracker(const std::string& name) { return training_->output.trackers().get(name); }

ProgressSink& Accelerator::progress_sink() { return training_->output.progress(); }

void Accelerator::register_object(const std::string& name, std::function<void(StateWriter&)> save,
                                  std::function<void(const StateReader&)> load) {
  training_->prepared.add_object({.name = name, .save = std::move(save), .load = std::move(load)});
}

DeviceMemory Accelerator::device_memory() const { return accelerator::device_memory(device()); }

void Accelerator::free_memory() {
  const CallSite site(__builtin_return_address(0));
  training_->prepared.require_together("free_memory()");
  training_->control.session()->refuse_in_recording("free_memory() was called");
  training_->control.refuse_lent_weights("free_memory()");
  accelerator::free_memory(*training_);
  interception::refresh_weights();
  wait_for_everyone();
}

void Accelerator::end_training() {
  const CallSite site(__builtin_return_address(0));
  training_->control.settle_steps();
  wait_for_checkpoint();
  training_->output.progress().finish();
  training_->output.trackers().finish();
  training_->publish_end();
  wait_for_everyone();
}

}  // namespace hortator
