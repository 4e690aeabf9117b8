// Automatic checkpoint naming: which folders are created, removed and loaded.
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <hortator/hortator.hpp>

#include "accelerator/training/run_output.hpp"
#include "accelerator/training/training.hpp"
#include "replay.hpp"

namespace hortator::golden {
namespace {

namespace fs = std::filesystem;

/// The project folder of a case.
class Folder {
 public:
  Folder() : path_(fs::temp_directory_path() / ("golden_naming_" + std::to_string(getpid()))) { fs::remove_all(path_); }
  ~Folder() { fs::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const fs::path& path() const { return path_; }

  json names() const {
    auto names = json::array();
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(path_ / "checkpoints", none))
      names.push_back(entry.path().filename());
    const auto number = [](const json& name) { return accelerator::checkpoint_number(name.get<std::string>()); };
    std::sort(names.begin(), names.end(), [&](const json& a, const json& b) { return number(a) < number(b); });
    return names;
  }

 private:
  fs::path path_;
};

/// One run: an Accelerator with something to save.
class Run {
 public:
  Run(const fs::path& project, const json& total_limit, std::int64_t iteration = 0)
      : accelerator_({.cpu = true,
                      .project = {.dir = project,
                                  .automatic_checkpoint_naming = true,
                                  .iteration = iteration,
                                  .total_limit = total_limit.is_null() ? std::nullopt
                                                                       : std::optional<std::int64_t>(total_limit)}}) {
    accelerator_.prepare(net_);
  }
  std::string save() { return accelerator_.save_state().filename(); }
  void load() { accelerator_.load_state(); }
  std::int64_t iteration() const { return accelerator::Training::of(accelerator_).output.project().iteration(); }
  fs::path latest() const { return accelerator::Training::of(accelerator_).output.project().checkpoints().front(); }

 private:
  Accelerator accelerator_;
  torch::nn::Linear net_{1, 1};
};

bool is_checkpoint_naming(const json& file) {
  const auto& first = file.at("cases").front();
  return first.contains("after_each") || first.contains("saves_of_first_run") || first.contains("layout");
}

// In Accelerate a new run counts from 0 again, whatever it has loaded.
Outcome judge_one_run(const json& one) {
  const Folder folder;
  const std::int64_t start = one.at("start_iteration");
  const std::int64_t saves = one.at("saves");
  {
    Run run(folder.path(), one.at("total_limit"), start);
    for (const auto& names : one.at("after_each")) {
      run.save();
      if (folder.names() != names) return compare("the folders", folder.names(), names);
    }
  }
  Run resumed(folder.path(), one.at("total_limit"));
  resumed.load();
  const auto next = start + saves;
  if (resumed.iteration() != next) return compare("the number after loading", resumed.iteration(), next);
  const auto saved = resumed.save();
  if (saved != "checkpoint_" + std::to_string(next)) return differs("the next save is " + saved);
  return one.at("iteration_after_load_state_in_a_new_run") == next ? equal() : on_purpose("the_number_is_restored");
}

// In Accelerate a second run removes its own checkpoints, or ends with an error. In Hortator it continues the numbers.
Outcome judge_two_runs(const json& one) {
  const Folder folder;
  const auto save = [](Run& run, const json& times) {
    std::string last;
    for (int i = 0; i < times.get<int>(); ++i) last = run.save();
    return last;
  };
  {
    Run first(folder.path(), one.at("total_limit"));
    save(first, one.at("saves_of_first_run"));
  }
  const auto after_first = one.at("directory_after_each").front();
  if (folder.names() != after_first) return compare("the folders of the first run", folder.names(), after_first);
  Run second(folder.path(), one.at("total_limit"));
  second.load();
  const auto last = save(second, one.at("saves_of_second_run"));
  if (second.latest().filename() != last)
    return differs("the newest is " + last + ", loaded would be " + second.latest().filename().string());
  const auto number = one.at("saves_of_first_run").get<int>() + one.at("saves_of_second_run").get<int>() - 1;
  return last == "checkpoint_" + std::to_string(number) ? on_purpose("a_new_run_counts_on")
                                                        : differs("the newest is " + last);
}

struct Number {
  double value = 0;
  void save(StateWriter& out) const { out.put("value", value); }
  void load(const StateReader& in) { value = in.get<double>("value"); }
};

// Hortator has its own file format: checks that everything for which Accelerate has a file is restored.
Outcome judge_layout() {
  const Folder folder;
  Accelerator accelerator({.cpu = true, .project = {.dir = folder.path()}});
  std::array<torch::nn::Linear, 2> nets = {torch::nn::Linear(1, 1), torch::nn::Linear(1, 1)};
  std::array<torch::optim::SGD, 2> sgds = {torch::optim::SGD(nets[0]->parameters(), 0.5),
                                           torch::optim::SGD(nets[1]->parameters(), 0.25)};
  accelerator.prepare(nets[0], nets[1], sgds[0], sgds[1]);
  auto schedule = accelerator.prepare(linear_warmup(sgds[0], {.warmup_steps = 4, .total_steps = 8}));
  std::array<Number, 2> numbers = {Number{1.5}, Number{2.5}};
  accelerator.register_for_checkpointing("first", numbers[0]);
  accelerator.register_for_checkpointing("second", numbers[1]);
  schedule.step();
  const auto all = [&] {
    return json{nets[0]->weight.item<double>(),
                nets[1]->weight.item<double>(),
                sgds[0].param_groups()[0].options().get_lr(),
                sgds[1].param_groups()[0].options().get_lr(),
                schedule.last_lr(),
                numbers[0].value,
                numbers[1].value};
  };
  const auto saved = all();
  accelerator.save_state();
  const at::NoGradGuard no_grad;
  for (auto& net : nets) net->weight.fill_(7);
  for (auto& sgd : sgds) sgd.param_groups()[0].options().set_lr(7);
  for (auto& number : numbers) number.value = 7;
  schedule.step();
  accelerator.load_state();
  return all() == saved ? on_purpose("files_of_our_own") : compare("what was saved", all(), saved);
}

// Accelerate removes old checkpoints before it saves, so that one is left. Hortator rejects a limit of 0.
Outcome judge_no_room(const json& one) {
  const Folder folder;
  try {
    const Run run(folder.path(), one.at("total_limit"));
  } catch (const UsageError& error) {
    const bool is_about_it = std::string_view(error.what()).find("total_limit is 0") != std::string_view::npos;
    return is_about_it ? on_purpose("a_limit_leaves_room_for_one") : differs(error.what());
  }
  return differs("a total_limit of 0 was accepted");
}

Outcome judge_checkpoint_naming(const json& one, const json&) {
  if (one.value("total_limit", json()) == 0) return judge_no_room(one);
  if (one.contains("layout")) return judge_layout();
  return one.contains("after_each") ? judge_one_run(one) : judge_two_runs(one);
}

}  // namespace

Format checkpoint_naming() {
  return {.name = "checkpoint_naming",
          .recognises = is_checkpoint_naming,
          .world = [](const json&) { return 1; },
          .judge = judge_checkpoint_naming};
}

}  // namespace hortator::golden
