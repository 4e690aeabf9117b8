#include <algorithm>
#include <hortator/error.hpp>
#include <iostream>

#include "base/text.hpp"
#include "checkpoint/manifest.hpp"
#include "checkpoint/verify.hpp"
#include "cli/checkpoint/listing.hpp"
#include "cli/checkpoint/prune.hpp"
#include "cli/verbs.hpp"
#include "track/progress_bar.hpp"

namespace hortator::cli {
namespace {

namespace po = boost::program_options;
namespace fs = std::filesystem;

Options known_options() {
  Options options;
  options.named.add_options()("folder", po::value<std::vector<std::string>>()->default_value({"."}, "."),
                              "checkpoints, or folders with checkpoints")("help,h", "this text");
  options.positional.add("folder", -1);
  return options;
}

std::vector<fs::path> folders_in(const Arguments& arguments) {
  std::vector<fs::path> found;
  for (const auto& name : parse(arguments, known_options())["folder"].as<std::vector<std::string>>()) {
    const auto here = checkpoints::find_all(name);
    if (here.empty()) {
      throw UsageError({.what = text::concat("there is no checkpoint in ", text::quote(name)),
                        .hint = "name a folder that save_state wrote, or the project's folder"});
    }
    found.insert(found.end(), here.begin(), here.end());
  }
  return found;
}

int list(const Arguments& arguments) {
  std::cout << checkpoints::table(folders_in(arguments));
  return 0;
}

int show(const Arguments& arguments) {
  for (const auto& folder : folders_in(arguments))
    std::cout << checkpoints::tree(folder, checkpoint::read_manifest(folder));
  return 0;
}

/// Shows how far the reading of `total` bytes has come.
class Bar {
 public:
  Bar(const std::string& title, std::int64_t total) : sink_(track::make_progress(track::Audience::people)) {
    sink_->start(title, (total + step_bytes - 1) / step_bytes, 0);
  }
  ~Bar() { sink_->finish(); }
  Bar(const Bar&) = delete;
  Bar& operator=(const Bar&) = delete;

  void advance(std::int64_t bytes) {
    for (read_ += bytes; shown_ + step_bytes <= read_; shown_ += step_bytes) sink_->advance();
  }

 private:
  static constexpr std::int64_t step_bytes = std::int64_t{1} << 20;

  std::unique_ptr<ProgressSink> sink_;
  std::int64_t read_ = 0;
  std::int64_t shown_ = 0;
};

std::vector<std::string> problems_of(const fs::path& folder) {
  try {
    const auto manifest = checkpoint::read_manifest(folder);
    std::int64_t total = 0;
    for (const auto& file : manifest.files) total += file.bytes;
    Bar bar(folder.filename().string(), total);
    return checkpoint::verify(folder, manifest, [&](std::int64_t bytes) { bar.advance(bytes); });
  } catch (const Error& error) {
    return {error.what()};
  }
}

int verify(const Arguments& arguments) {
  int damaged = 0;
  for (const auto& folder : folders_in(arguments)) {
    const auto problems = problems_of(folder);
    std::cout << folder.string() << ": " << (problems.empty() ? "every byte is as it was saved" : "damaged") << '\n';
    for (const auto& problem : problems) std::cout << "  " << problem << '\n';
    if (!problems.empty()) ++damaged;
  }
  return damaged == 0 ? 0 : 1;
}

const std::vector<Verb>& verbs_of_checkpoint() {
  static const std::vector<Verb> table = {
      {"list", "steps, sizes, times and states, a line each", list},
      {"show", "what is in a checkpoint: names, types, shapes, sizes, values", show},
      {"verify", "reads every byte and compares it with its checksum; exit code 1 where one differs", verify},
      {"prune", "the newest stay, older ones go: prune FOLDER --keep N [--keep-every K] [--dry-run] [--leftovers]",
       checkpoints::prune},
  };
  return table;
}

int print_help() {
  std::cout << "usage: hortator checkpoint VERB [FOLDER...]\n\n"
            << listing(verbs_of_checkpoint()) << "\n"
            << known_options().named;
  return 0;
}

}  // namespace

int checkpoint_verb(const Arguments& arguments) {
  if (arguments.empty())
    throw UsageError(
        {.what = "the checkpoint verb is missing", .hint = "known are: " + listing(verbs_of_checkpoint())});
  if (std::find_if(arguments.begin(), arguments.end(),
                   [](const auto& word) { return word == "--help" || word == "-h"; }) != arguments.end())
    return print_help();
  return find(verbs_of_checkpoint(), arguments.front(), "checkpoint verb")
      .run({arguments.begin() + 1, arguments.end()});
}

}  // namespace hortator::cli
