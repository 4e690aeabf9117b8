#include "tools/checkpoint/listing.hpp"

#include <algorithm>
#include <iomanip>
#include <iostream>
#include <map>
#include <sstream>
#include <tuple>

#include "checkpoint/format.hpp"
#include "checkpoint/read/reader.hpp"
#include "core/text/json.hpp"
#include "core/text/text.hpp"
#include "core/text/units.hpp"

namespace hortator::tools::checkpoints {
namespace {

namespace fs = std::filesystem;
using checkpoint::Manifest;
using Json = nlohmann::ordered_json;

/// Numbers are compared by value: "checkpoint_2" comes before "checkpoint_10".
bool comes_before(const fs::path& a, const fs::path& b) {
  const auto key = [](const fs::path& path) {
    const auto name = path.string();
    const auto digits = name.find_last_not_of("0123456789") + 1;
    long long number = -1;
    if (digits < name.size()) text::parse_integer(std::string_view(name).substr(digits), number);
    return std::tuple(name.substr(0, digits), number, name);
  };
  return key(a) < key(b);
}

std::string row(const std::string& name, const std::string& step, const std::string& ranks, const std::string& size,
                const std::string& created, const std::string& state) {
  std::ostringstream line;
  line << std::right << std::setw(10) << step << std::setw(7) << ranks << std::setw(12) << size << "  " << std::left
       << std::setw(22) << created << std::setw(12) << state << name << '\n';
  return std::move(line).str();
}

std::string row_of(const fs::path& folder) {
  try {
    const auto manifest = checkpoint::read_manifest(folder);
    std::int64_t bytes = 0;
    for (const auto& file : manifest.files) bytes += file.bytes;
    return row(folder.string(), std::to_string(manifest.updates), std::to_string(manifest.world_size),
               units::bytes(static_cast<std::uint64_t>(bytes)), manifest.created,
               checkpoint::is_whole(folder, manifest) ? "complete" : "damaged");
  } catch (const Error&) {
    const bool has_manifest = fs::exists(folder / checkpoint::manifest_file);
    return row(folder.string(), "-", "-", "-", "-", has_manifest ? "damaged" : "incomplete");
  }
}

/// A tree of entries and folders, by name.
class Tree {
 public:
  void add(const std::string& name, const std::string& facts) {
    const auto slash = name.find('/');
    if (slash == std::string::npos) {
      entries_[name] = facts;
    } else {
      folders_[name.substr(0, slash)].add(name.substr(slash + 1), facts);
    }
  }

  void print(std::ostream& out, int level) const {
    const std::string indent(static_cast<std::size_t>(2 * level), ' ');
    for (const auto& [name, facts] : entries_) out << indent << name << "  " << facts << '\n';
    for (const auto& [name, folder] : folders_) {
      out << indent << name << "/\n";
      folder.print(out, level + 1);
    }
  }

 private:
  std::map<std::string, std::string> entries_;
  std::map<std::string, Tree> folders_;
};

std::string shortened(const StateDict::Value& value) {
  constexpr std::size_t max_characters = 60;
  if (const auto* text_value = std::get_if<std::string>(&value))
    return "= " + text::quote(text_value->substr(0, max_characters));
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return text::concat("= ", *whole);
  std::ostringstream number;
  number << std::setprecision(17) << std::get<double>(value);
  return "= " + number.str();
}

Json totals_of(const fs::path& folder, const Manifest& manifest) {
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

bool is_checkpoint(const fs::path& path) { return fs::is_directory(path) && checkpoint::has_any_file(path); }

std::vector<fs::path> find_all(const fs::path& path) {
  if (is_checkpoint(path)) return {path};
  std::vector<fs::path> found;
  for (const auto& folder : {path, path / "checkpoints"}) {
    std::error_code error;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
      if (is_checkpoint(entry->path())) found.push_back(entry->path());
    }
  }
  std::sort(found.begin(), found.end(), comes_before);
  return found;
}

fs::path newest_at(const fs::path& path) {
  if (!fs::is_directory(path) || is_checkpoint(path)) return path;
  const auto found = find_all(path);
  std::vector<std::pair<std::int64_t, fs::path>> complete;
  for (const auto& folder : found) {
    if (checkpoint::is_whole(folder)) complete.emplace_back(checkpoint::read_manifest(folder).step, folder);
  }
  if (!complete.empty()) return std::ranges::max_element(complete)->second;
  return found.empty() ? path : found.back();
}

std::string table(const std::vector<fs::path>& folders) {
  auto lines = row("folder", "step", "ranks", "size", "written (UTC)", "state");
  for (const auto& folder : folders) lines += row_of(folder);
  return lines;
}

std::string tree(const fs::path& folder, const Manifest& manifest) {
  Tree tree;
  for (const auto& [name, value] : manifest.values.values()) tree.add(name, shortened(value));
  for (const auto& [name, dataset] : manifest.datasets)
    tree.add(name, text::concat(formats::to_string(dataset.spec), "  ",
                                units::bytes(static_cast<std::uint64_t>(dataset.spec.bytes()))));
  std::ostringstream out;
  out << folder.string() << ": number " << manifest.step << ", step " << manifest.updates << ", written "
      << manifest.created << " by " << text::count(manifest.world_size, "rank") << ", "
      << text::count(static_cast<long long>(manifest.datasets.size()), "tensor") << " of "
      << units::bytes(static_cast<std::uint64_t>(manifest.tensor_bytes())) << " in "
      << text::count(static_cast<long long>(manifest.files.size()), "file") << '\n';
  for (const auto& [name, value] : manifest.metadata) out << "  " << name << ": " << value << '\n';
  tree.print(out, 1);
  return std::move(out).str();
}

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

Json json_of_contents(const fs::path& folder, const Manifest& manifest) {
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
