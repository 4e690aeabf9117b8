#include "models/config/config_fields.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <hortator/error.hpp>
#include <utility>

#include "core/text/json.hpp"
#include "core/text/text.hpp"
#include "core/whole_file.hpp"
#include "formats/file/file_error.hpp"
#include "models/config/fields_without_effect.hpp"

namespace hortator::models {
namespace {

constexpr std::int64_t max_size = std::int64_t{1} << 31;
constexpr std::int64_t max_dimension = std::int64_t{1} << 28;  // the bytes of a matrix of such sides fit into 64 bits

bool has_no_effect(std::string_view field) {
  return std::ranges::find(fields_without_effect, field) != std::end(fields_without_effect);
}

}  // namespace

ConfigFields::ConfigFields(nlohmann::ordered_json object, std::string file, std::string path)
    : object_(std::move(object)), file_(std::move(file)), path_(std::move(path)) {}

ConfigFields ConfigFields::read(const std::filesystem::path& path) {
  const auto content = core::read_at_most(path, core::max_record_bytes);
  if (!content) {
    throw formats::FileError({.what = text::concat("Cannot read the configuration ", path),
                              .hint = "name a folder with config.json and weights, as transformers saves it"});
  }
  auto object = core::parse_record<nlohmann::ordered_json>(*content);
  if (!object.is_object())
    throw formats::FileError({.what = text::concat(path, " is not a valid JSON object, so it is not a configuration")});
  return {std::move(object), text::concat(path), ""};
}

bool ConfigFields::has(const std::string& name) const { return find(name) != nullptr; }

const nlohmann::ordered_json* ConfigFields::find(const std::string& name) const {
  used_->note(name);
  const auto found = object_.find(name);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

const nlohmann::ordered_json& ConfigFields::get(const std::string& name) const {
  if (const auto* found = find(name)) return *found;
  throw UsageError({.what = text::concat(file_, " has no field ", text::quote(path_ + name)),
                    .why = "the model cannot be made without it"});
}

std::string ConfigFields::shown(const std::string& name) const {
  const auto found = object_.find(name);
  auto value = found == object_.end() ? "nothing" : found->dump(-1, ' ', /*ensure_ascii=*/true);
  constexpr std::size_t longest = 80;
  if (value.size() > longest) value = value.substr(0, longest) + "...";
  return text::concat(text::quote(path_ + name), " is ", value);
}

void ConfigFields::refuse(const std::string& name, std::string_view expected) const {
  throw UsageError({.what = text::concat(file_, ": ", shown(name)), .hint = std::string(expected)});
}

void ConfigFields::require(bool holds, const std::string& name, std::string_view expected) const {
  if (!holds) refuse(name, expected);
}

std::int64_t ConfigFields::integer(const std::string& name) const {
  const auto& value = get(name);
  require(value.is_number_integer(), name, "expected a whole number");
  const bool is_size = value.is_number_unsigned() && value.get<std::uint64_t>() >= 1 &&
                       value.get<std::uint64_t>() < static_cast<std::uint64_t>(max_size);
  require(is_size, name, "expected a whole number from 1 to 2147483647");
  return value.get<std::int64_t>();
}

std::int64_t ConfigFields::integer(const std::string& name, std::int64_t absent) const {
  return has(name) ? integer(name) : absent;
}

std::optional<std::int64_t> ConfigFields::optional_integer(const std::string& name) const {
  return has(name) ? std::optional(integer(name)) : std::nullopt;
}

std::int64_t ConfigFields::dimension(const std::string& name) const {
  const auto value = integer(name);
  require(value <= max_dimension, name, text::concat("expected at most ", max_dimension));
  return dimensions_->insert_or_assign(name, value).first->second;
}

std::int64_t ConfigFields::dimension(const std::string& name, std::int64_t absent) const {
  return has(name) ? dimension(name) : absent;
}

std::vector<std::int64_t> ConfigFields::dimensions(const std::string& name) const {
  auto all = integers(name);
  for (const auto one : all) {
    require(one <= max_dimension, name, text::concat("expected at most ", max_dimension));
    auto& largest = (*dimensions_)[name];
    largest = std::max(largest, one);
  }
  return all;
}

std::string ConfigFields::largest_dimensions() const {
  std::vector<std::pair<std::int64_t, std::string>> all;
  for (const auto& [name, value] : *dimensions_) all.emplace_back(value, shown(name));
  std::ranges::sort(all, std::greater());
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < std::min<std::size_t>(all.size(), 2); ++i) texts.push_back(all[i].second);
  return text::join(texts);
}

std::optional<std::int64_t> ConfigFields::token(const std::string& name) const {
  const auto* value = find(name);
  if (value == nullptr) return {};
  require(value->is_number_integer(), name, "expected a whole number");
  return value->get<std::int64_t>();
}

std::int64_t ConfigFields::layers(const std::string& name) const {
  constexpr std::int64_t most = 4096;
  const auto value = integer(name);
  require(value <= most, name, text::concat("expected at most ", most));
  return value;
}

double ConfigFields::number(const std::string& name) const {
  const auto& value = get(name);
  require(value.is_number() && std::isfinite(value.get<double>()), name, "expected a number");
  return value.get<double>();
}

double ConfigFields::number(const std::string& name, double absent) const { return has(name) ? number(name) : absent; }

double ConfigFields::probability(const std::string& name, double absent) const {
  const auto value = number(name, absent);
  require(value >= 0 && value <= 1, name, "expected a number from 0 to 1");
  return value;
}

bool ConfigFields::flag(const std::string& name, bool absent) const {
  const auto* value = find(name);
  if (value == nullptr) return absent;
  require(value->is_boolean(), name, "expected true or false");
  return value->get<bool>();
}

std::string ConfigFields::text(const std::string& name, const std::string& absent) const {
  const auto* value = find(name);
  if (value == nullptr) return absent;
  require(value->is_string(), name, "expected a string");
  return value->get<std::string>();
}

std::vector<std::int64_t> ConfigFields::integers(const std::string& name) const {
  const auto* value = find(name);
  std::vector<std::int64_t> all;
  if (value == nullptr) return all;
  const auto list = value->is_array() ? *value : nlohmann::ordered_json::array({*value});
  for (const auto& one : list) {
    const bool is_index = one.is_number_unsigned() && one.get<std::uint64_t>() < static_cast<std::uint64_t>(max_size);
    require(is_index, name, "expected whole numbers from 0 to 2147483647");
    all.push_back(one.get<std::int64_t>());
  }
  return all;
}

std::vector<std::string> ConfigFields::texts(const std::string& name) const {
  const auto* value = find(name);
  std::vector<std::string> all;
  if (value == nullptr) return all;
  require(value->is_array(), name, "expected a list of strings");
  for (const auto& one : *value) {
    require(one.is_string(), name, "expected a list of strings");
    all.push_back(one.get<std::string>());
  }
  return all;
}

ConfigFields ConfigFields::object(const std::string& name) const {
  const auto* value = find(name);
  if (value == nullptr) return {nlohmann::ordered_json::object(), file_, path_ + name + "."};
  require(value->is_object(), name, "expected an object");
  return {*value, file_, path_ + name + "."};
}

std::vector<ConfigFields> ConfigFields::objects(const std::string& name) const {
  const auto* value = find(name);
  std::vector<ConfigFields> all;
  if (value == nullptr) return all;
  require(value->is_array(), name, "expected a list of objects");
  for (std::size_t i = 0; i < value->size(); ++i) {
    const auto& one = (*value)[i];
    require(one.is_object(), name, "expected a list of objects");
    all.emplace_back(one, file_, text::concat(path_, name, "[", i, "]."));
  }
  return all;
}

std::vector<std::string> ConfigFields::names() const {
  std::vector<std::string> all;
  for (const auto& [name, value] : object_.items()) all.push_back(name);
  return all;
}

std::pair<std::string, std::int64_t> ConfigFields::token_pair(const std::string& name) const {
  const auto& value = get(name);
  const bool is_pair = value.is_array() && value.size() == 2 && value[0].is_string() && value[1].is_number_unsigned();
  require(is_pair, name, "expected a token and its number");
  return {value[0].get<std::string>(), value[1].get<std::int64_t>()};
}

std::int64_t ConfigFields::num_labels() const {
  if (has("num_labels")) return dimension("num_labels");
  const auto labels = object("id2label");
  return labels.empty() ? 2 : static_cast<std::int64_t>(labels.object_.size());
}

void ConfigFields::skip(const std::string& name) const { used_->note(name); }

void ConfigFields::require_value(const std::string& name, const nlohmann::json& value) const {
  const auto* found = find(name);
  const bool is_equal = found == nullptr || nlohmann::json(*found) == value;
  require(is_equal, name, text::concat("only ", value.dump(), " is supported"));
}

void ConfigFields::require_one_of(const std::string& name, const std::string& value,
                                  const std::vector<std::string>& known) const {
  if (std::find(known.begin(), known.end(), value) != known.end()) return;
  refuse(name, text::concat("only ", text::join(known), " are supported"));
}

void ConfigFields::require_all_used() const {
  std::vector<std::string> unknown;
  for (const auto& [name, value] : object_.items()) {
    const bool matters = !value.is_null() && !used_->contains(name) && !has_no_effect(name);
    if (matters) unknown.push_back(text::concat(text::quote(path_ + name), " (", value.dump(), ")"));
  }
  if (unknown.empty()) return;
  throw UsageError(
      {.what = text::concat(file_, " has fields that this model does not know: ", text::join(unknown)),
       .why = "they may change its results",
       .hint = text::concat("it reads ", text::join(used_->all()), ". Remove the others if they have no effect")});
}

ConfigFields ConfigFields::with(const std::string& name, const nlohmann::json& value) const {
  auto object = object_;
  if (value.is_null()) {
    object.erase(name);
  } else {
    object[name] = value;
  }
  return {std::move(object), file_, path_};
}

}  // namespace hortator::models
