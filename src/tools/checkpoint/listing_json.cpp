#include <iostream>

#include "checkpoint/format.hpp"
#include "checkpoint/read/reader.hpp"
#include "core/text/json.hpp"
#include "tools/checkpoint/listing.hpp"

namespace hortator::tools::checkpoints {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

Json totals_of(const fs::path& folder, const checkpoint::Manifest& manifest) {
  std::int64_t bytes = 0;
  for (const auto& file : manifest.files) bytes += file.bytes;
  return {
      {"folder", folder.string()},         {"state", checkpoint::is_whole(folder, manifest) ? "complete" : "damaged"},
      {"number", manifest.step},           {"step", manifest.updates},
      {"world_size", manifest.world_size}, {"bytes", bytes},
      {"created", manifest.created}};
}

Json json_of_value(const StateDict::Value& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return *whole;
  if (const auto* number = std::get_if<double>(&value)) return core::json_of(*number);
  return {};
}

}  // namespace

Json json_of_table(const std::vector<fs::path>& folders) {
  auto rows = Json::array();
  for (const auto& folder : folders) {
    try {
      rows.push_back(totals_of(folder, checkpoint::read_manifest(folder)));
    } catch (const Error&) {
      const bool has_manifest = fs::exists(folder / checkpoint::manifest_file);
      rows.push_back({{"folder", folder.string()}, {"state", has_manifest ? "damaged" : "incomplete"}});
    }
  }
  return rows;
}

Json json_of_contents(const fs::path& folder, const checkpoint::Manifest& manifest) {
  auto contents = totals_of(folder, manifest);
  contents["metadata"] = manifest.metadata;
  contents["values"] = Json::object();
  for (const auto& [name, value] : manifest.values.values()) contents["values"][name] = json_of_value(value);
  contents["tensors"] = Json::array();
  for (const auto& [name, dataset] : manifest.datasets)
    contents["tensors"].push_back(
        {{"name", name}, {"spec", formats::to_string(dataset.spec)}, {"bytes", dataset.spec.bytes()}});
  return contents;
}

void print_json(const std::string& name, Json value) {
  const Json json = {{"schema_version", 1}, {name, std::move(value)}};
  std::cout << json.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
}

}  // namespace hortator::tools::checkpoints
