#include "accelerator/scopes/own_model.hpp"

#include <hortator/error.hpp>

#include "accelerator/prepared/prepared.hpp"
#include "accelerator/training/training.hpp"
#include "core/text/text.hpp"

namespace hortator::accelerator {

std::shared_ptr<step::ModelCore> own_model(const Training& training, const ModelBase& model, std::string_view caller,
                                           std::string_view why) {
  model.core().check_alive();
  for (const auto& ours : training.prepared.models()) {
    if (ours.get() == &model.core()) return ours;
  }
  throw UsageError({.what = text::concat(caller, " got a model that another Accelerator has prepared"),
                    .why = std::string(why),
                    .hint = "prepare it with this Accelerator"});
}

}  // namespace hortator::accelerator
