#include "adapters/adapter_config.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>

#include "core/text/text.hpp"
#include "formats/file/file_error.hpp"

namespace hortator::adapters {
namespace {

using Json = nlohmann::ordered_json;

/// Fields that say nothing about what the adapter computes, or only how its first values were made.
constexpr std::array fields_without_effect = {"auto_mapping",      "base_model_name_or_path",
                                              "corda_config",      "eva_config",
                                              "inference_mode",    "loftq_config",
                                              "lora_ga_config",    "megatron_core",
                                              "peft_type",         "peft_version",
                                              "qalora_group_size", "revision",
                                              "runtime_config",    "task_type",
                                              "fan_in_fan_out",    "velora_config"};

/// Ways to make first values that leave the base model as it is.
constexpr std::array harmless_inits = {"gaussian", "eva", "orthogonal"};

class ConfigReader {
 public:
  ConfigReader(Json json, std::filesystem::path file) : json_(std::move(json)), file_(std::move(file)) {}

  [[noreturn]] void refuse(const std::string& field, const std::string& expected) const {
    throw formats::FileError({.what = text::concat(text::quote(field), " in ", file_, ": expected ", expected, ", got ",
                                                   json_.contains(field) ? json_.at(field).dump() : "nothing")});
  }
  bool has(const std::string& field) const { return json_.contains(field) && !json_.at(field).is_null(); }
  const Json& at(const std::string& field) const { return json_.at(field); }

  bool flag(const std::string& field) const {
    if (!has(field)) return false;
    if (!at(field).is_boolean()) refuse(field, "true or false");
    return at(field).get<bool>();
  }
  std::int64_t integer(const std::string& field, std::int64_t otherwise) const {
    if (!has(field)) return otherwise;
    if (!at(field).is_number_integer()) refuse(field, "a whole number");
    return at(field).get<std::int64_t>();
  }
  double number(const std::string& field, double otherwise) const {
    if (!has(field)) return otherwise;
    if (!at(field).is_number()) refuse(field, "a number");
    return at(field).get<double>();
  }
  std::string text(const std::string& field, std::string otherwise = {}) const {
    if (!has(field)) return otherwise;
    if (!at(field).is_string()) refuse(field, "a text");
    return at(field).get<std::string>();
  }
  /// A list of texts, or one text as a list of one.
  std::vector<std::string> texts(const std::string& field) const {
    if (!has(field)) return {};
    if (at(field).is_string()) return {at(field).get<std::string>()};
    const bool is_list =
        at(field).is_array() && std::ranges::all_of(at(field), [](const Json& one) { return one.is_string(); });
    if (!is_list) refuse(field, "a list of texts");
    return at(field).get<std::vector<std::string>>();
  }
  std::vector<std::int64_t> integers(const std::string& field) const {
    if (!has(field)) return {};
    if (at(field).is_number_integer()) return {at(field).get<std::int64_t>()};
    const bool is_list =
        at(field).is_array() && std::ranges::all_of(at(field), [](const Json& one) { return one.is_number_integer(); });
    if (!is_list) refuse(field, "a list of whole numbers");
    return at(field).get<std::vector<std::int64_t>>();
  }
  template <typename Value>
  std::vector<std::pair<std::string, Value>> by_name(const std::string& field) const {
    std::vector<std::pair<std::string, Value>> all;
    if (!has(field)) return all;
    if (!at(field).is_object()) refuse(field, "an object of numbers");
    for (const auto& [name, value] : at(field).items()) {
      if (!value.is_number()) refuse(field, "an object of numbers");
      all.emplace_back(name, value.template get<Value>());
    }
    return all;
  }
  const Json& json() const { return json_; }

 private:
  Json json_;
  std::filesystem::path file_;
};

bool is_nothing(const Json& value) {
  return value.is_null() || value == false || ((value.is_array() || value.is_object()) && value.empty());
}

LoraBias bias_of(const ConfigReader& reader) {
  const auto bias = reader.text("bias", "none");
  if (bias == "none") return LoraBias::none;
  if (bias == "all") return LoraBias::all;
  if (bias == "lora_only") return LoraBias::lora_only;
  reader.refuse("bias", "'none', 'all' or 'lora_only'");
}

/// First values do not matter once trained ones are read; some ways to make them change the base model as well.
LoraInit init_of(const ConfigReader& reader) {
  const auto* field = "init_lora_weights";
  if (!reader.has(field) || reader.at(field).is_boolean()) return LoraInit::uniform;
  const auto init = reader.text(field);
  if (init == "gaussian") return LoraInit::gaussian;
  if (std::ranges::find(harmless_inits, init) != harmless_inits.end()) return LoraInit::uniform;
  reader.refuse(field,
                "true, false, 'gaussian', 'eva' or 'orthogonal' (others change the weights of the base model; "
                "peft's save_pretrained(path_initial_model_for_weight_conversion=...) converts such an adapter)");
}

void require_known_fields(const ConfigReader& reader, const std::vector<std::string>& known) {
  for (const auto& [field, value] : reader.json().items()) {
    const bool is_known = std::ranges::find(known, field) != known.end() ||
                          std::ranges::find(fields_without_effect, field) != fields_without_effect.end();
    if (field == "target_parameters" && !is_nothing(value))
      reader.refuse(field, "null: adapters of the experts of a mixture are not supported, only those of layers");
    if (!is_known && !is_nothing(value)) reader.refuse(field, "null or false: the field is not supported");
  }
}

const char* name_of(LoraBias bias) {
  return bias == LoraBias::none ? "none" : bias == LoraBias::all ? "all" : "lora_only";
}

template <typename Values>
Json list_or_null(const Values& values) {
  return values.empty() ? Json() : Json(values);
}

template <typename Value>
Json object_of(const std::vector<std::pair<std::string, Value>>& values) {
  auto object = Json::object();
  for (const auto& [name, value] : values) object[name] = value;
  return object;
}

/// Whole numbers as such: peft's lora_alpha is one.
Json number(double value) {
  const auto whole = static_cast<std::int64_t>(value);
  return static_cast<double>(whole) == value ? Json(whole) : Json(value);
}

}  // namespace

LoraOptions parse_config(const std::string& json, const std::filesystem::path& file) {
  auto parsed = Json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (!parsed.is_object()) throw formats::FileError({.what = text::concat(file, " is not a JSON object")});
  const ConfigReader reader(std::move(parsed), file);
  if (const auto type = reader.text("peft_type", "LORA"); type != "LORA") reader.refuse("peft_type", "'LORA'");
  LoraOptions options{.rank = reader.integer("r", 8),
                      .alpha = reader.number("lora_alpha", 8),
                      .dropout = reader.number("lora_dropout", 0),
                      .layers_to_transform = reader.integers("layers_to_transform"),
                      .layers_pattern = reader.texts("layers_pattern"),
                      .rank_pattern = reader.by_name<std::int64_t>("rank_pattern"),
                      .alpha_pattern = reader.by_name<double>("alpha_pattern"),
                      .use_rslora = reader.flag("use_rslora"),
                      .use_dora = reader.flag("use_dora"),
                      .lora_bias = reader.flag("lora_bias"),
                      .bias = bias_of(reader),
                      .modules_to_save = reader.texts("modules_to_save"),
                      .init = init_of(reader)};
  const bool is_pattern = reader.has("target_modules") && reader.at("target_modules").is_string();
  const auto targets = reader.texts("target_modules");
  if (is_pattern && targets.front() != "all-linear") {
    options.target_pattern = targets.front();
  } else {
    options.targets = targets;
  }
  const bool excludes_pattern = reader.has("exclude_modules") && reader.at("exclude_modules").is_string();
  if (excludes_pattern) {
    options.exclude_pattern = reader.text("exclude_modules");
  } else {
    options.exclude = reader.texts("exclude_modules");
  }
  require_known_fields(reader, {"r", "lora_alpha", "lora_dropout", "layers_to_transform", "layers_pattern",
                                "rank_pattern", "alpha_pattern", "use_rslora", "use_dora", "lora_bias", "bias",
                                "modules_to_save", "init_lora_weights", "target_modules", "exclude_modules"});
  return options;
}

std::string config_json(const LoraOptions& options, bool is_transposed) {
  const Json json = {
      {"alpha_pattern", object_of(options.alpha_pattern)},
      {"auto_mapping", nullptr},
      {"base_model_name_or_path", nullptr},
      {"bias", name_of(options.bias)},
      {"exclude_modules",
       options.exclude_pattern.empty() ? list_or_null(options.exclude) : Json(options.exclude_pattern)},
      {"fan_in_fan_out", is_transposed},
      {"inference_mode", true},
      // peft has no bias beside gaussian values
      {"init_lora_weights", options.init == LoraInit::gaussian && !options.lora_bias ? Json("gaussian") : Json(true)},
      {"layers_pattern", list_or_null(options.layers_pattern)},
      {"layers_to_transform", list_or_null(options.layers_to_transform)},
      {"lora_alpha", number(options.alpha)},
      {"lora_bias", options.lora_bias},
      {"lora_dropout", options.dropout},
      {"modules_to_save", list_or_null(options.modules_to_save)},
      {"peft_type", "LORA"},
      {"r", options.rank},
      {"rank_pattern", object_of(options.rank_pattern)},
      {"revision", nullptr},
      {"target_modules", options.target_pattern.empty() ? Json(options.targets) : Json(options.target_pattern)},
      {"task_type", nullptr},
      {"use_dora", options.use_dora},
      {"use_rslora", options.use_rslora}};
  return json.dump(2) + "\n";
}

}  // namespace hortator::adapters
