#include "tools/plan/probes.hpp"

#include <algorithm>
#include <cctype>
#include <hortator/error.hpp>
#include <optional>

#include "core/text/text.hpp"

namespace hortator::tools {
namespace {

using Json = nlohmann::ordered_json;

double number_at(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_number() ? found->get<double>() : 0;
}

class Prober {
 public:
  explicit Prober(const std::vector<std::string>& command) : command_(command) {}

  RehearsedRank rehearse(int ranks, int rank, const std::vector<std::string>& variables) const {
    return rehearse_rank({.ranks = ranks, .ranks_of_a_node = ranks, .command = command_, .variables = variables}, rank);
  }

 private:
  const std::vector<std::string>& command_;
};

// Rehearses two ranks along an axis. Notes the error where the program cannot use it.
std::optional<Json> along(const Prober& prober, const std::string& setting, int rank, Probed& probed) {
  std::string variable = "HORTATOR_" + setting + "=2";
  std::ranges::transform(variable, variable.begin(),
                         [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  const auto found = prober.rehearse(2, rank, {variable});
  if (found.report.is_object() && found.report["axes"][setting].value("ranks", 1) == 2) return found.report;
  probed.why_not[setting] =
      found.report.is_object() ? "the program sets it itself, or its options do" : last_error(found.output);
  return {};
}

planning::AxisEffect effect_of(const Json& one, const Json& two, const std::string& axis) {
  const auto& before = one["memory"];
  const auto& after = two["memory"];
  planning::AxisEffect effect{
      .parameters = planning::Divided::fitted(number_at(before, "parameters"), number_at(after, "parameters"), 2),
      .activations = planning::Divided::fitted(number_at(before, "activations"), number_at(after, "activations"), 2),
      .operations = planning::Divided::fitted(number_at(one, "flops"), number_at(two, "flops"), 2)};
  for (const auto& row : two.value("traffic", Json::array())) {
    if (row.value("axis", "") != axis || row.value("verb", "") == "barrier") continue;
    effect.sent_bytes += number_at(row, "sent");
    effect.calls += number_at(row, "calls");
  }
  return effect;
}

void set_facts(planning::ModelFacts& facts, const Json& one) {
  const auto& memory = one["memory"];
  facts.parameters = number_at(memory, "parameters");
  facts.moments = number_at(memory, "optimizers");
  facts.buffers = number_at(memory, "buffers");
  // At the peak of one rank some gradients may not exist yet.
  facts.gradients = facts.parameters;
  facts.activations =
      std::max(0.0, number_at(memory, "activations") + number_at(memory, "gradients") - facts.gradients);
  facts.operations = number_at(one, "flops");
}

void probe_recomputation(const Prober& prober, const Json& one, Probed& probed) {
  const auto found = prober.rehearse(1, 0, {"HORTATOR_RECOMPUTE_LAYERS=all"});
  if (!found.report.is_object()) {
    probed.possible.recompute = false;
    probed.why_not["recompute"] = last_error(found.output);
    return;
  }
  const auto ratio = [](double now, double before) { return before > 0 ? now / before : 1; };
  probed.facts.recomputed_activations =
      std::min(1.0, ratio(number_at(found.report["memory"], "activations"), number_at(one["memory"], "activations")));
  probed.facts.recomputed_operations = std::max(1.0, ratio(number_at(found.report, "flops"), number_at(one, "flops")));
}

void probe_data(const Prober& prober, const Json& one, Probed& probed) {
  const auto two = prober.rehearse(2, 0, {});
  if (!two.report.is_object()) {
    probed.why_not["data"] = last_error(two.output);
    return;
  }
  probed.facts.splits_batches = number_at(two.report, "flops") < 0.75 * number_at(one, "flops");
  const auto sharded = prober.rehearse(2, 0, {"HORTATOR_ZERO_STAGE=3"});
  const bool shards = sharded.report.is_object() && sharded.report["axes"]["shard"].value("ranks", 1) == 2;
  if (shards) {
    const double in_use = number_at(sharded.report["memory"], "buffers") - number_at(two.report["memory"], "buffers");
    probed.facts.layers_in_use = std::max(0.0, in_use);
    return;
  }
  probed.possible.zero = false;
  probed.why_not["zero"] =
      sharded.report.is_object() ? "the program sets it itself, or its options do" : last_error(sharded.output);
}

}  // namespace

std::string last_error(const std::string& output) {
  const auto lines = text::split(output, '\n');
  const auto is_error = [](const std::string& line) { return line.starts_with("hortator: "); };
  const auto found = std::ranges::find_if(lines, is_error);
  if (found != lines.end()) return *found;
  return lines.empty() ? "" : lines.back();
}

Probed probe(const std::vector<std::string>& command, bool is_16bit) {
  const Prober prober(command);
  const auto alone = prober.rehearse(1, 0, {});
  if (!alone.report.is_object()) {
    throw Error({.what = text::concat("The program fails when one rank is rehearsed:\n", alone.output),
                 .why = "a plan starts from its first two updates",
                 .hint = "give it a batch and data with which it makes two updates"});
  }
  const auto& one = alone.report;
  Probed probed;
  set_facts(probed.facts, one);
  probed.facts.is_16bit = is_16bit;
  probe_data(prober, one, probed);
  if (const auto two = along(prober, "tensor", 0, probed)) probed.facts.tensor = effect_of(one, *two, "tensor");
  if (const auto two = along(prober, "context", 0, probed)) probed.facts.context = effect_of(one, *two, "context");
  if (const auto two = along(prober, "pipeline", 0, probed)) probed.facts.pipeline = effect_of(one, *two, "pipeline");
  probed.possible.tensor = !probed.why_not.contains("tensor");
  probed.possible.context = !probed.why_not.contains("context");
  probed.possible.pipeline = !probed.why_not.contains("pipeline");
  probe_recomputation(prober, one, probed);
  return probed;
}

planning::Work work_in(const Json& report) {
  planning::Work work{.operations = number_at(report, "flops")};
  for (const auto& row : report.value("traffic", Json::array())) {
    const auto axis = row.value("axis", "");
    const double sent = number_at(row, "sent");
    const double calls = number_at(row, "calls");
    if (axis == "tensor") {
      work.tensor_bytes += sent;
      work.tensor_calls += calls;
    } else if (axis == "context") {
      work.context_bytes += sent;
      work.context_calls += calls;
    } else if (axis == "pipeline") {
      work.stage_bytes += sent;
    } else {
      work.data_bytes += sent;
      work.data_calls += calls;
    }
  }
  return work;
}

planning::MemoryCost memory_in(const Json& report) {
  const auto& memory = report["memory"];
  return {.parameters = number_at(memory, "parameters"),
          .gradients = number_at(memory, "gradients"),
          .moments = number_at(memory, "optimizers"),
          .buffers = number_at(memory, "buffers"),
          .activations = number_at(memory, "activations")};
}

}  // namespace hortator::tools
