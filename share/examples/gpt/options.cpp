#include "options.hpp"

#include <boost/program_options.hpp>
#include <hortator/error.hpp>
#include <sstream>

#include "text.hpp"

namespace gpt {
namespace {

namespace po = boost::program_options;

template <typename T>
auto into(T& value) {
  return po::value(&value)->default_value(value);
}
auto into(double& value, const char* shown) { return po::value(&value)->default_value(value, shown); }

po::options_description described(Options& options, std::vector<std::string>& text, std::string& run_dir) {
  po::options_description all("options", 120);
  auto add = all.add_options();
  add("run-dir", into(run_dir)->value_name("DIR"), "folder of checkpoint and log; an existing run is resumed");
  add("text", po::value(&text)->multitoken()->value_name("PATH..."),
      "files and folders to train on; default: Hortator's own sources");
  add("steps", into(options.steps)->value_name("N"), "steps of the training");
  add("batch-size", into(options.batch_size)->value_name("N"), "windows of text per step, over all ranks");
  add("context", into(options.model.context)->value_name("N"), "context length of the model, in bytes");
  add("layers", into(options.model.layers)->value_name("N"), "layers of the transformer");
  add("width", into(options.model.width)->value_name("N"), "width of the model: elements per token");
  add("heads", into(options.model.heads)->value_name("N"), "attention heads; the width must be an even multiple");
  add("learning-rate", into(options.learning_rate, "3e-3")->value_name("X"), "peak learning rate, after the warm-up");
  add("checkpoint-every", into(options.checkpoint_every)->value_name("N"), "steps between checkpoints");
  add("stop-after", into(options.stop_after)->value_name("N"), "save and stop after N steps; 0: train to the end");
  add("prompt", into(options.prompt)->value_name("TEXT"), "start of the sample");
  add("seed", into(options.seed)->value_name("N"), "seed of all random numbers");
  add("cpu", po::bool_switch(&options.cpu), "stay on the CPU");
  add("help", po::bool_switch(&options.help), "print this");
  return all;
}

void check(bool fits, const char* what, const char* hint) {
  if (!fits) throw hortator::UsageError({.what = what, .hint = hint});
}

void validate(const Options& options) {
  const auto& model = options.model;
  check(options.steps > 0 && options.batch_size > 0 && options.checkpoint_every > 0,
        "--steps, --batch-size and --checkpoint-every: expected whole numbers from 1",
        "gpt --help describes these options");
  check(options.stop_after >= 0, "--stop-after: expected 0 or more", "0 trains to the end");
  check(model.context > 0 && model.layers > 0, "--context and --layers: expected whole numbers from 1",
        "gpt --help describes these options");
  check(model.heads > 0 && model.width > 0 && model.width % (2 * model.heads) == 0,
        "--width: expected an even multiple of --heads", "use for example --width 128 --heads 4");
  check(options.learning_rate > 0, "--learning-rate: expected a number above 0", "3e-3 suits the small model");
  check(!options.prompt.empty(), "--prompt: expected at least one character, got ''", "the sample starts with it");
  check(!options.text.empty(), "No text to train on", "name files or folders with --text");
}

}  // namespace

Options parse_options(int argc, const char* const* argv) {
  Options options;
  std::vector<std::string> text;
  std::string run_dir = options.run_dir.string();
  po::variables_map values;
  try {
    // no positional arguments: a forgotten option name is an error, not a text
    po::store(po::command_line_parser(argc, argv).options(described(options, text, run_dir)).positional({}).run(),
              values);
    po::notify(values);
  } catch (const po::error& error) {
    throw hortator::UsageError({.what = error.what(), .hint = "gpt --help lists the options"});
  }
  options.run_dir = run_dir;
  options.text.assign(text.begin(), text.end());
  if (options.help) return options;
  if (text.empty()) options.text = own_sources();
  validate(options);
  return options;
}

std::string usage() {
  Options options;
  std::vector<std::string> text;
  std::string run_dir = options.run_dir.string();
  std::ostringstream out;
  out << "usage: gpt [option...]    trains a small GPT on text, on any number of ranks: mpirun -n 4 gpt, srun gpt, "
         "gpt\n\n"
      << described(options, text, run_dir);
  return out.str();
}

}  // namespace gpt
