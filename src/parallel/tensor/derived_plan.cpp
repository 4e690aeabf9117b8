// A plan is found by trial: layers are divided among ranks that exist only on paper, and the module's own forward shows
// where the parts of activations meet operators that would have to gather them.
#include <ATen/Context.h>
#include <c10/core/GradMode.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/embedding.h>

#include <algorithm>
#include <cctype>
#include <hortator/error.hpp>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "core/text/text.hpp"
#include "parallel/tensor/divided_tensor.hpp"
#include "parallel/tensor/interception.hpp"
#include "parallel/tensor/plan.hpp"
#include "parallel/tensor/trial.hpp"

namespace hortator {
namespace parallel {
namespace {

using Parameters = std::vector<std::pair<std::string, at::Tensor>>;

Parameters named_parameters(const torch::nn::Module& module) {
  Parameters all;
  for (const auto& item : module.named_parameters()) all.emplace_back(item.key(), item.value());
  return all;
}

/// The weight of an embedding: a module of LibTorch, or of an exported model, which has the name of its class in
/// Python. Undefined for other modules.
at::Tensor table_of(const torch::nn::Module& module) {
  if (const auto* table = module.as<torch::nn::Embedding>()) return table->weight;
  if (module.name() != "Embedding") return {};
  const auto parameters = module.named_parameters(/*recurse=*/false);
  const auto* weight = parameters.find("weight");
  return weight != nullptr && weight->dim() == 2 ? *weight : at::Tensor();
}

/// What a rule of the plan is for: layers of one kind, or a single layer.
enum class RuleScope { kind, layer };

/// "blocks.*.up" of "blocks.3.up.weight": what layers of one kind have in common. The name of the layer for a single
/// one.
std::string pattern_of(const std::string& parameter, RuleScope scope) {
  const auto layer = parameter.substr(0, parameter.rfind('.'));
  if (scope == RuleScope::layer) return layer;
  std::string pattern;
  for (const auto& part : text::split(layer, '.')) {
    const bool is_number = !part.empty() && std::ranges::all_of(part, [](unsigned char c) { return std::isdigit(c); });
    pattern += (pattern.empty() ? "" : ".") + (is_number ? std::string("*") : part);
  }
  return pattern;
}

/// While it lives, the module's parameters are parts of the trial's first rank.
class TrialParts {
 public:
  TrialParts(const Parameters& parameters, const TensorPlan& plan, const SharedRanks& ranks) {
    std::vector<PlannedParameter> planned;
    for (const auto& [name, tensor] : parameters)
      planned.push_back({.name = name, .sizes = tensor.sizes().vec(), .identity = tensor.unsafeGetTensorImpl()});
    const auto divisions = divisions_by_plan(plan, planned, ranks->size());
    std::set<const void*> done;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const auto& tensor = parameters[i].second;
      if (!divisions[i] || !done.insert(tensor.unsafeGetTensorImpl()).second) continue;
      whole_.emplace_back(tensor, tensor.detach());
      tensor.set_data(ranks->part_of(tensor, *divisions[i]));
      mark_divided(tensor, *divisions[i], ranks);
    }
  }
  ~TrialParts() {
    for (auto& [tensor, whole] : whole_) {
      unmark_divided(tensor);
      tensor.set_data(whole);
    }
  }
  TrialParts(const TrialParts&) = delete;
  TrialParts& operator=(const TrialParts&) = delete;

 private:
  std::vector<std::pair<at::Tensor, at::Tensor>> whole_;
};

/// What a trial has shown.
struct TrialOutcome {
  bool succeeds = false;
  bool result_is_divided = false;
  std::vector<at::Storage> met = {};  ///< whole operands beside the divided one that an operator could not take
};

class PlanSearch {
 public:
  PlanSearch(torch::nn::Module& module, int ranks, const std::function<at::Tensor()>& forward, RuleScope scope)
      : scope_(scope), parameters_(named_parameters(module)), ranks_(TensorRanks::of_trial(ranks)), forward_(forward) {
    for (const auto& one : module.modules(/*include_self=*/true)) {
      const auto table = table_of(*one);
      if (!table.defined()) continue;
      vocabulary_ = std::max(vocabulary_, table.size(0));
      tables_.insert(table.unsafeGetTensorImpl());
    }
    for (const auto& [name, tensor] : parameters_) {
      const auto pattern = pattern_of(name, scope_);
      if (tensor.dim() != 2 || std::ranges::find(patterns_, pattern) != patterns_.end()) continue;
      patterns_.push_back(pattern);
      if (!tables_.contains(tensor.unsafeGetTensorImpl())) layers_.push_back(pattern);
    }
  }

  TensorPlan run() {
    forward_();  // throws what it throws for the module as it is
    for (const auto& pattern : layers_) {
      if (!is_planned(pattern)) try_columns(pattern);
    }
    for (const auto& pattern : patterns_) {
      if (!is_planned(pattern)) try_vocabulary(pattern);
    }
    return plan_;
  }

 private:
  bool is_planned(const std::string& pattern) const {
    return std::ranges::any_of(plan_, [&](const TensorRule& rule) { return rule.pattern == pattern; });
  }

  std::optional<TrialOutcome> outcome_of(const TensorPlan& plan) const {
    try {
      const TrialParts parts(parameters_, plan, ranks_);
      return TrialOutcome{.succeeds = true, .result_is_divided = is_divided(forward_())};
    } catch (const TrialFailure& failure) {
      return TrialOutcome{.met = failure.whole_operands};
    } catch (const std::exception&) {
      return {};  // the plan does not fit, or forward reads values
    }
  }

  void try_columns(const std::string& pattern) {
    for (const bool transposed : {false, true}) {
      for (const int blocks : {1, 3, 2}) {
        if (try_columns(
                {.pattern = pattern, .division = TensorDivision::columns, .blocks = blocks, .transposed = transposed}))
          return;
      }
    }
  }

  /// Columns of a layer, and rows of the layers that read its result. Without readers, a layer that is taken as
  /// transposed would only divide its inputs.
  bool try_columns(const TensorRule& columns) {
    auto plan = plan_;
    plan.push_back(columns);
    for (auto outcome = outcome_of(plan); outcome; outcome = outcome_of(plan)) {
      if (outcome->succeeds && !outcome->result_is_divided) {
        const bool has_readers = plan.size() > plan_.size() + 1;
        if (columns.transposed && !has_readers) return false;
        plan_ = std::move(plan);
        return true;
      }
      const auto reader = outcome->succeeds ? std::nullopt : reader_in(outcome->met, plan);
      if (!reader) return false;
      plan.push_back({.pattern = *reader, .division = TensorDivision::rows, .transposed = columns.transposed});
    }
    return false;
  }

  /// The layer whose whole weight met a divided activation.
  std::optional<std::string> reader_in(const std::vector<at::Storage>& met, const TensorPlan& plan) const {
    for (const auto& [name, tensor] : parameters_) {
      const auto pattern = pattern_of(name, scope_);
      const bool is_met = tensor.dim() == 2 && std::ranges::any_of(met, [&, &tensor = tensor](const auto& storage) {
                            return storage.is_alias_of(tensor.storage());
                          });
      const bool is_new = std::ranges::none_of(plan, [&](const TensorRule& rule) { return rule.pattern == pattern; });
      if (is_met && is_new) return pattern;
    }
    return {};
  }

  /// The embedding with the most rows, and a layer that scores as many tokens: its result may stay divided.
  void try_vocabulary(const std::string& pattern) {
    if (rows_of(pattern) != vocabulary_) return;
    auto plan = plan_;
    plan.push_back({.pattern = pattern, .division = TensorDivision::vocabulary, .or_replicate = true});
    const auto outcome = outcome_of(plan);
    if (outcome && outcome->succeeds) plan_ = std::move(plan);
  }

  std::int64_t rows_of(const std::string& pattern) const {
    const auto found = std::ranges::find_if(parameters_, [&](const auto& one) {
      return one.second.dim() == 2 && pattern_of(one.first, scope_) == pattern;
    });
    return found->second.size(0);
  }

  RuleScope scope_;
  Parameters parameters_;
  std::shared_ptr<TensorRanks> ranks_;
  const std::function<at::Tensor()>& forward_;
  std::vector<std::string> patterns_, layers_;  ///< of matrices, and of those that are no embedding's
  std::set<const void*> tables_;
  std::int64_t vocabulary_ = 0;  ///< rows of the largest embedding
  TensorPlan plan_;
};

/// Forward changes nothing that the training sees: buffers, and the host's random numbers.
class Untouched {
 public:
  explicit Untouched(const torch::nn::Module& module) {
    for (const auto& buffer : module.buffers())
      if (buffer.defined()) buffers_.emplace_back(buffer, buffer.clone());
  }
  ~Untouched() {
    for (auto& [buffer, before] : buffers_) buffer.copy_(before);
    generator_.set_state(state_);
  }
  Untouched(const Untouched&) = delete;
  Untouched& operator=(const Untouched&) = delete;

 private:
  at::Generator generator_ = at::globalContext().defaultGenerator(at::kCPU);
  at::Tensor state_ = generator_.get_state();
  std::vector<std::pair<at::Tensor, at::Tensor>> buffers_;
};

}  // namespace
}  // namespace parallel

TensorPlan derive_tensor_plan(torch::nn::Module& module, int ranks, const std::function<at::Tensor()>& forward) {
  if (ranks == 1) return {};
  parallel::start_division();
  const at::NoGradGuard no_grad;
  const parallel::Untouched untouched(module);
  // layers of a kind may differ in their places, as those of torch::nn::Sequential do: then each is tried on its own
  for (const auto scope : {parallel::RuleScope::kind, parallel::RuleScope::layer}) {
    auto plan = parallel::PlanSearch(module, ranks, forward, scope).run();
    const bool has_pair =
        std::ranges::any_of(plan, [](const auto& rule) { return rule.division == TensorDivision::rows; });
    if (has_pair) return plan;
  }
  throw UsageError({.what = text::concat("No layers were found that ", ranks, " tensor ranks can divide"),
                    .why = "a layer is divided by its outputs if the next ones can read their parts",
                    .hint = "write parallel.plan, and set parallel.strict to learn which operators gather"});
}

std::string describe(const TensorPlan& plan) {
  static const std::map<TensorDivision, std::string_view> names = {{TensorDivision::columns, "columns"},
                                                                   {TensorDivision::rows, "rows"},
                                                                   {TensorDivision::vocabulary, "vocabulary"},
                                                                   {TensorDivision::replicated, "replicated"},
                                                                   {TensorDivision::sequence, "sequence"}};
  std::string text;
  for (const auto& rule : plan) {
    const auto blocks = rule.blocks > 1 ? text::concat(" in ", rule.blocks, " blocks") : "";
    text += text::concat(text.empty() ? "" : "\n", rule.pattern, ": ", names.at(rule.division), blocks,
                         rule.transposed ? ", stored transposed" : "");
  }
  return text;
}

}  // namespace hortator
