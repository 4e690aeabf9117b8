// Writes exported models whose parameters an Accelerator has divided among ranks.
#include <algorithm>
#include <hortator/accelerator.hpp>
#include <hortator/models/exported.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "accelerator/prepared/prepared.hpp"
#include "accelerator/rehearsal/rehearsal.hpp"
#include "accelerator/state/whole_parameter.hpp"
#include "accelerator/training/training.hpp"
#include "checkpoint/write/requirements.hpp"
#include "core/activity/activity.hpp"
#include "exported/forms.hpp"
#include "exported/saved_model.hpp"
#include "mpi/agree.hpp"

namespace hortator {
namespace accelerator {
namespace {

/// Gives the main process whole parameters in a fixed order, in which all ranks take part.
class ParametersInTurn {
 public:
  ParametersInTurn(const step::ModelCore& model, std::vector<exported::NamedTensor> parameters)
      : model_(model), parameters_(std::move(parameters)) {}

  /// The next parameter, whole where it is kept. @collective
  at::Tensor next(bool keeps) {
    is_exchanging_ = true;
    const auto& [name, tensor] = parameters_[next_++];
    auto whole = whole_copy(model_, name, tensor, keeps);
    is_exchanging_ = false;
    return whole;
  }
  /// Takes part in the rest. @collective
  void finish() {
    while (next_ < parameters_.size()) next(/*keeps=*/false);
  }
  /// Whether next() has thrown: other ranks may wait for this one.
  bool has_failed() const { return is_exchanging_; }

 private:
  const step::ModelCore& model_;
  std::vector<exported::NamedTensor> parameters_;
  std::size_t next_ = 0;
  bool is_exchanging_ = false;
};

/// The prepared model that has a parameter of the module, or null.
std::shared_ptr<step::ModelCore> model_with(const Training& training, const torch::nn::Module& module) {
  const auto wanted = module.parameters();
  if (wanted.empty()) return nullptr;
  for (const auto& model : training.prepared.models()) {
    if (model->is_replaced()) continue;
    const auto all = model->module().parameters();
    if (std::ranges::any_of(all, [&](const auto& one) { return one.is_same(wanted.front()); })) return model;
  }
  return nullptr;
}

std::string outline(const std::vector<exported::NamedTensor>& parameters) {
  std::string names;
  for (const auto& one : parameters) names += one.name + "\n";
  return names;
}

/// Writes on the main process, and returns why that has failed.
mpi::LocalOutcome write_on_main(const exported::ArchiveCopy& copy, const std::filesystem::path& file,
                                ParametersInTurn& turn) {
  try {
    if (file.has_parent_path()) std::filesystem::create_directories(file.parent_path());
    copy.write(file, [&](const exported::NamedTensor& /*parameter*/) { return turn.next(/*keeps=*/true); });
    return {};
  } catch (const std::exception& error) {
    if (turn.has_failed()) throw;
    return mpi::LocalOutcome::of(error);  // the other ranks still exchange parameters
  }
}

/// @collective
void write_prepared(Training& training, step::ModelCore& model, const exported::ArchiveCopy& copy,
                    const std::filesystem::path& file) {
  mpi::all_or_none(training.host(), [&] {
    model.check_alive();
    model.require_equal("write()");
  });
  model.share_buffers();
  if (model.staged() != nullptr && !model.is_lent()) model.staged()->share_buffers();
  mpi::LocalOutcome outcome;
  training.exchange_together([&] {
    ParametersInTurn turn(model, copy.parameters());
    if (training.host().rank() == 0) outcome = write_on_main(copy, file, turn);
    turn.finish();
  });
  mpi::agree(training.host(), outcome);
}

}  // namespace
}  // namespace accelerator

void ExportedModule::write(Accelerator& accelerator, const std::filesystem::path& file) const {
  auto& training = accelerator::Training::of(accelerator);
  const activity::PhaseScope phase(activity::Phase::checkpoint);
  accelerator::end_rehearsal_before_writing();
  const auto target = checkpoint::agreed_target(training.host(), file);
  std::optional<exported::ArchiveCopy> copy;
  mpi::all_or_none_alike(training.host(), "the exported model to write", [&] {
    copy.emplace(forms_->tensors().archive(), forms_->tensors());
    return accelerator::outline(copy->parameters());
  });
  if (const auto model = accelerator::model_with(training, *this))
    return accelerator::write_prepared(training, *model, *copy, target);
  mpi::all_or_none(training.host(), [&] {
    if (accelerator.is_main_process()) write(target);
  });
}

}  // namespace hortator
