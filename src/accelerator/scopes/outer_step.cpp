#include "accelerator/scopes/outer_step.hpp"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>
#include <c10/util/accumulate.h>

#include <cmath>
#include <hortator/error.hpp>
#include <utility>

#include "accelerator/channels/channels.hpp"
#include "accelerator/state/sharded_state.hpp"
#include "accelerator/state/snapshot.hpp"
#include "accelerator/training/training.hpp"
#include "core/text/text.hpp"

namespace hortator::accelerator {
namespace {

void check(const OuterOptimizerOptions& options) {
  const auto refuse = [](const char* option, auto value, const char* why, const char* hint) {
    throw UsageError(
        {.what = text::concat("OuterOptimizerOptions::", option, " is ", value), .why = why, .hint = hint});
  };
  const auto rate = options.learning_rate.value_or(1);
  if (!(rate > 0 && std::isfinite(rate)))
    refuse("learning_rate", rate, "the mean of the ranks' differences is multiplied by it", "use 0.7, or leave it out");
  if (!(options.momentum >= 0 && options.momentum < 1))
    refuse("momentum", options.momentum, "it is the part of the last step that the next one begins with", "use 0.9");
  if (!(options.keep >= 0 && options.keep <= 1))
    refuse("keep", options.keep, "it is the part of what was not sent that stays", "use 0.95");
  if (options.name.empty() || options.name.find('/') != std::string::npos)
    refuse("name", text::quote(options.name), "it names the optimizer in checkpoints", "use a word without a slash");
}

constexpr auto whole_weights = "whole weights";

void require_type(const std::string& name, const at::Tensor& parameter) {
  const auto type = parameter.scalar_type();
  if (type == at::kFloat || type == at::kBFloat16 || type == at::kHalf) return;
  throw UsageError(
      {.what = text::concat("OuterOptimizer got a model whose parameter ", text::quote(name), " is of type ", type),
       .why = "differences are computed in fp32",
       .hint = "use LocalSGD without an outer optimizer, which averages weights in their own type"});
}

}  // namespace

OuterStep::OuterStep(Training& training, std::shared_ptr<step::ModelCore> model, OuterOptimizerOptions options)
    : training_(training), model_(std::move(model)), options_(std::move(options)) {
  check(options_);
  for (const auto& [name, parameter] : model_->stepped_parameters()) {
    if (!at::isFloatingType(parameter.scalar_type()) && !at::isComplexType(parameter.scalar_type())) continue;
    require_type(name, parameter);
    const auto mine = model_->stepped(parameter);
    weights_.push_back({.name = name, .parameter = parameter, .begin = elements_, .sizes = mine.sizes().vec()});
    elements_ += mine.numel();
  }
  const auto& others = training_.channels.along(parallel::Axis::replicate);
  if (others.size() == 1) return;
  exchange_.emplace(others.on_device, others.host.node(), options_.wire);
}

at::Tensor OuterStep::part(const at::Tensor& row, const Weight& weight) {
  return row.narrow(0, weight.begin, c10::multiply_integers(weight.sizes)).view(weight.sizes);
}

void OuterStep::begin() {
  if (!exchange_) return;
  const at::NoGradGuard no_grad;
  if (!begun_.defined()) {
    begun_ = at::empty({exchange_->padded(elements_)}, at::TensorOptions(training_.device()).dtype(at::kFloat));
    begun_.narrow(0, elements_, begun_.numel() - elements_).zero_();
  }
  for (const auto& weight : weights_) part(begun_, weight).copy_(stepped(weight));
}

void OuterStep::take() {
  const at::NoGradGuard no_grad;
  auto step = begun_.clone();
  for (const auto& weight : weights_) part(step, weight).sub_(stepped(weight));
  exchange_->average(step, unsent_, options_.keep);
  if (!is_sparse() && options_.momentum > 0) {
    if (!momentum_.defined()) momentum_ = at::zeros_like(begun_);
    momentum_.mul_(options_.momentum).add_(step);
    step.add_(momentum_, options_.momentum);
  }
  begun_.sub_(step, rate());
  for (const auto& weight : weights_) stepped(weight).copy_(part(begun_, weight));
  ++steps_;
}

void OuterStep::save(SnapshotDraft& draft) const {
  draft.snapshot.common.put(path_of("steps"), steps_);
  for (const auto& weight : weights_) {
    if (momentum_.defined())
      put_like(draft, path_of("momentum/" + weight.name), training_, weight.parameter, part(momentum_, weight));
  }
  if (!is_sparse()) return;
  draft.snapshot.common.put(path_of("layout"), layout());
  if (unsent_.defined()) draft.snapshot.own.put(path_of("unsent"), unsent_.cpu());
}

/// What the rows of numbers that were not sent hold.
std::string OuterStep::layout() const {
  const auto& zero = training_.channels.zero();
  if (zero == nullptr) return whole_weights;
  return text::concat("slices of ZeRO stage ", zero->sharding().stage, " over ",
                      text::count(training_.channels.along(parallel::Axis::shard).size(), "rank"), " in ",
                      text::count(training_.channels.along(parallel::Axis::replicate).size(), "group"));
}

std::vector<std::string> OuterStep::misfits(const checkpoint::Reader& reader) const {
  if (!reader.values().contains(path_of("steps")))
    return {text::concat("it holds no outer optimizer ", text::quote(options_.name))};
  std::vector<std::string> lines;
  const bool is_named = reader.values().contains(path_of("layout"));
  const auto saved = is_named ? reader.values().get<std::string>(path_of("layout")) : whole_weights;
  if (is_sparse() && saved != layout())
    lines.push_back(text::concat("what was not sent is of ", saved, ", and here of ", layout()));
  for (const auto& weight : weights_) {
    const auto found = reader.tensors().find(path_of("momentum/" + weight.name));
    if (found != reader.tensors().end() && found->second.shape != weight.parameter.sizes().vec())
      lines.push_back(text::concat("it holds no momentum of ", weight.name, " in its shape"));
  }
  return lines;
}

void OuterStep::load(const checkpoint::Reader& reader) {
  const at::NoGradGuard no_grad;
  momentum_.reset();
  unsent_.reset();
  steps_ = 0;
  if (!misfits(reader).empty())
    throw Error(
        {.what = text::concat("outer optimizer ", text::quote(options_.name), ", which begins without momentum")});
  steps_ = reader.values().get<std::int64_t>(path_of("steps"));
  if (!exchange_) return;
  begin();
  for (const auto& weight : weights_) {
    const auto path = path_of("momentum/" + weight.name);
    if (!reader.tensors().contains(path)) continue;
    if (!momentum_.defined()) momentum_ = at::zeros_like(begun_);
    part(momentum_, weight).copy_(read_like(reader, path, training_, weight.parameter));
  }
  load_unsent(reader);
}

// On other ranks, each that sends gets an equal part of what all had not sent.
void OuterStep::load_unsent(const checkpoint::Reader& reader) {
  if (!is_sparse() || !exchange_->sends()) return;
  const int rank = training_.host().rank(), world = training_.host().size();
  const bool is_same = has_same_ranks(training_, reader, world);
  auto sum = at::zeros_like(begun_);
  for (int saved = 0; saved < reader.world_size(); ++saved) {
    if (is_same && saved != rank) continue;
    const auto own = reader.own(saved, "outer/" + options_.name);
    if (own.contains("unsent")) sum.add_(own.get<at::Tensor>("unsent").to(sum.device()));
  }
  unsent_ = is_same ? sum : sum.div_(exchange_->senders());
}

std::function<void()> OuterStep::remember() {
  const auto copy = [](const at::Tensor& row) { return row.defined() ? row.clone() : row; };
  return [this, copy, begun = copy(begun_), momentum = copy(momentum_), unsent = copy(unsent_), steps = steps_] {
    begun_ = copy(begun);
    momentum_ = copy(momentum);
    unsent_ = copy(unsent);
    steps_ = steps;
  };
}

}  // namespace hortator::accelerator
