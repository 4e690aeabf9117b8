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
  add("run-dir", into(run_dir)->value_name("DIR"), "checkpoint and log; a run that is there already goes on");
  add("text", po::value(&text)->multitoken()->value_name("PATH..."),
      "files and folders to learn from; default: Hortator's own sources");
  add("steps", into(options.steps)->value_name("N"), "length of the training");
  add("batch-size", into(options.batch_size)->value_name("N"), "windows of text a step, of all ranks together");
  add("context", into(options.model.context)->value_name("N"), "bytes that the model sees at once");
  add("layers", into(options.model.layers)->value_name("N"), "of the transformer");
  add("width", into(options.model.width)->value_name("N"), "numbers that stand for a byte inside it");
  add("heads", into(options.model.heads)->value_name("N"), "attention heads; they divide the width");
  add("learning-rate", into(options.learning_rate, "3e-3")->value_name("X"), "at its highest, after the warm-up");
  add("checkpoint-every", into(options.checkpoint_every)->value_name("N"), "steps between checkpoints");
  add("stop-after", into(options.stop_after)->value_name("N"), "save and leave after so many steps; 0: at the end");
  add("prompt", into(options.prompt)->value_name("TEXT"), "how the sample begins");
  add("seed", into(options.seed)->value_name("N"), "of all random numbers");
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
        "--steps, --batch-size and --checkpoint-every begin at 1", "gpt --help lists what they mean");
  check(options.stop_after >= 0, "--stop-after cannot be negative", "0 trains to the end");
  check(model.context > 0 && model.layers > 0, "--context and --layers begin at 1", "gpt --help lists what they mean");
  check(model.heads > 0 && model.width > 0 && model.width % (2 * model.heads) == 0,
        "--width is not an even multiple of --heads", "choose for example --width 128 --heads 4");
  check(options.learning_rate > 0, "--learning-rate must be above 0", "3e-3 suits the small model");
  check(!options.prompt.empty(), "--prompt is empty", "give the sample at least one letter to begin with");
  check(!options.text.empty(), "there is no text to learn from", "name files or folders with --text");
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
