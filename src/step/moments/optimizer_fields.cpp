#include "step/moments/optimizer_fields.hpp"

#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/lbfgs.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <hortator/training/named_optimizer.hpp>
#include <tuple>

namespace hortator::step {
namespace {

using namespace torch::optim;

template <typename AdamState>
void visit_adam_state(AdamState& state, FieldVisitor& v) {
  v.field("step", state.step());
  v.field("exp_avg", state.exp_avg());
  v.field("exp_avg_sq", state.exp_avg_sq());
  v.field("max_exp_avg_sq", state.max_exp_avg_sq());
}

template <typename Options>
void visit_adam_options(Options& options, FieldVisitor& v) {
  v.field("lr", options.lr());
  v.field("beta1", std::get<0>(options.betas()));
  v.field("beta2", std::get<1>(options.betas()));
  v.field("eps", options.eps());
  v.field("weight_decay", options.weight_decay());
  v.field("amsgrad", options.amsgrad());
}

void visit(AdamParamState& state, FieldVisitor& v) { visit_adam_state(state, v); }
void visit(AdamWParamState& state, FieldVisitor& v) { visit_adam_state(state, v); }
void visit(SGDParamState& state, FieldVisitor& v) { v.field("momentum_buffer", state.momentum_buffer()); }
void visit(AdagradParamState& state, FieldVisitor& v) {
  v.field("step", state.step());
  v.field("sum", state.sum());
}
void visit(RMSpropParamState& state, FieldVisitor& v) {
  v.field("step", state.step());
  v.field("square_avg", state.square_avg());
  v.field("momentum_buffer", state.momentum_buffer());
  v.field("grad_avg", state.grad_avg());
}

// `al` is not saved: every step writes it before reading.
void visit(LBFGSParamState& state, FieldVisitor& v) {
  v.field("func_evals", state.func_evals());
  v.field("n_iter", state.n_iter());
  v.field("t", state.t());
  v.field("prev_loss", state.prev_loss());
  v.field("d", state.d());
  v.field("H_diag", state.H_diag());
  v.field("prev_flat_grad", state.prev_flat_grad());
  v.field("old_dirs", state.old_dirs());
  v.field("old_stps", state.old_stps());
  v.field("ro", state.ro());
}

void visit(LBFGSOptions& options, FieldVisitor& v) {
  v.field("lr", options.lr());
  v.field("max_iter", options.max_iter());
  v.field("tolerance_grad", options.tolerance_grad());
  v.field("tolerance_change", options.tolerance_change());
  v.field("history_size", options.history_size());
}
// The user's own optimizers have this state, too. The names are those of make_state().
void visit(MomentState& state, FieldVisitor& v) {
  v.field("step", state.step);
  for (auto& [name, number] : state.scalars) v.field(name, number);
  for (auto& [name, moment] : state.moments) v.field(name, moment);
}
void visit(NamedOptions& options, FieldVisitor& v) {
  for (auto& [name, number] : options.numbers()) v.field(name, number);
}
void visit(AdamOptions& options, FieldVisitor& v) { visit_adam_options(options, v); }
void visit(AdamWOptions& options, FieldVisitor& v) { visit_adam_options(options, v); }
void visit(SGDOptions& options, FieldVisitor& v) {
  v.field("lr", options.lr());
  v.field("momentum", options.momentum());
  v.field("dampening", options.dampening());
  v.field("weight_decay", options.weight_decay());
  v.field("nesterov", options.nesterov());
}
void visit(AdagradOptions& options, FieldVisitor& v) {
  v.field("lr", options.lr());
  v.field("lr_decay", options.lr_decay());
  v.field("weight_decay", options.weight_decay());
  v.field("initial_accumulator_value", options.initial_accumulator_value());
  v.field("eps", options.eps());
}
void visit(RMSpropOptions& options, FieldVisitor& v) {
  v.field("lr", options.lr());
  v.field("alpha", options.alpha());
  v.field("eps", options.eps());
  v.field("weight_decay", options.weight_decay());
  v.field("momentum", options.momentum());
  v.field("centered", options.centered());
}

// Visits `record` as the one of Types that it has. Subclasses do not match: a user's may have fields of its own.
template <typename... Types, typename Base>
bool visit_first(Base& record, FieldVisitor& visitor) {
  const auto try_one = [&]<typename T>(T*) {
    if (typeid(record) != typeid(T)) return false;
    visit(static_cast<T&>(record), visitor);
    return true;
  };
  return (try_one(static_cast<Types*>(nullptr)) || ...);
}

template <typename State, typename Options>
bool make_if(const OptimizerOptions& options, std::unique_ptr<OptimizerParamState>& state) {
  if (typeid(options) == typeid(Options)) state = std::make_unique<State>();
  return state != nullptr;
}

bool make_named(const OptimizerOptions& options, std::unique_ptr<OptimizerParamState>& state) {
  if (typeid(options) != typeid(NamedOptions)) return false;
  const auto& named = static_cast<const NamedOptions&>(options);
  auto moments = std::make_unique<MomentState>();
  for (const auto& name : named.moments()) moments->moments[name];
  for (const auto& name : named.scalars()) moments->scalars[name];
  state = std::move(moments);
  return true;
}

/// Replaces each tensor of a state.
class TensorReplacement final : public FieldVisitor {
 public:
  using Replace = std::function<at::Tensor(const at::Tensor&)>;
  explicit TensorReplacement(Replace replace) : replace_(std::move(replace)) {}
  void field(std::string_view, double&) override {}
  void field(std::string_view, std::int64_t&) override {}
  void field(std::string_view, bool&) override {}
  void field(std::string_view, at::Tensor& value) override {
    if (value.defined()) value = replace_(value);
  }
  void field(std::string_view, std::deque<at::Tensor>&) override {}

 private:
  Replace replace_;
};

}  // namespace

bool visit_fields(OptimizerParamState& state, FieldVisitor& visitor) {
  return visit_first<AdamWParamState, AdamParamState, SGDParamState, RMSpropParamState, AdagradParamState,
                     LBFGSParamState, MomentState>(state, visitor);
}

bool visit_fields(OptimizerOptions& options, FieldVisitor& visitor) {
  return visit_first<AdamWOptions, AdamOptions, SGDOptions, RMSpropOptions, AdagradOptions, LBFGSOptions, NamedOptions>(
      options, visitor);
}

void replace_tensors(OptimizerParamState& state, const std::function<at::Tensor(const at::Tensor&)>& replace) {
  TensorReplacement replacement(replace);
  visit_fields(state, replacement);
}

std::unique_ptr<OptimizerParamState> make_state(const OptimizerOptions& options) {
  std::unique_ptr<OptimizerParamState> state;
  make_if<AdamWParamState, AdamWOptions>(options, state) || make_if<AdamParamState, AdamOptions>(options, state) ||
      make_if<SGDParamState, SGDOptions>(options, state) ||
      make_if<RMSpropParamState, RMSpropOptions>(options, state) ||
      make_if<AdagradParamState, AdagradOptions>(options, state) ||
      make_if<LBFGSParamState, LBFGSOptions>(options, state) || make_named(options, state);
  return state;
}

bool has_moments_by_parameter(const OptimizerOptions& options) { return typeid(options) != typeid(LBFGSOptions); }

}  // namespace hortator::step
