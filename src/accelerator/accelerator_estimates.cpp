#include <hortator/accelerator.hpp>
#include <hortator/error.hpp>
#include <iostream>

#include "accelerator/channels/channels.hpp"
#include "accelerator/training/training.hpp"
#include "bigmodel/estimate.hpp"
#include "core/environment/environment.hpp"
#include "core/text/text.hpp"
#include "runtime/ending/early_end.hpp"

namespace hortator {
namespace {

enum class Form { none, table, json };

Form asked_form(const core::Variables& variables) {
  const auto value = variables("HORTATOR_ESTIMATE");
  if (!value || value->empty()) return Form::none;
  if (*value == "json") return Form::json;
  if (const auto asked = text::parse_bool(*value)) return *asked ? Form::table : Form::none;
  throw UsageError({.what = "HORTATOR_ESTIMATE=" + *value + " is not a valid value",
                    .hint = "use 1 to print tables, json to print JSON"});
}

std::string training_type(Precision precision) {
  if (precision == Precision::bf16) return "bfloat16";
  return precision == Precision::fp16 ? "float16" : "float32";
}

}  // namespace

void Accelerator::estimate_if_asked(const std::vector<const torch::nn::Module*>& modules) const {
  const auto form = asked_form(core::process_variables());
  if (form == Form::none || modules.empty()) return;
  for (std::size_t i = 0; is_main_process() && i < modules.size(); ++i) {
    const auto estimate =
        bigmodel::estimate(bigmodel::tree_of(*modules[i]),
                           {.training_type = training_type(mixed_precision()), .ranks = training_->data().size()});
    const auto source = text::concat("model ", i);
    std::cout << (form == Form::json ? to_json(estimate, source) : table(estimate, source)) << std::flush;
  }
  throw runtime::EarlyEnd();
}

}  // namespace hortator
