#include "tools/rehearse/rehearsal_view.hpp"

#include <algorithm>
#include <array>
#include <iomanip>
#include <sstream>
#include <string_view>

#include "core/text/text.hpp"
#include "core/text/units.hpp"

namespace hortator::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<std::string_view, 5> unproven = {
    "numbers: losses and gradients are zeros, so that branches on values go one way only",
    "speed, and waits of ranks for each other",
    "differences between ranks that were not rehearsed: values that other ranks would send are taken to be this rank's",
    "memory outside of tensors: libraries, MPI's buffers, work space within kernels",
    "what comes after the second update: evaluation, checkpoints, later batches of other sizes"};

std::uint64_t bytes_at(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_number() ? found->get<std::uint64_t>() : 0;
}

void add_row(std::ostringstream& out, const std::string& name, const std::string& value) {
  out << "  " << std::left << std::setw(26) << name << value << '\n';
}

std::string operators_text(const Json& memory) {
  constexpr std::size_t shown = 4;
  std::vector<std::string> parts;
  for (const auto& one : memory.value("activations_by_operator", Json::array())) {
    if (parts.size() == shown) break;
    parts.push_back(text::concat(one.value("operator", ""), ' ', units::bytes(bytes_at(one, "bytes"))));
  }
  return parts.empty() ? "" : text::concat(" (", text::join(parts, ", "), ")");
}

void add_memory(std::ostringstream& out, const Json& memory) {
  out << "peak memory of tensors: " << units::bytes(bytes_at(memory, "peak")) << '\n';
  for (const auto* const owner : {"parameters", "gradients", "optimizers", "buffers"})
    add_row(out, owner, units::bytes(bytes_at(memory, owner)));
  add_row(out, "activations", units::bytes(bytes_at(memory, "activations")) + operators_text(memory));
}

void add_traffic(std::ostringstream& out, const Json& report) {
  const auto rows = report.value("traffic", Json::array());
  if (rows.empty()) return;
  out << "this rank sends in one update:\n";
  for (const auto& row : rows) {
    add_row(out, row.value("axis", ""),
            text::concat(units::bytes(bytes_at(row, "sent")), " among ", row.value("ranks", 0), " ranks, ",
                         row.value("calls", 0), " x ", row.value("verb", "")));
  }
}

void add_groups(std::ostringstream& out, const Json& report) {
  const auto groups = report.value("groups", Json::array());
  out << "groups that it is in: " << groups.size() << '\n';
  for (const auto& one : groups) {
    add_row(out, one.value("axis", ""),
            text::concat(text::count(one.value("ranks", 0), "rank"), ", from ", one.value("first", 0), " in steps of ",
                         one.value("stride", 0)));
  }
}

void add_rank(std::ostringstream& out, const RehearsalPlan& plan, const RehearsedRank& one, std::uint64_t memory) {
  out << "rank " << one.rank << " of " << plan.ranks << ", " << plan.ranks_of_a_node << " a node";
  if (!one.report.is_object()) {
    out << (one.code != 0 ? text::concat(": fails with exit code ", one.code)
                          : std::string(": ended before its second update"))
        << "\n"
        << one.output << "\n";
    return;
  }
  out << ": " << one.report.value("mesh", "") << '\n';
  add_memory(out, one.report["memory"]);
  if (is_bad(one, memory)) out << "which does not fit into " << units::bytes(memory) << '\n';
  out << "operations of one update: " << std::setprecision(4) << one.report.value("flops", 0.0) << '\n';
  add_traffic(out, one.report);
  add_groups(out, one.report);
  const auto in_full = one.report.value("computed_in_full", Json::array());
  if (!in_full.empty()) {
    std::vector<std::string> names;
    for (const auto& name : in_full) names.push_back(name.get<std::string>());
    out << "computed in full, because nothing says which shapes they make: " << text::join(names, ", ") << '\n';
  }
}

}  // namespace

bool is_bad(const RehearsedRank& rank, std::uint64_t memory) {
  if (!rank.report.is_object()) return true;
  return memory > 0 && bytes_at(rank.report["memory"], "peak") > memory;
}

std::string rehearsal_text(const RehearsalPlan& plan, const std::vector<RehearsedRank>& ranks, std::uint64_t memory) {
  std::ostringstream out;
  for (const auto& one : ranks) {
    add_rank(out, plan, one, memory);
    out << '\n';
  }
  const auto has_report = [](const RehearsedRank& one) { return one.report.is_object(); };
  if (std::ranges::none_of(ranks, has_report)) return std::move(out).str();
  out << "A rehearsal cannot prove:\n";
  for (const auto& line : unproven) out << "  " << line << '\n';
  return std::move(out).str();
}

std::string rehearsal_json(const RehearsalPlan& plan, const std::vector<RehearsedRank>& ranks, std::uint64_t memory) {
  auto all = Json::array();
  for (const auto& one : ranks) {
    Json row = {{"rank", one.rank}, {"fits", !is_bad(one, memory)}, {"exit_code", one.code}, {"seconds", one.seconds}};
    if (one.report.is_object()) {
      row.update(one.report);
    } else {
      row["error"] = one.output;
    }
    all.push_back(std::move(row));
  }
  const Json whole = {{"ranks", plan.ranks},
                      {"ranks_per_node", plan.ranks_of_a_node},
                      {"command", plan.command},
                      {"rehearsed", all},
                      {"unproven", unproven}};
  return whole.dump(2) + "\n";
}

}  // namespace hortator::tools
