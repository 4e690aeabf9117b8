#include "tools/checkpoint/prune.hpp"

#include <hortator/error.hpp>
#include <iostream>
#include <map>

#include "accelerator/training/project.hpp"
#include "checkpoint/read/reader.hpp"
#include "checkpoint/write/removal.hpp"
#include "checkpoint/write/retention.hpp"
#include "core/text/text.hpp"

namespace hortator::tools::checkpoints {
namespace {

namespace po = boost::program_options;
namespace fs = std::filesystem;

Options known_options() {
  Options options;
  options.named.add_options()("folder", po::value<std::string>()->default_value("."),
                              "the project's folder, or its folder `checkpoints`")(
      "keep", po::value<std::int64_t>(), "so many of the newest stay")("keep-every", po::value<std::int64_t>(),
                                                                       "numbers that it divides stay beside them")(
      "leftovers", "removes as well what saves that were killed have left: only while no job saves here")(
      "dry-run", "says what would go, and leaves it there")("help,h", "this text");
  options.positional.add("folder", 1);
  return options;
}

std::optional<std::int64_t> number_of(const po::variables_map& chosen, const char* name) {
  return chosen.count(name) > 0 ? std::optional(chosen[name].as<std::int64_t>()) : std::nullopt;
}

/// The numbered checkpoints that are complete: what is damaged or still written is nobody's to remove.
std::map<std::int64_t, fs::path> complete_ones(const fs::path& parent) {
  std::map<std::int64_t, fs::path> found;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(parent, none)) {
    const auto number = accelerator::checkpoint_number(entry.path());
    if (number && checkpoint::exists(entry.path())) found.emplace(*number, entry.path());
  }
  return found;
}

fs::path parent_of_checkpoints(const std::string& place) {
  const auto within = fs::path(place) / "checkpoints";
  auto parent = fs::is_directory(within) ? within : fs::path(place);
  if (fs::is_directory(parent)) return parent;
  throw UsageError({.what = text::concat("there is no folder ", text::quote(place)),
                    .hint = "name the project's folder, or its folder checkpoints"});
}

}  // namespace

int prune(const Arguments& arguments) {
  const auto chosen = parse(arguments, known_options());
  const checkpoint::Retention retention{.total_limit = number_of(chosen, "keep"),
                                        .keep_every = number_of(chosen, "keep-every")};
  if (!retention.total_limit) {
    throw UsageError({.what = "checkpoint prune needs --keep N",
                      .why = "without it nothing would be too much",
                      .hint = "for example: hortator checkpoint prune runs/digits --keep 3"});
  }
  checkpoint::check(retention);
  const auto parent = parent_of_checkpoints(chosen["folder"].as<std::string>());
  const bool dry = chosen.count("dry-run") > 0;
  const auto found = complete_ones(parent);
  std::vector<std::int64_t> numbers;
  for (const auto& [number, folder] : found) numbers.push_back(number);
  const auto gone = checkpoint::surplus(numbers, retention);
  for (const auto number : gone) {
    std::cout << (dry ? "would remove " : "removing ") << found.at(number).string() << std::endl;
    if (!dry) checkpoint::remove(found.at(number));
  }
  if (!dry && chosen.count("leftovers") > 0) checkpoint::remove_leftovers(parent, checkpoint::Leftovers::also_of_saves);
  std::cout << text::count(static_cast<long long>(found.size() - gone.size()), "checkpoint") << " of " << found.size()
            << (dry ? " would stay" : " stay") << '\n';
  return 0;
}

}  // namespace hortator::tools::checkpoints
