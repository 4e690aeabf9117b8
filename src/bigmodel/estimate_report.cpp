#include <cmath>
#include <iomanip>
#include <nlohmann/json.hpp>
#include <sstream>

#include "bigmodel/estimate.hpp"
#include "core/text/text.hpp"
#include "core/text/units.hpp"

namespace hortator::bigmodel {
namespace {

std::string size_text(Bytes bytes) { return units::bytes(static_cast<std::uint64_t>(std::ceil(bytes))); }

std::string row(const std::string& first, const std::vector<std::string>& others) {
  std::ostringstream line;
  line << "  " << std::left << std::setw(26) << first << std::right;
  for (const auto& other : others) line << std::setw(16) << other;
  line << '\n';
  return std::move(line).str();
}

std::string name_of(const TrainingLayout& layout) {
  auto name = layout.zero_stage == 0 ? std::string("no ZeRO") : text::concat("ZeRO ", layout.zero_stage);
  if (layout.offload_parameters) return name + ", all on the host";
  return layout.offload_optimizer ? name + ", Adam on the host" : name;
}

std::string shown_layers(const Estimate& estimate) {
  constexpr std::size_t max_names = 3;
  auto names = estimate.largest_layers;
  const auto more = names.size() > max_names ? names.size() - max_names : 0;
  names.resize(names.size() - more);
  return text::join(names) + (more > 0 ? text::concat(" and ", more, " more") : "");
}

}  // namespace

std::string table(const Estimate& estimate, const std::string& source) {
  std::ostringstream out;
  out << source << ": " << estimate.parameters << " numbers in " << size_text(estimate.stored)
      << "; the largest layer is " << shown_layers(estimate) << "\n\n";
  out << row("held in", {"largest layer", "total", "to train (Adam)"});
  for (const auto& held : estimate.rows) {
    out << row(std::string(held.type), {size_text(held.largest_layer), size_text(held.total),
                                        held.training ? size_text(held.training->held()) : std::string("-")});
  }
  out << "\ntraining in " << estimate.training_type << " on " << text::count(estimate.ranks, "rank")
      << ", memory of each rank"
      << (estimate.activations > 0 ? " (with about " + size_text(estimate.activations) + " of activations)" : "")
      << ":\n\n"
      << row("", {"device", "host"});
  for (const auto& layout : estimate.layouts)
    out << row(name_of(layout), {size_text(layout.device), size_text(layout.host)});
  return std::move(out).str();
}

std::string to_json(const Estimate& estimate, const std::string& source) {
  using Json = nlohmann::ordered_json;
  Json rows = Json::array(), layouts = Json::array();
  for (const auto& held : estimate.rows) {
    Json line = {{"dtype", held.type}, {"largest_layer", held.largest_layer}, {"total", held.total}};
    if (held.training) {
      line["training"] = {{"model", held.training->model},
                          {"gradients", held.training->gradients},
                          {"optimizer", held.training->optimizer},
                          {"step", held.training->step},
                          {"held", held.training->held()}};
    }
    rows.push_back(std::move(line));
  }
  for (const auto& layout : estimate.layouts) {
    layouts.push_back({{"zero_stage", layout.zero_stage},
                       {"offload_optimizer", layout.offload_optimizer},
                       {"offload_parameters", layout.offload_parameters},
                       {"device", layout.device},
                       {"host", layout.host}});
  }
  const Json all = {{"source", source},
                    {"parameters", estimate.parameters},
                    {"stored", estimate.stored},
                    {"float32", estimate.in_float32},
                    {"largest_layers", estimate.largest_layers},
                    {"rows", rows},
                    {"training_dtype", estimate.training_type},
                    {"ranks", estimate.ranks},
                    {"activations", estimate.activations},
                    {"spreads", layouts}};
  return all.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace hortator::bigmodel
