#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <hortator/error.hpp>
#include <hortator/version.hpp>
#include <iostream>

#include "core/text/text.hpp"
#include "core/whole_file.hpp"
#include "launch/job/template.hpp"
#include "tools/programs.hpp"
#include "tools/verbs.hpp"
#include "tools/written_file.hpp"

namespace hortator::tools {
namespace {

namespace fs = std::filesystem;

constexpr std::array<const char*, 4> files = {"CMakeLists.txt", "train.cpp", "job.sh", "README.md"};
// Target names that CMake reserves.
constexpr std::array<std::string_view, 8> reserved = {"all",  "clean",   "help",   "install",
                                                      "test", "package", "depend", "none"};

Options new_options() {
  Options options;
  options.named.add_options()("help,h", "print this help");
  return options;
}

int print_new_help() {
  std::cout
      << "usage: hortator new NAME\n\n"
         "Creates the folder NAME with a project that is ready to build: CMakeLists.txt, a training program, a job\n"
         "script and a README.\n\n"
         "  hortator new my-model\n\n"
         "exit code: 0 done; 2 wrong usage; 1 a file could not be written\n\n"
      << new_options().named;
  return 0;
}

// The name is used for a folder, a CMake target and a program.
void check_name(const std::string& name) {
  const bool has_valid_characters =
      std::ranges::all_of(name, [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '-'; });
  if (!has_valid_characters || name.empty() || std::isalpha(static_cast<unsigned char>(name.front())) == 0 ||
      name.size() > 100) {
    throw UsageError({.what = text::concat(text::quote(name), " is not a valid project name"),
                      .why = "it is used for a folder, a program and a CMake target",
                      .hint = "start with a-z or A-Z and use only letters, digits, _ and -, at most 100 characters"});
  }
  if (std::ranges::find(reserved, name) != reserved.end() || name.starts_with("hortator")) {
    throw UsageError(
        {.what = text::concat(text::quote(name), " is reserved by CMake or Hortator"), .hint = "choose another name"});
  }
  if (fs::exists(name))
    throw UsageError(
        {.what = text::concat(text::quote(name), " already exists"), .hint = "choose another name, or remove it"});
}

std::string filled(const std::string& file, const std::string& name) {
  const auto path = data_folder() / "new" / (file + ".in");
  const auto content = core::read_whole(path);
  if (!content)
    throw Error({.what = text::concat(path, " cannot be read"),
                 .why = "it is the project's template",
                 .hint = "install Hortator again"});
  return launching::fill(*content, {.texts = {{"name", name}, {"version", HORTATOR_VERSION}}});
}

}  // namespace

int new_verb(const Arguments& arguments) {
  const auto values = parse(arguments, with_text(new_options(), "name"));
  if (values.contains("help")) return print_new_help();
  if (!values.contains("name") || values["name"].as<std::vector<std::string>>().size() != 1) {
    throw UsageError({.what = "Expected one project name", .hint = "hortator new my-model"});
  }
  const auto name = values["name"].as<std::vector<std::string>>().front();
  check_name(name);
  fs::create_directory(name);
  for (const auto* file : files) write_file(fs::path(name) / file, filled(file, name));
  fs::permissions(fs::path(name) / "job.sh", fs::perms::owner_exec | fs::perms::group_exec | fs::perms::others_exec,
                  fs::perm_options::add);
  std::cout << name << " is ready:\n\n  cd " << name
            << "\n  cmake -S . -B build && cmake --build build\n  hortator launch -n 2 build/" << name << "\n";
  return 0;
}

}  // namespace hortator::tools
