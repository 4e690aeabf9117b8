#include "observe/status/host_report.hpp"

#include "core/text/json.hpp"

namespace hortator::observe {
namespace {

using HostJson = nlohmann::ordered_json;

// Calls visit(name, member) for each field, in the order of the file.
template <typename AnyReport, typename Visit>
void visit_host_report(AnyReport& report, const Visit& visit) {
  visit("time", report.time);
  visit("run_id", report.run_id);
  visit("host", report.host);
  visit("sign", report.sign);
  visit("text", report.text);
}

}  // namespace

std::string to_row(const HostReport& report) {
  HostJson json;
  visit_host_report(report, [&](const char* name, const auto& member) { json[name] = member; });
  return json.dump(-1, ' ', false, HostJson::error_handler_t::replace) + '\n';
}

std::optional<HostReport> parse_host_report(std::string_view row) {
  const auto json = core::parse_record<HostJson>(row);
  if (!json.is_object()) return {};
  try {
    HostReport report;
    visit_host_report(report, [&](const char* name, auto& member) {
      if (json.contains(name)) json.at(name).get_to(member);
    });
    return report;
  } catch (const HostJson::exception&) {
    return {};
  }
}

}  // namespace hortator::observe
