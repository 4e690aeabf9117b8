#include <hortator/error.hpp>
#include <iomanip>
#include <iostream>
#include <sstream>

#include "core/text/text.hpp"
#include "launch/placement.hpp"
#include "tools/config/questions.hpp"
#include "tools/config/sources.hpp"
#include "tools/config/yaml_file.hpp"
#include "tools/flags.hpp"
#include "tools/verbs.hpp"
#include "tools/written_file.hpp"

namespace hortator::tools {
namespace {

namespace po = boost::program_options;
namespace fs = std::filesystem;

Options known_options() {
  Options options;
  options.named.add_options()("default", "write what was found, without asking")(
      "show", "print what holds: flags aside, as a file of settings")(
      "explain", "the same (each value is followed by where it comes from)")("force", "replace a file that is there")(
      "config_file", po::value<std::string>()->value_name("FILE"), "this file in place of your own")("help,h",
                                                                                                     "this text");
  return options;
}

std::string listing_of_keys() {
  std::ostringstream out;
  for (const auto& key : launching::keys()) {
    out << "  " << std::left << std::setw(28) << key.name << ' ' << key.what
        << (key.choices.empty() ? "" : ": " + std::string(key.choices)) << " (" << key.variable << ")\n";
  }
  return std::move(out).str();
}

int print_help() {
  std::cout << "usage: hortator config [--default] [--force] | --show | --explain | validate [FILE]\n\n"
               "Asks what matters on this machine and writes the answers to your file of settings ("
            << user_file().string()
            << ").\nA flag outranks HORTATOR_*, that a file (--config_file; else hortator.yaml here, your file, and "
               "without\neither of them Accelerate's), that the site's profile, that what is built in.\n\n"
               "  hortator config --default\n"
               "  hortator config --explain\n"
               "  hortator config validate ~/.cache/huggingface/accelerate/default_config.yaml\n\n"
               "exit code: 0 done; 2 wrong usage, or a file with an error; 1 a file that cannot be written\n\n"
            << known_options().named << "\nkeys of a file (and their variables):\n"
            << listing_of_keys();
  return 0;
}

fs::path file_of(const po::variables_map& values) {
  return values.contains("config_file") ? fs::path(values["config_file"].as<std::string>()) : user_file();
}

// Ours are checked, Accelerate's are reported on, key by key.
int validate(const fs::path& file) {
  const auto entries = read_yaml(file);
  if (!launching::is_accelerate_file(entries)) {
    auto layer = launching::read_settings(entries, file.string());
    const launching::Settings settings({layer});
    if (settings.find("num_processes")) launching::placement(settings);
    std::cout << file.string() << ": " << text::count(static_cast<long long>(layer.size()), "key") << ", all well\n";
    return 0;
  }
  const auto reference = launching::read_accelerate_file(launching::open_sections(entries), file.string());
  std::cout << launching::remark_table(reference.remarks);
  launching::throw_if_refused(reference, file.string());
  return 0;
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

int write_answers(const po::variables_map& values) {
  const auto file = file_of(values);
  if (fs::exists(file) && !values.contains("force")) {
    throw UsageError(
        {.what = text::quote(file.string()) + " is there already", .hint = "--show prints it; --force replaces it"});
  }
  const auto list = questions();
  if (!file.parent_path().empty()) fs::create_directories(file.parent_path());
  write_file(file, lines_of(values.contains("default") ? found_answers(list) : ask(list, std::cin, std::cout)));
  std::cout << "written: " << file.string() << "\n";
  return 0;
}

}  // namespace

int config_verb(const Arguments& arguments) {
  const auto values = parse(arguments, with_text(known_options(), "words"));
  if (values.contains("help")) return print_help();
  const auto words =
      values.contains("words") ? values["words"].as<std::vector<std::string>>() : std::vector<std::string>{};
  if (!words.empty()) {
    if (words.front() != "validate" || words.size() > 2) {
      throw UsageError({.what = "there is no config verb " + text::quote(words.front()),
                        .hint = "known is: hortator config validate [FILE]"});
    }
    return validate(words.size() == 2 ? fs::path(words[1]) : file_of(values));
  }
  if (values.contains("show") || values.contains("explain")) {
    const auto file =
        values.contains("config_file") ? std::optional(values["config_file"].as<std::string>()) : std::nullopt;
    const auto settings = gather_settings({}, file);
    std::cout << (values.contains("explain") ? settings.explain() : settings.show());
    return 0;
  }
  return write_answers(values);
}

}  // namespace hortator::tools
