#include "options.hpp"

#include <algorithm>
#include <boost/program_options.hpp>
#include <cmath>
#include <hortator/error.hpp>
#include <optional>
#include <sstream>

namespace generate {
namespace {

namespace po = boost::program_options;

template <typename T>
auto into(T& value) {
  return po::value(&value)->default_value(value);
}

template <typename T>
auto into(std::optional<T>& value) {
  return po::value<T>()->notifier([&value](const T& given) { value = given; });
}

struct Paths {
  std::string prompts, answers, keep, weights, checkpoint, adapter, ids, logits, hidden, save, perplexity, disk;
};

po::options_description described(Options& options, Paths& paths) {
  po::options_description all("options", 120);
  auto add = all.add_options();
  add("prompts", po::value(&paths.prompts)->value_name("FILE"), "file with one prompt per line");
  add("answers", po::value(&paths.answers)->value_name("FILE"),
      "output file: one answer per line, in the order of the prompts");
  add("weights", po::value(&paths.weights)->value_name("PATH"), "a checkpoint of gpt, or a safetensors file");
  add("memory", into(options.memory)->value_name("BYTES"),
      "memory for the model; what does not fit stays on disk; 0: all that is free");
  add("keep", po::value(&paths.keep)->value_name("DIR"), "folder that keeps finished answers, in case a rank fails");
  add("batch-size", into(options.answering.batch_size)->value_name("N"), "prompts that a rank answers in one batch");
  add("bytes", into(options.max_bytes)->value_name("N"), "maximum length of an answer");
  add("context", into(options.model.context)->value_name("N"), "context length of the model, in bytes");
  add("layers", into(options.model.layers)->value_name("N"), "layers of the transformer");
  add("width", into(options.model.width)->value_name("N"), "width of the model: elements per token");
  add("heads", into(options.model.heads)->value_name("N"), "attention heads; the width must be an even multiple");
  add("seed", into(options.seed)->value_name("N"), "seed of random weights and tokens");
  add("model", po::value(&paths.checkpoint)->value_name("DIR"),
      "a Hugging Face checkpoint (config.json, weights, tokenizer.json) or a GGUF file, in place of the model of gpt");
  add("adapter", po::value(&paths.adapter)->value_name("DIR"),
      "with --model: a LoRA adapter, a folder of peft's layout (adapter_config.json, adapter_model.safetensors)");
  add("quantise", po::value(&options.quantise)->value_name("int8|int4|nf4|int8_groups|file"),
      "with --model: keep the weights of linear layers in 8 or 4 bits; file: as a GGUF file of Q8_0, Q4_0 or Q4_1 has "
      "them");
  add("quantise-group", into(options.quantise_group)->value_name("N"), "with --quantise: weights that share a scale");
  add("quantise-scores", po::value(&options.quantise_scores)->value_name("int8|int4|nf4|no"),
      "with --quantise: the same for the layer that scores tokens and an embedding that shares its weight; int8 if not "
      "given");
  add("bf16", po::bool_switch(&options.bf16), "with --model: weights and computation in bfloat16");
  add("disk", po::value(&paths.disk)->value_name("DIR"),
      "with --perplexity or --speed: all weights stay on disk, packed ones in a file in this folder");
  add("save", po::value(&paths.save)->value_name("DIR"),
      "with --model: write the model to this folder, with --quantise in 8 or 4 bits, for --model DIR");
  add("perplexity", po::value(&paths.perplexity)->value_name("FILE"),
      "with --model, on one rank: print the perplexity of this text");
  add("speed", into(options.speed)->value_name("N"),
      "with --model, on one rank: generate N tokens, and print tokens a second beside what memory bandwidth allows");
  add("tensor", into(options.tensor)->value_name("N"),
      "with --model: ranks among which its layers are divided; they compute each prompt together");
  add("pipeline", into(options.pipeline)->value_name("N"),
      "with --model: ranks that have consecutive layers of it; they compute each prompt together");
  add("max-new-tokens", into(options.generation.max_new_tokens)->value_name("N"),
      "with --model: length of an answer; by default that of the checkpoint's generation_config.json, or 64, as for "
      "the "
      "next options");
  add("min-new-tokens", into(options.generation.min_new_tokens)->value_name("N"),
      "with --model: no answer ends earlier");
  add("sample", into(options.generation.sample)->implicit_value(true)->value_name("true|false"),
      "with --model: random tokens, not the likeliest; --sample=false where the checkpoint asks for them");
  add("temperature", into(options.generation.temperature)->value_name("T"),
      "with --sample: below 1 for likelier tokens");
  add("top-k", into(options.generation.top_k)->value_name("N"), "with --sample: only the N likeliest tokens; 0: all");
  add("top-p", into(options.generation.top_p)->value_name("P"),
      "with --sample: only the likeliest tokens with this probability together");
  add("beams", into(options.generation.num_beams)->value_name("N"),
      "with --model: search for the likeliest answer with N beams; 1: the likeliest token follows");
  add("stop", po::value(&options.stop)->multitoken()->value_name("TEXT..."),
      "with --model: an answer ends with the first of these texts");
  add("chat", po::bool_switch(&options.chat),
      "with --model: prompts are messages, written with the checkpoint's chat template");
  add("interactive", po::bool_switch(&options.interactive),
      "with --model, on one rank: answers each line of the standard input at once; with --chat, a conversation");
  add("ids", po::value(&paths.ids)->value_name("FILE"),
      "with --model: a JSON file with a list of token numbers, or of such lists");
  add("logits", po::value(&paths.logits)->value_name("FILE"), "with --ids: write the logits to this safetensors file");
  add("hidden", po::value(&paths.hidden)->value_name("FILE"),
      "with --ids: write the last hidden states to this safetensors file");
  add("cpu", po::bool_switch(&options.cpu), "stay on the CPU");
  add("help", po::bool_switch(&options.help), "print this");
  return all;
}

void check(bool fits, const char* what) {
  if (!fits) throw hortator::UsageError({.what = what, .hint = "generate --help lists the options"});
}

bool has_generation_options(const hortator::models::GenerateOptions& generation) {
  return generation.max_new_tokens || generation.min_new_tokens || generation.sample || generation.temperature ||
         generation.top_k || generation.top_p || generation.num_beams;
}

/// Checks the options of answers that a checkpoint gives.
void check_generation(const hortator::models::GenerateOptions& generation, const std::vector<std::string>& stop) {
  const bool samples = generation.sample.value_or(false);
  check(generation.max_new_tokens.value_or(1) >= 1, "--max-new-tokens: expected a whole number from 1");
  check(generation.min_new_tokens.value_or(0) >= 0, "--min-new-tokens: expected a whole number from 0");
  check(generation.num_beams.value_or(1) >= 1, "--beams: expected a whole number from 1");
  const auto temperature = generation.temperature.value_or(1);
  check(std::isfinite(temperature) && temperature > 0,
        "--temperature: expected a number above 0 (for the likeliest token, leave out --sample)");
  check(generation.top_k.value_or(0) >= 0, "--top-k: expected a whole number from 0");
  const auto top_p = generation.top_p.value_or(1);
  check(top_p > 0 && top_p <= 1, "--top-p: expected a number above 0 up to 1");
  check(samples || !(generation.temperature || generation.top_k || generation.top_p),
        "--temperature, --top-k and --top-p: expected --sample as well: without it the likeliest token follows");
  check(std::ranges::none_of(stop, &std::string::empty), "--stop: every answer contains an empty text");
}

}  // namespace

Options parse_options(int argc, const char* const* argv) {
  Options options;
  Paths paths;
  po::variables_map values;
  try {
    po::store(po::command_line_parser(argc, argv).options(described(options, paths)).positional({}).run(), values);
    po::notify(values);
  } catch (const po::error& error) {
    throw hortator::UsageError({.what = error.what(), .hint = "generate --help lists the options"});
  }
  options.prompts = paths.prompts;
  options.answers = paths.answers;
  options.answering.keep = paths.keep;
  options.weights = paths.weights;
  options.checkpoint = paths.checkpoint;
  options.adapter = paths.adapter;
  options.save = paths.save;
  options.disk = paths.disk;
  options.perplexity = paths.perplexity;
  options.ids = paths.ids;
  options.logits = paths.logits;
  options.hidden = paths.hidden;
  options.generation.seed = options.seed;
  if (options.help) return options;
  const auto& model = options.model;
  check(paths.ids.empty() || !paths.checkpoint.empty(), "--ids: expected --model DIR as well");
  check(paths.ids.empty() == (paths.logits.empty() && paths.hidden.empty()),
        "--ids, with --logits or --hidden: expected both");
  check(paths.ids.empty() || (!options.interactive && !options.chat && options.stop.empty() &&
                              !options.generation.num_beams && paths.prompts.empty()),
        "--ids: writes the logits of given ids, so --prompts, --interactive, --chat, --stop and --beams cannot be "
        "given as well");
  check(options.tensor > 0, "--tensor: expected a whole number from 1");
  check(options.pipeline > 0, "--pipeline: expected a whole number from 1");
  check(options.quantise.empty() || !paths.checkpoint.empty(), "--quantise: expected --model DIR as well");
  check(options.quantise_scores.empty() || (!options.quantise.empty() && options.quantise != "file"),
        "--quantise-scores: expected --quantise int8, int4, nf4 or int8_groups as well");
  check(values["quantise-group"].defaulted() || (!options.quantise.empty() && options.quantise != "file"),
        "--quantise-group: expected --quantise int4, nf4 or int8_groups as well");
  check(options.speed >= 0, "--speed: expected a whole number from 1");
  const bool measures = options.speed > 0 || !paths.perplexity.empty();
  check(paths.disk.empty() || (measures && options.quantise != "file" && paths.adapter.empty()),
        "--disk: expected --perplexity or --speed as well, and neither --quantise file nor --adapter");
  check(!options.bf16 || !paths.checkpoint.empty(), "--bf16: expected --model DIR as well");
  check(!(measures || !paths.save.empty()) || !paths.checkpoint.empty(),
        "--save, --perplexity and --speed: expected --model DIR as well");
  check(!measures || (paths.ids.empty() && paths.prompts.empty() && !options.interactive && paths.save.empty() &&
                      options.tensor * options.pipeline == 1),
        "--perplexity and --speed: measure the model on one rank, so --ids, --prompts, --interactive, --save, --tensor "
        "and --pipeline cannot be given as well");
  check(paths.save.empty() || (paths.ids.empty() && paths.prompts.empty() && !options.interactive &&
                               options.tensor * options.pipeline == 1 && paths.adapter.empty()),
        "--save: writes the model of one rank, so --ids, --prompts, --interactive, --adapter, --tensor and --pipeline "
        "cannot be given as well");
  check(options.quantise.empty() || options.tensor == 1,
        "--quantise: packed weights cannot be divided, so --tensor cannot be given as well");
  check(paths.adapter.empty() || !paths.checkpoint.empty(), "--adapter: expected --model DIR as well");
  if (!paths.ids.empty() || measures || !paths.save.empty()) return options;
  check(!paths.checkpoint.empty() || (!options.interactive && !options.chat && options.stop.empty()),
        "--interactive, --chat and --stop: expected --model DIR as well");
  check(options.tensor == 1 || (!paths.checkpoint.empty() && !options.interactive),
        "--tensor: expected --model DIR as well, with --prompts");
  check(options.pipeline == 1 || (!paths.checkpoint.empty() && !options.interactive),
        "--pipeline: expected --model DIR as well, with --prompts");
  check(
      !paths.checkpoint.empty() || !has_generation_options(options.generation),
      "--max-new-tokens, --min-new-tokens, --sample, --temperature, --top-k, --top-p and --beams: expected --model DIR "
      "as well");
  check_generation(options.generation, options.stop);
  check(options.generation.num_beams.value_or(1) == 1 || !options.generation.sample.value_or(false),
        "--beams: beams search for the likeliest answer, so --sample cannot be given as well");
  check(!options.interactive || (paths.prompts.empty() && paths.answers.empty()),
        "--interactive: reads the standard input, so neither --prompts nor --answers can be given");
  check(!options.interactive || options.generation.num_beams.value_or(1) == 1,
        "--interactive: shows tokens as they come, so --beams cannot be given as well");
  if (options.interactive) return options;
  check(!paths.prompts.empty() && !paths.answers.empty(), "--prompts and --answers: expected both");
  check(options.memory >= 0, "--memory: expected a number of bytes, 0 or more");
  check(options.max_bytes > 0 && model.context > 0 && model.layers > 0,
        "--bytes, --context and --layers: expected whole numbers from 1");
  check(model.heads > 0 && model.width > 0 && model.width % (2 * model.heads) == 0,
        "--width: expected an even multiple of --heads");
  return options;
}

std::string usage() {
  Options options;
  Paths paths;
  std::ostringstream out;
  out << "usage: generate --prompts FILE --answers FILE [option...]    completes each line of a file, on any number of "
         "ranks\n       generate --model DIR --interactive [option...]       completes what you type\n\n"
      << described(options, paths);
  return out.str();
}

}  // namespace generate
