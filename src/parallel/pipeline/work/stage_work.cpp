#include "parallel/pipeline/work/stage_work.hpp"

#include <ATen/ops/ones_like.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <chrono>
#include <hortator/error.hpp>
#include <utility>

#include "core/text/text.hpp"
#include "parallel/pipeline/plain/plain_pass.hpp"

namespace hortator::parallel {
namespace {

using Kind = StageAction::Kind;

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Thrown where a message of a failed stage arrives.
struct OtherHasFailed {};

[[noreturn]] void throw_not_left(int stage) {
  throw UsageError(
      {.what =
           text::concat("The function of a pipeline came to its end in stage ", stage, ", which is not the last one"),
       .why = "the model's forward ends each stage by PipelineLayers::leave(), and the function calls it once",
       .hint = "call the model in the function, and let its forward run its layers by PipelineLayers"});
}

/// Runs backward from a stage's results, those that have a gradient.
void run_backward(const StageTensors& results, const StageTensors& gradients) {
  torch::autograd::variable_list roots, starts;
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (!results[i].requires_grad() || !gradients.at(i).defined()) continue;
    roots.push_back(results[i]);
    starts.push_back(gradients[i]);
  }
  if (!roots.empty()) torch::autograd::backward(roots, starts);
}

StageTensors gradients_of(const StageTensors& inputs) {
  StageTensors gradients;
  for (const auto& input : inputs) gradients.push_back(input.defined() ? input.grad() : at::Tensor());
  return gradients;
}

}  // namespace

void StageWork::run(const std::vector<StageAction>& plan) {
  const auto start = seconds_now();
  for (auto left = plan; !left.empty();) {
    const auto action = take_next(left);
    begun_ = seconds_now();
    attempt(action);
    times_.push_back({.action = action, .begin = begun_ - start, .end = seconds_now() - start});
  }
  if (stages_ != nullptr) stages_->links.finish();
}

StageAction StageWork::take_next(std::vector<StageAction>& left) {
  auto next = left.begin();
  if (would_wait(*next)) {
    const auto weights = std::ranges::find(left, Kind::weights, &StageAction::kind);
    if (weights != left.end() && has_halves(*weights)) next = weights;
  }
  const auto action = *next;
  left.erase(next);
  return action;
}

bool StageWork::would_wait(const StageAction& action) {
  if (!work_.is_alone || stages_ == nullptr || has_failed_ || action.kind == Kind::weights) return false;
  if (action.kind == Kind::forward) return !is_first(action.stage) && !stages_->links.has_activations(action.stage);
  return !is_last(action.stage) && !stages_->links.has_gradients(action.stage + 1);
}

bool StageWork::has_halves(const StageAction& weights) const {
  const auto found = passes_.find({weights.stage, weights.micro_batch});
  return found != passes_.end() && found->second.halves.has_value();
}

void StageWork::attempt(const StageAction& action) {
  const bool is_forward = action.kind == Kind::forward;
  const bool moves = action.kind != Kind::weights;
  Debts owed{.receives = moves && (is_forward ? !is_first(action.stage) : !is_last(action.stage)),
             .sends = moves && (is_forward ? !is_last(action.stage) : !is_first(action.stage))};
  try {
    if (!has_failed_) compute(action, owed);
  } catch (const OtherHasFailed&) {
    has_failed_ = true;
  } catch (...) {
    has_failed_ = true;
    error_ = std::current_exception();
    if (work_.on_failure) work_.on_failure();
  }
  if (has_failed_) pay(action, owed);
}

void StageWork::compute(const StageAction& action, Debts& owed) {
  if (work_.begin) work_.begin(action);
  switch (action.kind) {
    case Kind::forward:
      return forward(action, owed);
    case Kind::weights:
      return add_weights(action);
    default:
      return backward(action, owed);
  }
}

void StageWork::forward(const StageAction& action, Debts& owed) {
  auto& kept = passes_[{action.stage, action.micro_batch}];
  StagePass::Stage stage{.of_model = {}, .is_first = is_first(action.stage), .is_last = is_last(action.stage)};
  if (stages_ != nullptr) {
    stage.layers = map_->of_stages[static_cast<std::size_t>(action.stage)];
    stage.of_model = map_->layers;
  }
  StagePass::Border border{.receive = [&] { return kept.inputs = receive(action, owed); },
                           .send =
                               [&](const StageTensors& results) {
                                 kept.results = results;
                                 if (work_.whole) std::ranges::transform(results, kept.results.begin(), work_.whole);
                                 send(action, kept.results, owed);
                               }};
  if (work_.seed) border.seed = [&](std::int64_t position) { work_.seed(action.micro_batch, position); };
  StagePass pass(stage, border);
  const PassScope here(pass);
  try {
    std::optional<PlainPass> plain;
    if (work_.is_plain) plain.emplace(work_.route, action.stage, std::move(border));
    kept.loss = work_.forward(action.micro_batch);
    if (!is_last(action.stage)) throw_not_left(action.stage);
  } catch (const StageEnd&) {
  }
  if (work_.end_forward) {
    work_.end_forward(action.stage, action.micro_batch, is_last(action.stage) ? StageTensors{kept.loss} : kept.results);
  }
  if (!at::GradMode::is_enabled()) passes_.erase({action.stage, action.micro_batch});
}

void StageWork::backward(const StageAction& action, Debts& owed) {
  const auto found = passes_.find({action.stage, action.micro_batch});
  auto pass = std::exchange(found->second, {});
  if (is_last(action.stage)) pass.results = {pass.loss};
  const auto gradients = is_last(action.stage) ? StageTensors{at::ones_like(pass.loss)} : receive(action, owed);
  StageTensors of_inputs;
  bool is_whole = true;
  if (action.kind == Kind::inputs) {
    auto& halves = found->second.halves.emplace(pass.results, gradients, pass.inputs);
    of_inputs = halves.input_gradients();
    is_whole = halves.is_whole();
  } else {
    passes_.erase(found);
    run_backward(pass.results, gradients);
    of_inputs = gradients_of(pass.inputs);
  }
  pass = {};
  if (!is_first(action.stage)) send(action, of_inputs, owed);
  if (is_whole && work_.end_backward) work_.end_backward(action.stage, action.micro_batch);
}

void StageWork::add_weights(const StageAction& action) {
  auto pass = passes_.extract({action.stage, action.micro_batch});
  auto& halves = *pass.mapped().halves;
  halves.add_other_gradients();
  if (!halves.is_whole() && work_.end_backward) work_.end_backward(action.stage, action.micro_batch);
}

StageTensors StageWork::receive(const StageAction& action, Debts& owed) {
  auto& links = stages_->links;
  auto tensors = action.kind == Kind::forward ? links.receive_activations(action.stage)
                                              : links.receive_gradients(action.stage + 1);
  owed.receives = false;
  begun_ = seconds_now();
  if (!tensors) throw OtherHasFailed();
  return *std::move(tensors);
}

void StageWork::send(const StageAction& action, const StageTensors& tensors, Debts& owed) {
  auto& links = stages_->links;
  action.kind == Kind::forward ? links.send_activations(action.stage + 1, tensors)
                               : links.send_gradients(action.stage, tensors);
  owed.sends = false;
}

void StageWork::pay(const StageAction& action, Debts owed) {
  passes_.clear();
  if (stages_ == nullptr) return;
  auto& links = stages_->links;
  if (owed.receives)
    action.kind == Kind::forward ? links.receive_activations(action.stage) : links.receive_gradients(action.stage + 1);
  if (owed.sends)
    action.kind == Kind::forward ? links.send_activations(action.stage + 1, {})
                                 : links.send_gradients(action.stage, {});
}

}  // namespace hortator::parallel
