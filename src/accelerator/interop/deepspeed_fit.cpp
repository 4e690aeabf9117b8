// Whether a DeepSpeed configuration fits the run.
#include <hortator/interop/deepspeed.hpp>

#include "accelerator/channels/channels.hpp"
#include "accelerator/training/training.hpp"
#include "core/log.hpp"
#include "core/text/text.hpp"

namespace hortator {
namespace {

/// "train_batch_size is 32, the run has 64"
void compare_numbers(std::vector<std::string>& problems, const char* name, std::optional<std::int64_t>& said,
                     std::int64_t actual) {
  if (said && *said != actual) problems.push_back(text::concat(name, " is ", *said, ", the run has ", actual));
  said = actual;
}

}  // namespace

void DeepspeedConfig::fill(const Accelerator& accelerator, std::int64_t batch_size) {
  std::vector<std::string> problems;
  const auto steps = accelerator.gradient_accumulation_steps();
  std::optional<std::int64_t> said = options.gradient_accumulation_steps;
  compare_numbers(problems, "gradient_accumulation_steps", said, steps);
  compare_numbers(problems, "train_micro_batch_size_per_gpu", train_micro_batch_size_per_gpu, batch_size);
  compare_numbers(problems, "train_batch_size", train_batch_size,
                  batch_size * steps * accelerator::Training::of(accelerator).data().size());
  if (!problems.empty()) {
    throw UsageError({.what = "The DeepSpeed configuration does not fit the run: " + text::join(problems, "; "),
                      .why = "it would not be the training that was asked for",
                      .hint = "say \"auto\" in the file, or change the run"});
  }
  if (gradient_clipping) {
    log::info("the DeepSpeed configuration clips gradients at ", *gradient_clipping,
              ": here the loop does, by accelerator.clip_grad_norm_(model.parameters(), *config.gradient_clipping)");
  }
  if (!ignored.empty()) log::info("without effect here, of the DeepSpeed configuration: ", text::join(ignored));
  if (!unknown.empty() && accelerator.is_main_process())
    log::warn("unknown entries in the DeepSpeed configuration: ", text::join(unknown));
}

}  // namespace hortator
