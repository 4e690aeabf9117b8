#include "parallel/tensor/plan.hpp"

#include <algorithm>
#include <hortator/error.hpp>
#include <map>
#include <utility>

#include "core/text/text.hpp"

namespace hortator {

TensorRule TensorRule::from_hugging_face(std::string pattern, std::string_view style) {
  static const std::map<std::string_view, TensorDivision> styles = {
      {"colwise", TensorDivision::columns},
      {"colwise_rep", TensorDivision::columns},
      {"colwise_gather_output", TensorDivision::columns},
      {"local_colwise", TensorDivision::columns},
      {"rowwise", TensorDivision::rows},
      {"rowwise_split_input", TensorDivision::rows},
      {"local_rowwise", TensorDivision::rows},
      {"embedding_rowwise", TensorDivision::vocabulary},
      {"replicated", TensorDivision::replicated},
      {"replicated_with_grad_allreduce", TensorDivision::replicated},
      {"sequence_parallel", TensorDivision::sequence},
  };
  if (const auto found = styles.find(style); found != styles.end())
    return {.pattern = std::move(pattern), .division = found->second};
  std::vector<std::string> known;
  for (const auto& [name, division] : styles) known.emplace_back(name);
  throw UsageError({.what = text::concat("The style ", text::quote(style), " of ", text::quote(pattern),
                                         " in a tensor-parallel plan is not supported"),
                    .hint = text::concat("known are ", text::join(known))});
}

namespace parallel {
namespace {

bool matches_all(std::string_view pattern, std::string_view name) {
  if (pattern.empty()) return name.empty();
  if (pattern.front() != '*')
    return !name.empty() && name.front() == pattern.front() && matches_all(pattern.substr(1), name.substr(1));
  for (std::size_t taken = 0; taken <= name.size(); ++taken) {
    if (matches_all(pattern.substr(1), name.substr(taken))) return true;
    if (taken < name.size() && name[taken] == '.') return false;
  }
  return false;
}

/// "layers.0.mlp" of "layers.0.mlp.weight"
std::string_view layer_of(std::string_view parameter) {
  const auto dot = parameter.rfind('.');
  return dot == std::string_view::npos ? std::string_view() : parameter.substr(0, dot);
}

/// The factors of a layer's adapter: "up.lora_A.default.weight" reads the inputs of "up", lora_B makes its outputs.
struct AdapterFactor {
  std::string_view layer = {};
  bool reads_inputs = false;
};

std::optional<AdapterFactor> adapter_factor(std::string_view name) {
  for (const std::string_view factor : {".lora_A.", ".lora_B."}) {
    if (const auto at = name.rfind(factor); at != std::string_view::npos)
      return AdapterFactor{.layer = name.substr(0, at), .reads_inputs = factor == ".lora_A."};
  }
  return {};
}

bool fits(const TensorRule& rule, const PlannedParameter& parameter) {
  if (const auto factor = adapter_factor(parameter.name); factor && matches(rule.pattern, factor->layer)) return true;
  return matches(rule.pattern, parameter.name) || matches(rule.pattern, layer_of(parameter.name));
}

/// A factor is never stored transposed, and is divided where the layer's own weight is; a vocabulary's is replicated.
std::optional<Division> division_of_factor(const TensorRule& rule, const AdapterFactor& factor,
                                           const PlannedParameter& parameter) {
  const bool by_inputs = rule.division == TensorDivision::rows;
  const bool is_divided = by_inputs ? factor.reads_inputs : rule.division == TensorDivision::columns;
  if (!is_divided || (!by_inputs && factor.reads_inputs) || parameter.sizes.empty()) return {};
  return Division{.dim = by_inputs ? 1 : 0, .blocks = rule.blocks};
}

std::optional<Division> division_by(const TensorRule& rule, const PlannedParameter& parameter) {
  if (rule.division == TensorDivision::replicated || rule.division == TensorDivision::sequence) return {};
  if (const auto factor = adapter_factor(parameter.name)) return division_of_factor(rule, *factor, parameter);
  const auto dims = parameter.sizes.size();
  if (dims == 0 || dims > 2) {
    throw UsageError({.what = text::concat("The tensor-parallel plan divides ", text::quote(parameter.name),
                                           ", which has ", dims, " dimensions"),
                      .why = "only matrices and their biases can be divided",
                      .hint = text::concat("replicate it: change the rule ", text::quote(rule.pattern))});
  }
  const bool by_rows = rule.division == TensorDivision::rows;
  if (dims == 1) return by_rows ? std::nullopt : std::optional(Division{.dim = 0, .blocks = rule.blocks});
  return Division{.dim = by_rows != rule.transposed ? 1 : 0, .blocks = rule.blocks};
}

bool divides_by(const TensorRule& rule, const PlannedParameter& parameter, const Division& division, int ranks) {
  return divides(parameter.sizes,
                 {.dim = division.dim, .blocks = division.blocks * rule.unit, .padding = division.padding}, ranks);
}

bool divides_sequences(const TensorPlan& plan) {
  return std::ranges::any_of(plan, [](const auto& rule) { return rule.division == TensorDivision::sequence; });
}

/// Whether products with the parameter may be sums over the ranks.
bool gives_sums(const TensorRule& rule, const PlannedParameter& parameter) {
  const bool is_of_sums = rule.division == TensorDivision::rows || rule.division == TensorDivision::vocabulary;
  return is_of_sums && parameter.sizes.size() == 2;
}

/// A vocabulary of any size is padded.
Division with_padding(const TensorRule& rule, const PlannedParameter& parameter, const Division& division, int ranks) {
  if (rule.division != TensorDivision::vocabulary || rule.blocks * rule.unit > 1) return division;
  return padded(division.dim, parameter.sizes[static_cast<std::size_t>(division.dim)], ranks).value_or(division);
}

void require_equal_parts(const TensorRule& rule, const PlannedParameter& parameter, const Division& division,
                         int ranks) {
  if (divides_by(rule, parameter, division, ranks)) return;
  const auto in_blocks = text::concat(division.blocks > 1 ? text::concat(" in ", division.blocks, " blocks") : "",
                                      rule.unit > 1 ? text::concat(" in heads of ", rule.unit) : "");
  throw UsageError({.what = text::concat(text::quote(parameter.name), " of [", text::join(parameter.sizes),
                                         "] cannot be divided along dimension ", division.dim, in_blocks, " among ",
                                         ranks, " tensor ranks"),
                    .why = "each rank must get an equal part",
                    .hint = "change parallel.tensor, pad the layer, or replicate it in the plan"});
}

/// Names of layers as patterns have them: "layers.*.up" for "layers.0.up.weight", each once.
std::vector<std::string> kinds_of_layers(const std::vector<PlannedParameter>& parameters) {
  std::vector<std::string> kinds;
  for (const auto& parameter : parameters) {
    auto parts = text::split(layer_of(parameter.name), '.');
    for (auto& part : parts)
      if (!part.empty() && part.find_first_not_of("0123456789") == std::string::npos) part = "*";
    auto kind = text::join(parts, ".");
    if (std::ranges::find(kinds, kind) == kinds.end()) kinds.push_back(std::move(kind));
  }
  return kinds;
}

void require_use(const TensorPlan& plan, const std::vector<PlannedParameter>& parameters) {
  std::vector<std::string> unused;
  for (const auto& rule : plan) {
    if (std::ranges::none_of(parameters, [&](const auto& one) { return fits(rule, one); }))
      unused.push_back(text::quote(rule.pattern));
  }
  if (unused.empty()) return;
  const bool is_one = unused.size() == 1;
  throw UsageError(
      {.what = text::concat(is_one ? "The pattern " : "The patterns ", text::join(unused),
                            " of the tensor-parallel plan ", is_one ? "fits" : "fit", " no parameter of the model"),
       .why = "layers would be replicated without notice",
       .hint = text::concat("the model has the layers ", text::join(kinds_of_layers(parameters)))});
}

}  // namespace

bool matches(std::string_view pattern, std::string_view name) {
  if (pattern.empty() || name.empty()) return false;
  while (true) {
    if (matches_all(pattern, name)) return true;
    const auto dot = name.find('.');
    if (dot == std::string_view::npos) return false;
    name.remove_prefix(dot + 1);
  }
}

std::vector<std::optional<Division>> divisions_by_plan(const TensorPlan& plan,
                                                       const std::vector<PlannedParameter>& parameters, int ranks) {
  require_use(plan, parameters);
  const bool to_sequences = divides_sequences(plan);
  std::vector<std::optional<Division>> divisions;
  std::map<const void*, std::size_t> known;
  for (const auto& parameter : parameters) {
    const auto rule = std::ranges::find_if(plan, [&](const auto& one) { return fits(one, parameter); });
    auto division = rule == plan.end() ? std::nullopt : division_by(*rule, parameter);
    if (division) division = with_padding(*rule, parameter, *division, ranks);
    if (division && rule->or_replicate && !divides_by(*rule, parameter, *division, ranks)) division.reset();
    if (division) require_equal_parts(*rule, parameter, *division, ranks);
    if (division) division->to_sequence = to_sequences && gives_sums(*rule, parameter);
    const auto [first, is_first] = known.emplace(parameter.identity, divisions.size());
    if (!is_first && divisions[first->second] != division) {
      throw UsageError(
          {.what = text::concat("The tensor-parallel plan divides ", text::quote(parameters[first->second].name),
                                " and ", text::quote(parameter.name), " differently"),
           .why = "they are one parameter with two names",
           .hint = "give both names rules that divide the same dimension"});
    }
    divisions.push_back(division);
  }
  return divisions;
}

}  // namespace parallel
}  // namespace hortator
