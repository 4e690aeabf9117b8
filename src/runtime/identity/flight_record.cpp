#include "runtime/identity/flight_record.hpp"

#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "core/text/json.hpp"

namespace hortator::runtime {
namespace {

constexpr int microseconds = 6;  // decimal places

std::optional<FlightRecord> parse_flight_row(std::string_view row) {
  const auto json = core::parse_record(row);
  if (!json.is_object()) return {};
  try {
    return FlightRecord{.rank = json.at("rank"),
                        .name = json.at("collective"),
                        .bytes = json.at("bytes"),
                        .group = json.at("group"),
                        .size = json.at("ranks"),
                        .sequence = json.at("sequence"),
                        .begun = json.at("begun"),
                        .ended = json.at("ended").is_null() ? 0.0 : json.at("ended").get<double>()};
  } catch (const nlohmann::json::exception&) {
    return {};
  }
}

}  // namespace

FlightRow flight_row(int rank, const activity::FlightEntry& entry) {
  const auto& operation = entry.operation;
  std::array<char, activity::Name::chunks * 8> name{};
  std::size_t length = 0;
  for (const auto chunk : operation.name.packed()) {
    for (int byte = 0; byte < 8; ++byte) {
      const char c = static_cast<char>(chunk >> (8 * byte));
      if (c != '\0') name[length++] = c;
    }
  }
  FlightRow row;
  row.add(R"({"rank":)").add(static_cast<std::uint64_t>(rank));
  row.add(R"(,"collective":")").add(std::string_view(name.data(), length));
  row.add(R"(","bytes":)").add(operation.bytes);
  row.add(R"(,"group":")").add(operation.communicator, 16);
  row.add(R"(","ranks":)").add(static_cast<std::uint64_t>(operation.size));
  row.add(R"(,"sequence":)").add(operation.sequence);
  row.add(R"(,"begun":)").add_seconds(entry.begun, microseconds);
  row.add(R"(,"ended":)");
  if (entry.ended > 0) {
    row.add_seconds(entry.ended, microseconds);
  } else {
    row.add("null");
  }
  row.add("}");
  return row;
}

std::vector<FlightRecord> parse_flight(std::string_view content) {
  std::vector<FlightRecord> records;
  for (std::size_t at = 0; at + flight_row_bytes <= content.size(); at += flight_row_bytes) {
    if (auto record = parse_flight_row(content.substr(at, flight_row_bytes))) records.push_back(std::move(*record));
  }
  return records;
}

}  // namespace hortator::runtime
