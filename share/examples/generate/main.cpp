// Distributed inference: each rank completes its share of the prompts in batches, with a cache of keys and values. A
// checkpoint larger than the memory stays on disk and is loaded on demand, and ranks may divide a model among them.
// Runs as a single process, under mpirun and under srun.
#include <fstream>
#include <hortator/hortator.hpp>
#include <optional>
#include <vector>

#include "completion.hpp"
#include "interactive.hpp"
#include "measuring.hpp"
#include "options.hpp"
#include "pretrained.hpp"

namespace {

std::vector<std::string> read_lines(const std::filesystem::path& path) {
  std::ifstream in(path);
  if (!in) throw hortator::UsageError({.what = "Cannot read the prompts in '" + path.string() + "'"});
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

void write_lines(const std::filesystem::path& path, const std::vector<std::string>& lines) {
  std::ofstream out(path);
  for (const auto& line : lines) out << line << '\n';
  if (!out.flush()) throw hortator::Error({.what = "Cannot write the answers to '" + path.string() + "'"});
}

auto dispatch(const hortator::State& state, const generate::Options& options) {
  const auto empty = hortator::init_empty_weights([&] { return gpt::Gpt(options.model); });
  hortator::MaxMemory memory;
  if (options.memory > 0) memory[hortator::DevicePlacement::cpu()] = options.memory;
  return hortator::load_checkpoint_and_dispatch(state, empty, options.weights,
                                                {.max_memory = memory, .no_split_module_classes = {"Block"}});
}

/// Answers all prompts on all ranks and writes the answers.
template <typename Prompt, typename Complete>
void answer_all(const hortator::State& state, const generate::Options& options, const std::vector<Prompt>& prompts,
                Complete&& complete) {
  std::vector<std::string> answers;
  try {
    answers = hortator::answer_prompts(state, prompts, complete, options.answering);
  } catch (const hortator::IncompleteAnswers<std::string>& error) {  // an empty line for each prompt without an answer
    for (const auto& one : error.answers()) answers.push_back(one.value_or(""));
    state.on_main_process([&] { write_lines(options.answers, answers); });
    throw;
  }
  state.on_main_process([&] { write_lines(options.answers, answers); });
  state.print(answers.size(), " prompts answered by ", state.num_processes(), " ranks");
}

void answer(const generate::Options& options) {
  const hortator::State state({.cpu = options.cpu});
  hortator::set_seed(options.seed);
  std::optional<hortator::DispatchedModel<gpt::Gpt>> dispatched;
  if (!options.weights.empty()) dispatched.emplace(dispatch(state, options));
  auto model = dispatched ? dispatched->unwrap() : gpt::Gpt(options.model);
  if (!dispatched) model->to(state.device());

  const auto together = dispatched ? dispatched->together() : nullptr;
  answer_all(state, options, read_lines(options.prompts), [&](const std::vector<std::string>& batch) {
    return generate::complete(model, batch, options.max_bytes);
  });
}

void answer_with_checkpoint(const generate::Options& options) {
  hortator::Accelerator accelerator(
      {.cpu = options.cpu, .parallel = {.tensor = options.tensor, .pipeline = options.pipeline}});
  const generate::Completer completer(options, accelerator);
  const auto prompts = generate::numbered(read_lines(options.prompts));
  answer_all(accelerator, options, prompts,
             [&](const std::vector<generate::NumberedPrompt>& batch) { return completer.complete(batch); });
}

}  // namespace

int main(int argc, char** argv) {
  return hortator::run(argc, argv, [&] {
    const auto options = generate::parse_options(argc, argv);
    if (options.help) {
      hortator::State().print(generate::usage());
    } else if (!options.ids.empty()) {
      generate::write_outputs(options);
    } else if (!options.save.empty()) {
      generate::save(options);
    } else if (options.speed > 0 || !options.perplexity.empty()) {
      generate::measure(options);
    } else if (options.interactive) {
      generate::converse(options);
    } else if (!options.checkpoint.empty()) {
      answer_with_checkpoint(options);
    } else {
      answer(options);
    }
  });
}
