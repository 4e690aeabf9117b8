#include <algorithm>
#include <hortator/error.hpp>
#include <iostream>

#include "checkpoint/manifest.hpp"
#include "checkpoint/read/verify.hpp"
#include "core/text/text.hpp"
#include "tools/checkpoint/byte_bar.hpp"
#include "tools/checkpoint/diff.hpp"
#include "tools/checkpoint/listing.hpp"
#include "tools/checkpoint/prune.hpp"
#include "tools/checkpoint/transfer.hpp"
#include "tools/verbs.hpp"

namespace hortator::tools {
namespace {

namespace po = boost::program_options;
namespace fs = std::filesystem;

Options checkpoint_options() {
  Options options;
  options.named.add_options()("folder", po::value<std::vector<std::string>>()->default_value({"."}, "."),
                              "checkpoints, or folders with checkpoints")(
      "json", "print list, show, verify, diff or prune as JSON")("help,h", "print this help");
  options.positional.add("folder", -1);
  return options;
}

std::vector<fs::path> folders_in(const po::variables_map& chosen) {
  std::vector<fs::path> found;
  for (const auto& name : chosen["folder"].as<std::vector<std::string>>()) {
    const auto here = checkpoints::find_all(name);
    if (here.empty()) {
      throw UsageError({.what = text::concat("No checkpoint in ", text::quote(name)),
                        .hint = "give a folder that save_state wrote, or the project's folder"});
    }
    found.insert(found.end(), here.begin(), here.end());
  }
  return found;
}

int list(const Arguments& arguments) {
  const auto chosen = parse(arguments, checkpoint_options());
  const auto folders = folders_in(chosen);
  if (chosen.contains("json")) {
    checkpoints::print_json("checkpoints", checkpoints::json_of_table(folders));
  } else {
    std::cout << checkpoints::table(folders);
  }
  return 0;
}

int show(const Arguments& arguments) {
  const auto chosen = parse(arguments, checkpoint_options());
  auto all = nlohmann::ordered_json::array();
  for (const auto& folder : folders_in(chosen)) {
    const auto manifest = checkpoint::read_manifest(folder);
    if (chosen.contains("json")) {
      all.push_back(checkpoints::json_of_contents(folder, manifest));
    } else {
      std::cout << checkpoints::tree(folder, manifest);
    }
  }
  if (chosen.contains("json")) checkpoints::print_json("checkpoints", std::move(all));
  return 0;
}

std::vector<std::string> problems_of(const fs::path& folder) {
  try {
    const auto manifest = checkpoint::read_manifest(folder);
    std::int64_t total = 0;
    for (const auto& file : manifest.files) total += file.bytes;
    checkpoints::ByteBar bar(folder.filename().string(), total);
    return checkpoint::verify(folder, manifest, [&](std::int64_t bytes) { bar.advance(bytes); });
  } catch (const Error& error) {
    return {error.what()};
  }
}

int verify(const Arguments& arguments) {
  const auto chosen = parse(arguments, checkpoint_options());
  const bool as_json = chosen.contains("json");
  auto all = nlohmann::ordered_json::array();
  int damaged = 0;
  for (const auto& folder : folders_in(chosen)) {
    const auto problems = problems_of(folder);
    if (!problems.empty()) ++damaged;
    all.push_back({{"folder", folder.string()}, {"is_intact", problems.empty()}, {"problems", problems}});
    if (as_json) continue;
    std::cout << folder.string() << ": " << (problems.empty() ? "all checksums match" : "damaged") << '\n';
    for (const auto& problem : problems) std::cout << "  " << problem << '\n';
  }
  if (as_json) checkpoints::print_json("checkpoints", std::move(all));
  return damaged == 0 ? 0 : 1;
}

const std::vector<Verb>& verbs_of_checkpoint() {
  static const std::vector<Verb> table = {
      {"list", "prints step (updates of the optimizer), size, time and state of each checkpoint", list},
      {"show", "prints the contents of a checkpoint: names, types, shapes, sizes, values", show},
      {"verify", "reads all data and compares checksums; exit code 1 if one differs", verify},
      {"prune", "removes all but the newest: prune FOLDER --keep N [--keep-every K] [--dry-run] [--leftovers]",
       checkpoints::prune},
      {"diff", "compares two checkpoints or models: diff A B; exit code 1 if they differ", checkpoints::diff},
      {"export",
       "writes the weights of a model: export CHECKPOINT OUT.safetensors, or OUT.pt for torch.load; or all of it for "
       "Python: export CHECKPOINT --to accelerate OUT",
       checkpoints::export_weights},
      {"merge",
       "writes one file from the parts that FSDP or DeepSpeed saved, as accelerate merge-weights: merge FOLDER "
       "OUT.safetensors",
       checkpoints::merge_weights},
      {"import", "converts weights to a checkpoint: import IN OUT, where IN is .safetensors, .pt, an index or a folder",
       checkpoints::import_weights},
  };
  return table;
}

int print_checkpoint_help() {
  std::cout << "usage: hortator checkpoint VERB [FOLDER...]\n\n"
            << listing(verbs_of_checkpoint())
            << "\n  hortator checkpoint list runs/digits\n"
               "  hortator checkpoint verify runs/digits/checkpoints/checkpoint_12\n"
               "  hortator checkpoint prune runs/digits/checkpoints --keep 3 --dry-run\n"
               "  hortator checkpoint list runs/digits --json\n\n"
               "exit code: 0 done, nothing damaged or different; 1 damaged or different; 2 wrong usage, or diff cannot "
               "read an input\n\n"
            << checkpoint_options().named
            << "\n`hortator checkpoint diff --help` describes diff, and so for export, merge and import.\n";
  return 0;
}

bool asks_for_help(const Arguments& arguments) {
  return std::ranges::any_of(arguments, [](const auto& argument) { return argument == "--help" || argument == "-h"; });
}

}  // namespace

int checkpoint_verb(const Arguments& arguments) {
  if (arguments.empty())
    throw UsageError(
        {.what = "The checkpoint verb is missing", .hint = "valid verbs: " + listing(verbs_of_checkpoint())});
  const std::vector<std::string> with_own_help = {"diff", "export", "merge", "import"};
  if (asks_for_help(arguments) && std::ranges::find(with_own_help, arguments.front()) == with_own_help.end())
    return print_checkpoint_help();
  return find(verbs_of_checkpoint(), arguments.front(), "checkpoint verb")
      .run({arguments.begin() + 1, arguments.end()});
}

}  // namespace hortator::tools
