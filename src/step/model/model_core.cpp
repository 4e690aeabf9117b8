#include "step/model/model_core.hpp"

#include <c10/core/GradMode.h>

#include <algorithm>
#include <hortator/error.hpp>

#include "core/text/text.hpp"
#include "core/time.hpp"
#include "interception/weight_operators.hpp"
#include "mpi/agree.hpp"
#include "mpi/collectives.hpp"
#include "parallel/context/attention_interception.hpp"
#include "parallel/data_parallel/replicate.hpp"
#include "parallel/pipeline/stage_pass.hpp"
#include "parallel/pipeline/stage_ranks.hpp"
#include "step/moments/divided_moments.hpp"
#include "step/precision/precision.hpp"
#include "step/recompute/frozen_weights.hpp"

namespace hortator::step {
namespace {

// Experts are equal on the ranks that hold the same ones, all other parameters on all ranks. @collective
void check_equal(std::vector<parallel::NamedParameter> parameters, const std::string& model,
                 const parallel::DataParallel& parallel) {
  if (parallel.holders != nullptr) {
    const auto is_common = [](const auto& one) { return !parallel::is_divided(one.tensor); };
    const auto experts = std::stable_partition(parameters.begin(), parameters.end(), is_common);
    mpi::all_or_none(parallel.host, [&] {  // those of other experts throw as well
      parallel::check_replicas({experts, parameters.end()}, model, parallel.holders->host);
    });
    parameters.erase(experts, parameters.end());
  }
  parallel::check_replicas(parameters, model, parallel.host);
}

}  // namespace

ModelCore::ModelCore(Components components)
    : kept_(components.module.weak_from_this().lock()),
      module_(&components.module),
      name_(std::move(components.name)),
      session_(std::move(components.session)),
      parallel_(components.parallel),
      buffers_(std::move(components.buffers)),
      parameters_(std::move(components.parameters)),
      own_(std::move(components.own)),
      learns_(components.learns),
      staged_(std::move(components.staged)),
      divided_(std::move(components.divided)),
      sharded_(std::move(components.sharded)),
      reducer_(std::move(components.reducer)),
      scatter_(std::move(components.scatter)) {
  if (staged_)
    stages_of_module_ = std::make_unique<parallel::StagesOfModule>(*module_, staged_->map(), *parallel_.stages);
  interception::refresh_weights();
  note_frozen_weights(module_->parameters());
  const auto after = [this] { after_reduction(); };
  scatter_ ? scatter_->set_after_reduction(after) : reducer_->set_after_reduction(after);
  if (!scatter_) return;
  scatter_->set_on_begin([this] { reducer_->join_pass(); });
  reducer_->set_on_begin([this] { scatter_->join_pass(); });
}

bool ModelCore::is_replaced() const {
  const auto present = tensor_set(module_->parameters());
  const auto is_present = [&](const auto& one) { return present.contains(one.tensor.unsafeGetTensorImpl()); };
  return !parameters_.empty() && std::none_of(parameters_.begin(), parameters_.end(), is_present);
}

// Where gradients are sharded, the reducer averages those of parameters that are not.
void ModelCore::finish_gradients() {
  if (scatter_) scatter_->finish();
  reducer_->finish();
}
void ModelCore::interrupt_gradients() {
  if (scatter_) scatter_->interrupt();
  reducer_->interrupt();
}
void ModelCore::drop_interrupted_gradients() {
  if (scatter_) scatter_->drop_interrupted();
  reducer_->drop_interrupted();
}

std::vector<at::Tensor> ModelCore::gradient_holders() const {
  if (!scatter_) return module_->parameters();
  std::vector<at::Tensor> holders;
  for (const auto& group : sharded_->groups()) {
    for (std::size_t i = 0; i < group.parameters->parameters().size(); ++i)
      holders.push_back(group.parameters->slice(i));
  }
  for (const auto& [name, parameter] : parameters_) {
    if (!sharded_->find(parameter)) holders.push_back(parameter);
  }
  return holders;
}

std::vector<parallel::NamedParameter> ModelCore::stepped_parameters() const {
  auto stepped = parameters_;
  std::erase_if(stepped, [this](const auto& one) {
    const auto found = find_sharded(one.tensor);
    return found && !found.flat->is_trained(found.number);
  });
  return stepped;
}

void ModelCore::zero_grad() {
  module_->zero_grad();
  if (scatter_) scatter_->clear();
}

std::vector<at::Tensor> ModelCore::buffers_of(const torch::nn::Module& module) {
  std::vector<at::Tensor> buffers;
  TensorSet seen;
  for (const auto& item : module.named_buffers()) {
    const auto& buffer = item.value();
    if (buffer.defined() && seen.insert(buffer.unsafeGetTensorImpl()).second) buffers.push_back(buffer);
  }
  return buffers;
}

std::vector<at::Tensor> ModelCore::distinct_buffers() const { return buffers_of(*module_); }

void ModelCore::compute_in(Precision precision, const AutocastOptions& options) {
  if (!parameters_.empty()) device_type_ = parameters_.front().tensor.device().type();
  autocast_type_ = autocast_type(precision);
  autocast_options_ = options;
}

GradientTimes ModelCore::times() const {
  auto times = reducer_->times();
  if (scatter_) times += scatter_->times();
  times.buffers += buffer_seconds_;
  return times;
}

bool ModelCore::shares_buffers() const {
  return learns_ && parallel_.communicator.size() > 1 && parallel_.options.broadcast_buffers && !buffers_.empty();
}

// Evaluation, and forward passes whose gradients stay on this rank, do not communicate.
void ModelCore::before_forward() {
  check_alive();
  if (staged_) require_pass();
  interception::refresh_weights();
  if (divided_) divided_->check_untouched();
  if (sharded_) sharded_->check_untouched();
  if (sharded_ && module_->is_training() && at::GradMode::is_enabled()) {
    require_stepped();
    guard_slices();
  }
  parallel::count_forward();
  if (!shares_buffers() || !module_->is_training() || !at::GradMode::is_enabled() || reducer_->is_paused()) return;
  if (buffers_are_stale_) send_buffers();
  buffers_are_stale_ = true;
}

void ModelCore::require_pass() const {
  if (staged_->is_lent() || parallel::current_pass() != nullptr) return;
  throw UsageError(
      {.what = text::concat(name_, " was called outside of a pipeline"),
       .why = "its layers are on several ranks (parallel.pipeline)",
       .hint = "call it in the function that you give to accelerator.pipeline_step() or pipeline_forward()"});
}

// A second pass whose gradients no optimizer will use.
void ModelCore::require_stepped() const {
  if (!scatter_ || scatter_->passes() == 0 || sharded_->is_stepped()) return;
  throw UsageError({.what = text::concat("No prepared optimizer steps the parameters of ", name_, ", which is sharded"),
                    .why = "at ZeRO's stages 2 and 3 gradients are with the shards, and an optimizer that was not "
                           "given to prepare() finds none",
                    .hint = "give its optimizer to prepare(), and call step() of what that returns; set "
                            "requires_grad_(false) before prepare() for a model that is not trained"});
}

// Where parameters have the gradients, a step of the user's own optimizer would do nothing, unseen.
void ModelCore::guard_slices() {
  if (sharded_ && !scatter_) sharded_->guard_slices();
}

// Sends buffers even if this rank had no forward: ranks may have used different parts of the model.
void ModelCore::after_reduction() {
  guard_slices();
  if (shares_buffers()) send_buffers();
  check_replicas_when_due();
}

// Where ranks have run out of batches, rank 0's buffers may be old: the announcement chooses the root.
void ModelCore::send_buffers() {
  const core::Stopwatch sending(buffer_seconds_);
  auto& buffers = buffers_among_ ? *buffers_among_ : buffers_;
  buffers.send_from(
      uneven_ == nullptr ? 0 : uneven_->announce(parallel::UnevenInputs::Collective::broadcast_buffers, index_));
  buffers_are_stale_ = false;
}

void ModelCore::share_buffers(int root) {
  if (!shares_buffers()) return;
  const core::Stopwatch sending(buffer_seconds_);
  buffers_.send_from(root);
  buffers_are_stale_ = false;
}

// Not while inputs are uneven: replicas of ranks without batches lag until the others have finished.
void ModelCore::check_replicas_when_due() {
  ++reductions_;
  const auto every = parallel_.options.check_replicas_every;
  const parallel::PartsOnly each_rank_has;
  if (every > 0 && uneven_ == nullptr && reductions_ % every == 0) check_equal(parameters_, name_, together());
}

const mpi::Communicator& ModelCore::with_same_layers() const {
  return parallel_.stages != nullptr ? parallel_.stages->with_same_layers : parallel_.first_weights_host();
}

void ModelCore::lend_parameters(const parallel::FlatParameters::Choice& choice) {
  if ((divided_ || staged_) && lends_ > 0) return void(++lends_);
  if (divided_) mpi::all_or_none(parallel_.first_weights_host(), [this] { divided_->check_untouched(); });
  if (sharded_) sharded_->lend_together(with_same_layers(), choice);
  lends_ = 1;
  try {
    if (divided_) divided_->lend_together(with_same_layers());
    if (staged_) lend_stages();
    interception::refresh_weights();
  } catch (...) {
    take_back_parameters(/*keep_changes=*/false);
    throw;
  }
}

void ModelCore::lend_stages() {
  const parallel::PartsOnly each_rank_has;
  staged_->lend(parallel_.first_weights_host());
}

void ModelCore::take_back_parameters(bool keep_changes) {
  if (lends_ == 0 || --lends_ > 0) return;
  if (staged_) staged_->take_back();
  if (divided_) divided_->take_back(keep_changes);
  if (sharded_) sharded_->take_back(keep_changes);
  interception::refresh_weights();
}

void ModelCore::rejoin_moments(torch::optim::Optimizer* optimizer) const {
  if (divided_) join_moments(optimizer, *divided_, with_same_layers());
}

void ModelCore::rejoin_parameters() {
  if (const auto divided = std::move(divided_)) divided->restore(with_same_layers());
  stages_of_module_.reset();
  if (const auto staged = std::move(staged_)) {
    const parallel::PartsOnly each_rank_has;
    staged->give_back(parallel_.first_weights_host());
  }
}

void ModelCore::share_parameters(const std::vector<at::Tensor>& parameters, int root) const {
  const at::NoGradGuard no_grad;
  const parallel::PartsOnly each_rank_has;
  for (const auto& parameter : parameters)
    parallel::broadcast_through(parallel_.device, parameter, parallel_.first_weights(), root);
}

// Ranks without batches have reduced the others' gradients, and count them now.
void ModelCore::copy_from(int root) {
  const parallel::PartsOnly each_rank_has;
  parallel::broadcast_parameters(*module_, parallel_.communicator, root);
  share_buffers(root);
  reductions_ = mpi::all_reduce(parallel_.host, reductions_, mpi::Op::max);
}

std::map<const void*, at::Tensor> ModelCore::buffers_of_first_rank() {
  if (parallel_.communicator.size() == 1 || parallel_.options.broadcast_buffers || buffers_.empty()) return {};
  return buffers_.copies_from(0);
}

// Groups may take different numbers of steps, and count their own.
void ModelCore::train_among(const parallel::DataParallel* binding, const parallel::DataParallel* of_ignored) {
  among_ = binding;
  buffers_among_.reset();
  if (binding != nullptr) buffers_among_.emplace(distinct_buffers(), binding->communicator);
  std::swap(reductions_, other_reductions_);
  reducer_->reduce_among(scatter_ ? of_ignored : binding);
  if (scatter_) scatter_->reduce_among(binding);
}

void ModelCore::end_apart(bool equal) {
  apart_ = false;
  if (equal || !may_differ()) equal_at_.reset();
}

void ModelCore::require_equal(std::string_view call) const {
  if (!may_differ()) return;
  throw UsageError({.what = text::concat(call, " was called while each ",
                                         parallel_.sharding == nullptr ? "rank trains" : "group of ranks trains",
                                         " a replica of ", name_, " of its own"),
                    .why = "replicas differ within LocalSGD, also after an exception has ended it, and one file would "
                           "hold parts of several",
                    .hint = "call it after the scope of LocalSGD, or within it directly after a step() that has "
                            "averaged; after an exception, load a checkpoint"});
}

void ModelCore::announce_by(const parallel::UnevenInputs* uneven, int index) {
  uneven_ = uneven;
  index_ = index;
  reducer_->announce_by(uneven, index);
}

void ModelCore::follow(const parallel::UnevenInputs::Announcement& announcement) {
  announcement.what == parallel::UnevenInputs::Collective::broadcast_buffers ? share_buffers(announcement.speaker)
                                                                             : reducer_->follow(announcement.what);
}

}  // namespace hortator::step
