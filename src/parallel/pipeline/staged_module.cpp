#include "parallel/pipeline/staged_module.hpp"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <hortator/error.hpp>
#include <iterator>
#include <utility>

#include "core/text/text.hpp"
#include "interception/claimed_operators.hpp"
#include "interception/claims.hpp"
#include "interception/dispatch_keys.hpp"
#include "interception/storage_memory.hpp"
#include "mpi/agree.hpp"
#include "mpi/collectives.hpp"
#include "mpi/rehearsed_world.hpp"

namespace hortator::parallel {

/// Refuses every use of parameters that this rank does not have.
class OtherStages final : public interception::StorageProvider, public std::enable_shared_from_this<OtherStages> {
 public:
  ~OtherStages() override { give_up(); }

  // Other tensors may share the storage that it has.
  void take(const at::Tensor& parameter, std::string name) {
    parameter.set_data(without_memory(parameter));
    const auto& storage = parameter.storage();
    const auto number = static_cast<int>(dropped_.size());
    interception::claim(storage, {.provider = this, .number = number});
    interception::add_key(parameter);
    dropped_.push_back({.parameter = parameter, .name = std::move(name)});
  }

  /// Gives all of them memory, without values.
  void lend() {
    for (const auto& one : dropped_) {
      const auto storage = one.parameter.storage();
      interception::own_memory(storage, interception::new_memory(storage.nbytes(), storage.device()));
      interception::disclaim(storage);
    }
  }
  void take_back() {
    for (std::size_t i = 0; i < dropped_.size(); ++i) {
      const auto storage = dropped_[i].parameter.storage();
      if (interception::claim_of(storage)) continue;  // lend() has not come to it
      interception::claim(storage, {.provider = this, .number = static_cast<int>(i)});
      interception::take_memory(storage, message);
    }
  }
  void give_up() noexcept {
    for (const auto& one : dropped_) {
      if (interception::claim_of(one.parameter.storage()).provider == this)
        interception::disclaim(one.parameter.storage());
    }
    dropped_.clear();
  }

  void enter(int number, interception::Access /*access*/) override { refuse(number); }
  void leave(int /*number*/) noexcept override {}
  void hand_over(int number, interception::Content /*content*/) override { refuse(number); }

 private:
  static constexpr auto* message = "The parameter belongs to another stage of the pipeline";

  static at::Tensor without_memory(const at::Tensor& parameter) {
    auto tensor = at::empty({0}, parameter.options().requires_grad(false));
    tensor.unsafeGetTensorImpl()->set_sizes_contiguous(parameter.sizes());
    tensor.storage().unsafeGetStorageImpl()->set_nbytes(parameter.nbytes());
    interception::take_memory(tensor.storage(), message);
    return tensor;
  }

  struct Dropped {
    at::Tensor parameter;
    std::string name;
  };

  [[noreturn]] void refuse(int number) const {
    throw UsageError(
        {.what = text::concat("The parameter ", text::quote(dropped_[static_cast<std::size_t>(number)].name),
                              " was used on a rank that does not have its stage of the pipeline"),
         .why = "the first stage has the parameters that are registered before the layers, the last one "
                "those after them",
         .hint = "register it where forward reads it, or name it in used_after_layers()"});
  }

  std::vector<Dropped> dropped_;
};

bool is_of_other_stage(const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.has_storage() || !interception::carries_key(tensor)) return false;
  return dynamic_cast<OtherStages*>(interception::claim_of(tensor).provider) != nullptr;
}

StagedModule::StagedModule(torch::nn::Module& module, const PipelineShape& shape, const RankGroup& ranks)
    : ranks_(ranks), shape_(shape), others_(std::make_shared<OtherStages>()) {
  mpi::all_or_none(ranks.host, [&] {
    interception::start_interception();
    map_ = map_stages(module, shape);
    for (const auto& item : module.named_parameters()) {
      all_names_.insert(item.key());
      const auto& stages = map_.stages_of.at(item.key());
      stages_of_[item.value().unsafeGetTensorImpl()].insert(stages.begin(), stages.end());
      if (names_.emplace(item.value().unsafeGetTensorImpl(), item.key()).second)
        parameters_.push_back({.name = item.key(), .tensor = item.value()});
    }
    for (const auto& item : module.named_buffers()) {
      if (item.value().defined()) buffers_.push_back({.name = item.key(), .tensor = item.value()});
    }
  });
  connect_shared();
}

StagedModule::~StagedModule() = default;

// One communicator for each set of ranks, in an order that is the same on all. @collective
void StagedModule::connect_shared() {
  std::map<std::vector<int>, std::vector<at::Tensor>> by_ranks;
  for (const auto& [name, tensor] : parameters_) {
    if (ranks_of(name).size() > 1) by_ranks[ranks_of(name)].push_back(tensor);
  }
  for (auto& [of_set, parameters] : by_ranks) {
    const auto& ranks = of_set;
    const bool is_one = std::ranges::find(ranks, ranks_.index()) != ranks.end();
    const mpi::ColorsOfAll colors([&ranks](int rank) { return std::ranges::find(ranks, rank) != ranks.end() ? 0 : 1; });
    auto group = ranks_.on_device.split(is_one ? 0 : 1, ranks_.index());
    if (is_one) shared_.push_back({.parameters = parameters, .ranks = std::move(group)});
  }
}

bool StagedModule::has(const std::string& name) const {
  const auto& ranks = ranks_of(name);
  return std::ranges::find(ranks, ranks_.index()) != ranks.end();
}

bool StagedModule::is_first_with(const at::Tensor& parameter) const {
  const auto found = names_.find(parameter.unsafeGetTensorImpl());
  return found != names_.end() && is_first_with(found->second);
}

std::vector<int> StagedModule::own_stages_of(const at::Tensor& parameter) const {
  std::vector<int> own;
  std::ranges::copy_if(stages_of(parameter), std::back_inserter(own),
                       [this](int stage) { return shape_.rank_of(stage) == ranks_.index(); });
  return own;
}

comm::Communicator* StagedModule::ranks_with(const at::Tensor& parameter) const {
  const auto has = [&](const Shared& shared) {
    return std::ranges::any_of(shared.parameters, [&](const auto& one) { return one.is_same(parameter); });
  };
  const auto found = std::ranges::find_if(shared_, has);
  return found == shared_.end() ? nullptr : found->ranks.get();
}

void StagedModule::drop(const at::Tensor& parameter) {
  const auto& name = names_.at(parameter.unsafeGetTensorImpl());
  if (has(name) || is_of_other_stage(parameter)) return;
  const at::NoGradGuard no_grad;
  parameter.mutable_grad().reset();
  others_->take(parameter, name);
}

void StagedModule::add_shared_gradients() const {
  const at::NoGradGuard no_grad;
  for (const auto& [parameters, ranks] : shared_) {
    for (const auto& parameter : parameters) {
      if (!parameter.requires_grad()) continue;
      auto& gradient = parameter.mutable_grad();
      if (!gradient.defined()) gradient = at::zeros_like(parameter);
      ranks->all_reduce(gradient, comm::ReduceOp::sum).wait();
    }
  }
}

void StagedModule::share_buffers() const {
  const at::NoGradGuard no_grad;
  for (const auto& [name, tensor] : buffers_)
    ranks_.communicator_of(tensor).broadcast(tensor.detach(), ranks_of(name).front()).wait();
}

void StagedModule::lend(const mpi::Communicator& all) {
  const at::NoGradGuard no_grad;
  is_lent_ = true;
  try {
    mpi::all_or_none(all, [this] { others_->lend(); });
  } catch (...) {
    take_back();
    throw;
  }
  share_buffers();
  for (const auto& [name, tensor] : parameters_)
    ranks_.on_device.broadcast(tensor.detach(), ranks_of(name).front()).wait();
}

at::Tensor StagedModule::values_on_all(const at::Tensor& parameter, const at::Tensor& mine) const {
  const auto values = mine.defined() ? mine.detach().contiguous() : at::empty(parameter.sizes(), parameter.options());
  ranks_.on_device.broadcast(values, ranks_of(name_of(parameter)).front()).wait();
  return values;
}

void StagedModule::give_back(const mpi::Communicator& all) {
  constexpr std::size_t own_references = 2;  // parameters_, and what others_ has dropped
  const auto is_used = [](const Named& one) {
    return parallel::is_of_other_stage(one.tensor) && one.tensor.use_count() > own_references;
  };
  if (mpi::all_reduce(all, std::ranges::any_of(parameters_, is_used) ? 1 : 0, mpi::Op::max) != 0) lend(all);
}

void StagedModule::take_back() {
  if (std::exchange(is_lent_, false)) others_->take_back();
}

}  // namespace hortator::parallel
