// A run for TensorBoard's loader: tracked FOLDER STEPS SAVE_AFTER KILL_AFTER. Resumes from the newest checkpoint. 0
// means never.
#include <ATen/ATen.h>

#include <csignal>
#include <cstdlib>
#include <hortator/hortator.hpp>

namespace {

struct Count {
  std::int64_t value = 0;
  void save(hortator::StateWriter& out) const { out.put("value", value); }
  void load(const hortator::StateReader& in) { value = in.get<std::int64_t>("value"); }
};

}  // namespace

int main(int argc, char** argv) {
  return hortator::run(argc, argv, [&] {
    if (argc != 5) throw hortator::UsageError({.what = "usage: tracked FOLDER STEPS SAVE_AFTER KILL_AFTER"});
    const auto number = [&](int i) { return std::atoll(argv[i]); };
    hortator::Accelerator accelerator(
        {.log_with = {"tensorboard", "jsonl", "csv", "mlflow"}, .project = {.dir = argv[1]}});
    accelerator.init_trackers("run", {{"lr", 0.5}, {"name", "test"}});
    Count steps;
    accelerator.register_for_checkpointing("steps", steps);
    if (accelerator.has_checkpoint()) accelerator.load_state();
    while (steps.value < number(2)) {
      const auto step = steps.value++;
      accelerator.log({{"loss", 1.0 / static_cast<double>(step + 1)}, {"rate", step}}, step);
      if (step % 50 == 0) accelerator.get_tracker("tensorboard").log_text("words", "at " + std::to_string(step), step);
      if (steps.value == number(3)) accelerator.save_state();
      if (steps.value == number(4)) std::raise(SIGKILL);
    }
    auto& tensorboard = accelerator.get_tracker("tensorboard");
    tensorboard.log_histogram("numbers", at::arange(100), number(2));
    if (HORTATOR_TEST_PNG) tensorboard.log_images("image", at::full({3, 4, 6}, 0.5), number(2));
    accelerator.end_training();
  });
}
