#include <hortator/error.hpp>
#include <iomanip>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/text/text.hpp"
#include "core/whole_file.hpp"
#include "launch/placement.hpp"
#include "tools/config/questions.hpp"
#include "tools/config/updated_file.hpp"
#include "tools/flags.hpp"
#include "tools/settings_sources.hpp"
#include "tools/verbs.hpp"
#include "tools/written_file.hpp"

namespace hortator::tools {
namespace {

namespace po = boost::program_options;
namespace fs = std::filesystem;

Options config_options() {
  Options options;
  options.named.add_options()("default", "write the detected settings without asking")(
      "show", "print the settings in effect, in the format of the file")(
      "explain", "like --show, and where each value comes from")(
      "json", "print the settings, or the result of validate, as JSON")("force", "replace an existing file")(
      "config-file", po::value<std::string>()->value_name("FILE"), "use FILE instead of your settings file")(
      "help,h", "print this help");
  return options;
}

std::string listing_of_keys() {
  std::ostringstream out;
  for (const auto& key : launching::keys()) {
    out << "  " << std::left << std::setw(28) << key.name << ' ' << key.what
        << (key.choices.empty() ? "" : ": " + std::string(key.choices)) << " (" << launching::variable_of(key) << ")\n";
  }
  return std::move(out).str();
}

int print_config_help() {
  std::cout
      << "usage: hortator config [--default] [--force] | --show | --explain | validate [FILE] | update [FILE]\n\n"
         "Asks for the settings of this machine and writes them to your settings file ("
      << user_file().string()
      << ").\n\nPriority: flags, HORTATOR_* variables, --config-file (otherwise hortator.yaml in this folder, "
         "then your "
         "file;\nwithout both, Accelerate's file), the centre's files (/etc/hortator/config.yaml), the site profile, "
         "built-in defaults.\n\n"
         "  hortator config --default\n"
         "  hortator config --explain\n"
         "  hortator config --show --json\n"
         "  hortator config update          (asks again; keeps all lines but those of changed answers)\n"
         "  hortator config validate ~/.cache/huggingface/accelerate/default_config.yaml\n\n"
         "exit code: 0 done; 2 wrong usage, or an invalid file; 1 the file could not be written\n\n"
      << config_options().named << "\nkeys of a settings file (and their variables):\n"
      << listing_of_keys();
  return 0;
}

fs::path file_of(const po::variables_map& values) {
  return values.contains("config-file") ? fs::path(values["config-file"].as<std::string>()) : user_file();
}

using Json = nlohmann::ordered_json;

void print(const Json& json) { std::cout << json.dump(2, ' ', false, Json::error_handler_t::replace) << "\n"; }

Json json_of(const launching::Key& key, const launching::SettingValue& value) {
  const bool is_many = key.kind == launching::KeyKind::list || key.kind == launching::KeyKind::variables;
  return {{"value", is_many ? Json(value.values) : Json(value.values.front())}, {"origin", value.origin}};
}

void print_settings(const launching::Settings& settings) {
  Json json = {{"schema_version", 1}, {"settings", Json::object()}};
  for (const auto& key : launching::keys()) {
    if (const auto* value = settings.find(key.name)) json["settings"][std::string(key.name)] = json_of(key, *value);
  }
  print(json);
}

void check(const launching::Layer& layer) {
  const launching::Settings settings({layer});
  if (settings.find("ranks")) launching::placement(settings);
}

// Checks a file of Hortator; prints for each key of an Accelerate file whether it is honoured.
int validate(const fs::path& file) {
  const auto [entries, errors] = parse_yaml(file);
  if (!launching::is_accelerate_file(entries)) {
    const auto layer = launching::read_settings(entries, file.string(), errors);
    check(layer);
    std::cout << file.string() << ": " << text::count(static_cast<long long>(layer.size()), "key") << ", all valid\n";
    return 0;
  }
  const auto reference = read_accelerate(entries, file);
  std::cout << launching::remark_table(reference.remarks);
  launching::throw_if_refused(reference, file.string(), errors);
  return 0;
}

// The same as JSON. An invalid file is a result here.
int validate_as_json(const fs::path& file) {
  Json json = {{"schema_version", 1}, {"file", file.string()}, {"is_valid", true}, {"error", nullptr}};
  try {
    const auto [entries, errors] = parse_yaml(file);
    const bool is_accelerate = launching::is_accelerate_file(entries);
    json["format"] = is_accelerate ? "accelerate" : "hortator";
    launching::Layer layer;
    if (is_accelerate) {
      const auto reference = read_accelerate(entries, file);
      for (const auto& remark : reference.remarks) {
        json["keys"].push_back({{"key", remark.key},
                                {"line", remark.line},
                                {"support", std::string(launching::name_of(remark.support))},
                                {"text", remark.text}});
      }
      layer = reference.layer;
      launching::throw_if_refused(reference, file.string(), errors);
    } else {
      layer = launching::read_settings(entries, file.string(), errors);
      check(layer);
    }
    for (const auto& [name, value] : layer) json["settings"][name] = json_of(launching::find_key(name, ""), value);
  } catch (const UsageError& error) {
    json["is_valid"] = false;
    json["error"] = error.what();
  }
  print(json);
  return json["is_valid"].get<bool>() ? 0 : 2;
}

std::string lines_of(const launching::Layer& answers) {
  std::ostringstream out;
  for (const auto& key : launching::keys()) {
    const auto answer = answers.find(key.name);
    if (answer == answers.end()) continue;
    out << key.name << ": " << launching::yaml_value(key, answer->second) << "\n";
  }
  return std::move(out).str();
}

// Asks again, with the settings of the file as defaults, and changes only the lines of changed answers.
int update_answers(const po::variables_map& values, const fs::path& file) {
  const auto [entries, errors] = parse_yaml(file);
  if (launching::is_accelerate_file(entries))
    throw UsageError({.what = text::quote(file.string()) + " is a file of Accelerate",
                      .why = "`accelerate config update` keeps it up to date, and Hortator reads it as it is",
                      .hint = "`hortator config` writes a file of your own"});
  const auto layer = launching::read_settings(entries, file.string(), errors);
  const auto list = with_defaults(questions(), layer);
  const auto answers = values.contains("default") ? found_answers(list) : ask(list, std::cin, std::cout);
  write_file(file, updated_text(core::read_whole(file).value_or(""), entries, answers, file.string()));
  std::cout << "updated: " << file.string() << "\n";
  return 0;
}

int write_answers(const po::variables_map& values) {
  const auto file = file_of(values);
  if (fs::exists(file) && !values.contains("force")) {
    throw UsageError(
        {.what = text::quote(file.string()) + " already exists", .hint = "--show prints it; --force replaces it"});
  }
  const auto list = questions();
  if (!file.parent_path().empty()) fs::create_directories(file.parent_path());
  write_file(file, lines_of(values.contains("default") ? found_answers(list) : ask(list, std::cin, std::cout)));
  std::cout << "written: " << file.string() << "\n";
  return 0;
}

}  // namespace

int config_verb(const Arguments& arguments) {
  const auto values = parse(arguments, with_text(config_options(), "arguments"));
  if (values.contains("help")) return print_config_help();
  const auto given =
      values.contains("arguments") ? values["arguments"].as<std::vector<std::string>>() : std::vector<std::string>{};
  if (!given.empty()) {
    const bool is_update = given.front() == "update";
    if (given.size() > 2)
      throw UsageError({.what = "Unexpected argument " + text::quote(given[2]), .hint = "name one file"});
    if (given.front() != "validate" && !is_update) {
      const auto hint = hint_for_dashes(given.front(), config_options());
      throw UsageError(
          {.what = "Unknown config verb " + text::quote(given.front()),
           .hint = hint.empty() ? "valid: hortator config validate [FILE], hortator config update [FILE]" : hint});
    }
    const auto file = given.size() == 2 ? fs::path(given[1]) : file_of(values);
    if (is_update) return update_answers(values, file);
    return values.contains("json") ? validate_as_json(file) : validate(file);
  }
  if (values.contains("show") || values.contains("explain") || values.contains("json")) {
    const auto file =
        values.contains("config-file") ? std::optional(values["config-file"].as<std::string>()) : std::nullopt;
    const auto settings = gather_settings({}, file);
    if (values.contains("json")) {
      print_settings(settings);
      return 0;
    }
    std::cout << (values.contains("explain") ? settings.explain() : settings.show());
    return 0;
  }
  return write_answers(values);
}

}  // namespace hortator::tools
