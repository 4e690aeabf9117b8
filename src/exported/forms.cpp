#include "exported/forms.hpp"

#include <hortator/error.hpp>

#include "exported/file/fault.hpp"

namespace hortator::exported {

ExportedOutputs Forms::run(const std::vector<at::Tensor>& inputs, bool is_training) {
  const bool evaluates = !is_training && evaluation_ != nullptr;
  if (!is_training && !evaluates && program_->trains()) {
    throw UsageError({.what = "The exported model has no form for evaluation",
                      .why = "its only form has dropout or batch normalisation in training mode",
                      .hint = "write the file with export_for_hortator.py, which exports both forms, or call train()"});
  }
  try {
    return (evaluates ? *evaluation_ : *program_).run(inputs);
  } catch (const ExportFault& fault) {
    throw UsageError({.what = std::string("The exported model cannot run: ") + fault.what(), .hint = fault.hint()});
  }
}

}  // namespace hortator::exported
