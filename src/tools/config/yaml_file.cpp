#include "tools/config/yaml_file.hpp"

#include <yaml-cpp/yaml.h>

#include <hortator/error.hpp>

#include "core/text/foreign_text.hpp"
#include "core/text/text.hpp"
#include "core/whole_file.hpp"

namespace hortator::tools {
namespace {

[[noreturn]] void refuse(const std::filesystem::path& file, const YAML::Mark& mark, const std::string& what) {
  throw UsageError({.what = text::concat(file.string(), ':', mark.line + 1, ": ", what),
                    .hint = "a settings file has lines \"key: value\""});
}

/// The content of a file, with the nesting of brackets limited: yaml-cpp recurses for each level (and limits
/// indentation itself).
std::string read_settings(const std::filesystem::path& file) {
  constexpr std::uint64_t max_bytes = std::uint64_t{1} << 20;
  auto content = core::read_at_most(file, max_bytes);
  if (!content) {
    throw UsageError({.what = text::quote(file.string()) + " cannot be read",
                      .why = text::concat("it is missing, or larger than ", max_bytes, " bytes"),
                      .hint = "check the name"});
  }
  if (!core::is_shallow(*content)) {
    throw UsageError({.what = text::concat(text::quote(file.string()), " has brackets nested deeper than ",
                                           core::max_record_levels, " levels"),
                      .hint = "a settings file has lines \"key: value\""});
  }
  return std::move(*content);
}

std::string scalar(const YAML::Node& node, const std::filesystem::path& file) {
  if (node.IsNull()) return "";
  if (!node.IsScalar()) refuse(file, node.Mark(), "nested values are not supported");
  return node.Scalar();
}

launching::ConfigEntry read_entry(const std::string& key, int line, const YAML::Node& value,
                                  const std::filesystem::path& file) {
  launching::ConfigEntry entry{.key = key, .line = line};
  const auto add = [&](std::string word, const YAML::Mark& mark) {
    entry.values.push_back(std::move(word));
    entry.lines.push_back(mark.line + 1);
  };
  if (value.IsSequence()) {
    entry.shape = launching::EntryShape::list;
    for (const auto& one : value) add(scalar(one, file), one.Mark());
  } else if (value.IsMap()) {
    entry.shape = launching::EntryShape::map;
    for (const auto& one : value) add(scalar(one.first, file) + "=" + scalar(one.second, file), one.first.Mark());
  } else if (!value.IsNull()) {
    entry.values = {scalar(value, file)};
  }
  return entry;
}

}  // namespace

std::vector<launching::ConfigEntry> read_yaml(const std::filesystem::path& file) {
  std::vector<launching::ConfigEntry> entries;
  try {
    const auto root = YAML::Load(read_settings(file));
    if (root.IsNull()) return entries;
    if (!root.IsMap()) refuse(file, root.Mark(), "expected keys");
    for (const auto& pair : root) {
      entries.push_back(read_entry(scalar(pair.first, file), pair.first.Mark().line + 1, pair.second, file));
    }
  } catch (const YAML::Exception& error) {
    refuse(file, error.mark, error.msg);
  }
  return entries;
}

}  // namespace hortator::tools
