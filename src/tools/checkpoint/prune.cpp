#include "tools/checkpoint/prune.hpp"

#include <hortator/error.hpp>
#include <iostream>
#include <map>

#include "accelerator/training/project.hpp"
#include "checkpoint/read/reader.hpp"
#include "checkpoint/write/removal.hpp"
#include "checkpoint/write/retention.hpp"
#include "core/text/text.hpp"
#include "tools/checkpoint/listing.hpp"

namespace hortator::tools::checkpoints {
namespace {

namespace po = boost::program_options;
namespace fs = std::filesystem;

Options prune_options() {
  Options options;
  options.named.add_options()("folder", po::value<std::string>()->default_value("."),
                              "the project's folder, or its folder `checkpoints`")(
      "keep", po::value<std::int64_t>(), "keep the N newest")("keep-every", po::value<std::int64_t>(),
                                                              "also keep those whose number is a multiple of K")(
      "leftovers", "also remove leftovers of killed saves; use only while no job saves here")(
      "dry-run", "print what would be removed, and remove nothing")("json", "print the result as JSON")(
      "help,h", "print this help");
  options.positional.add("folder", 1);
  return options;
}

std::optional<std::int64_t> number_of(const po::variables_map& chosen, const char* name) {
  return chosen.count(name) > 0 ? std::optional(chosen[name].as<std::int64_t>()) : std::nullopt;
}

/// The complete numbered checkpoints; damaged and unfinished ones are never removed.
std::map<std::int64_t, fs::path> complete_ones(const fs::path& parent) {
  std::map<std::int64_t, fs::path> found;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(parent, ignored)) {
    const auto number = accelerator::checkpoint_number(entry.path());
    if (number && checkpoint::exists(entry.path())) found.emplace(*number, entry.path());
  }
  return found;
}

fs::path parent_of_checkpoints(const std::string& folder) {
  const auto within = fs::path(folder) / "checkpoints";
  auto parent = fs::is_directory(within) ? within : fs::path(folder);
  if (fs::is_directory(parent)) return parent;
  throw UsageError({.what = text::concat("No folder ", text::quote(folder)),
                    .hint = "give the project's folder, or its folder checkpoints"});
}

}  // namespace

int prune(const Arguments& arguments) {
  const auto chosen = parse(arguments, prune_options());
  const checkpoint::Retention retention{.total_limit = number_of(chosen, "keep"),
                                        .keep_every = number_of(chosen, "keep-every")};
  if (!retention.total_limit) {
    throw UsageError({.what = "--keep N is missing",
                      .why = "it is the number of checkpoints to keep",
                      .hint = "for example: hortator checkpoint prune runs/digits --keep 3"});
  }
  checkpoint::check(retention);
  const auto parent = parent_of_checkpoints(chosen["folder"].as<std::string>());
  const bool dry = chosen.count("dry-run") > 0;
  const auto found = complete_ones(parent);
  std::vector<std::int64_t> numbers;
  for (const auto& [number, folder] : found) numbers.push_back(number);
  const auto removed = checkpoint::surplus(numbers, retention);
  const bool as_json = chosen.count("json") > 0;
  auto names = nlohmann::ordered_json::array();
  for (const auto number : removed) {
    names.push_back(found.at(number).string());
    if (!as_json) std::cout << (dry ? "would remove " : "removing ") << found.at(number).string() << std::endl;
    if (!dry) checkpoint::remove(found.at(number));
  }
  if (!dry && chosen.count("leftovers") > 0) checkpoint::remove_leftovers(parent, checkpoint::Leftovers::also_of_saves);
  if (as_json) {
    print_json("prune", {{"is_dry_run", dry}, {"removed", names}, {"kept", found.size() - removed.size()}});
    return 0;
  }
  std::cout << text::count(static_cast<long long>(found.size() - removed.size()), "checkpoint") << " of "
            << found.size() << (dry ? " would be kept" : " kept") << '\n';
  return 0;
}

}  // namespace hortator::tools::checkpoints
