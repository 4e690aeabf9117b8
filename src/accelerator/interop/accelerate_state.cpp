#include "accelerator/interop/accelerate_state.hpp"

#include <algorithm>
#include <memory>
#include <optional>

#include "accelerator/channels/channels.hpp"
#include "accelerator/channels/random_state.hpp"
#include "accelerator/interop/accelerate/distributed_state.hpp"
#include "accelerator/interop/accelerate/folder.hpp"
#include "accelerator/interop/accelerate/optimizer.hpp"
#include "accelerator/interop/accelerate/python_values.hpp"
#include "accelerator/interop/accelerate/schedule.hpp"
#include "accelerator/interop/deepspeed/zero_optimizer.hpp"
#include "accelerator/prepared/prepared.hpp"
#include "accelerator/state/load_policy.hpp"
#include "accelerator/state/sharded_state.hpp"
#include "accelerator/state/snapshot.hpp"
#include "accelerator/training/run_output.hpp"
#include "accelerator/training/step_control.hpp"
#include "accelerator/training/training.hpp"
#include "accelerator/weights/loading.hpp"
#include "accelerator/weights/module_filling.hpp"
#include "core/text/text.hpp"
#include "formats/torch/pickle/file.hpp"
#include "machine/memory/recycling_allocator.hpp"
#include "mpi/agree.hpp"
#include "weights/deepspeed/zero_folder.hpp"

namespace hortator::accelerator {
namespace {

namespace fs = std::filesystem;
using formats::ForeignObjects;
using formats::PickleFile;

/// The converted states, before anything is changed.
struct Converted {
  std::vector<std::unique_ptr<Loading>> models = {};
  std::vector<StateDict> optimizers = {};
  std::vector<StateDict> schedules = {};
  std::vector<StateDict> objects = {};
  StateDict scaler = {};
  StateDict random = {};
};

std::unique_ptr<formats::PickleSource> open_state(const fs::path& path) {
  if (weights::find_zero_folder(path)) return std::make_unique<ZeroOptimizer>(path);
  if (fs::is_directory(path)) return std::make_unique<DistributedState>(path);
  return std::make_unique<PickleFile>(path, ForeignObjects::kept);
}

std::string outline(const Converted& all) {
  std::string outline;
  for (const auto& model : all.models) outline += model->outline() + '\n';
  return outline;
}

class FolderConversion {
 public:
  FolderConversion(Training& training, const fs::path& folder, bool strict)
      : training_(training),
        folder_(folder),
        strict_(strict),
        policy_(strict, [this](const std::string& problem) { left_.push_back(problem); }) {}

  Converted convert() {
    require_whole();
    policy_.attempt([&] { check_counts(); });
    Converted all;
    for (std::size_t i = 0; i < std::min(training_.prepared.models().size(), folder_.models()); ++i) {
      const auto& model = *training_.prepared.models()[i];
      const parallel::WholeShapes shapes(divided_in(&model));
      all.models.push_back(
          std::make_unique<Loading>(model.module(), folder_.model(i), LoadWeightsOptions{.strict = strict_}));
      if (!all.models[i]->omissions().empty()) left_.push_back(all.models[i]->omissions());
    }
    const auto names = training_.prepared.stepped_names();
    const auto order = names_in_order();
    for (std::size_t i = 0; i < std::min(training_.prepared.optimizers().size(), folder_.optimizers()); ++i) {
      policy_.attempt([&] {
        const auto state = open_state(folder_.optimizer(i));
        const auto& optimizer = *training_.prepared.optimizers()[i];
        auto own =
            from_python(*state, optimizer.optimizer(), names, order, own_parts(training_, optimizer, names), left_);
        step::check_optimizer(optimizer.optimizer(), names, own);
        all.optimizers.push_back(std::move(own));
      });
      all.optimizers.resize(i + 1);
    }
    for (std::size_t i = 0; i < std::min(training_.prepared.schedules().size(), folder_.schedules()); ++i) {
      policy_.attempt([&] {
        const PickleFile file(folder_.schedule(i), ForeignObjects::kept);
        all.schedules.push_back(schedule_from_python(file, training_.prepared.schedules()[i].state()));
      });
      all.schedules.resize(i + 1);
    }
    for (std::size_t i = 0; i < std::min(training_.prepared.objects().size(), folder_.objects()); ++i) {
      policy_.attempt(
          [&] { all.objects.push_back(object_from_python(PickleFile(folder_.object(i), ForeignObjects::kept))); });
      all.objects.resize(i + 1);
    }
    if (fs::exists(folder_.scaler())) all.scaler = scaler_from_python(PickleFile(folder_.scaler()));
    convert_micro_steps();
    convert_random(all.random);
    list_loaders();
    return all;
  }

  void put_back(const Converted& all) {
    const auto names = training_.prepared.stepped_names();
    for (std::size_t i = 0; i < all.optimizers.size(); ++i) {
      if (all.optimizers[i].empty()) continue;
      auto& optimizer = *training_.prepared.optimizers()[i];
      policy_.attempt([&] { optimizer.load(names, all.optimizers[i]); });
    }
    for (std::size_t i = 0; i < all.schedules.size(); ++i) {
      if (!all.schedules[i].empty()) training_.prepared.schedules()[i].load(all.schedules[i]);
    }
    for (std::size_t i = 0; i < all.objects.size(); ++i) {
      policy_.attempt([&] { training_.prepared.objects()[i].load(all.objects[i]); });
    }
    restore_scaler(training_, all.scaler, training_.host().rank());
    if (micro_steps_) training_.control.accumulation().resume_at({.taken = *micro_steps_});
    if (!all.random.empty()) restore_random_state(training_.device(), all.random);
    if (const auto number = checkpoint_number(folder_.path())) training_.output.project().set_iteration(*number + 1);
  }

  std::vector<std::string> left() && { return std::move(left_); }

 private:
  void require_whole() const {
    const auto pieces = folder_.pieces();
    const bool has_optimizers = !strict_ || folder_.optimizers() >= training_.prepared.optimizers().size();
    if (!pieces || (folder_.models() > 0 && has_optimizers)) return;
    throw UsageError(
        {.what = text::concat(folder_.path(), " holds a state in pieces of ", pieces->library, ": ", pieces->name),
         .why = "they cannot be put together here",
         .hint = pieces->way});
  }

  void check_counts() const {
    const auto check = [&](const char* what, std::size_t saved, std::size_t prepared) {
      if (saved == prepared) return;
      throw Error({.what = text::concat(folder_.path(), " holds ", saved, " ", what, ", prepared are ", prepared),
                   .why = "a resumed run must continue with everything that was saved",
                   .hint = "prepare the same objects in the same order before load_state()"});
    };
    check("models", folder_.models(), training_.prepared.models().size());
    check("optimizers", folder_.optimizers(), training_.prepared.optimizers().size());
    check("schedules", folder_.schedules(), training_.prepared.schedules().size());
    check("registered objects", folder_.objects(), training_.prepared.objects().size());
  }

  /// The names in the first model's file if it keeps Python's order; safetensors sorts them.
  std::vector<std::string> names_in_order() const {
    const auto file = folder_.model(0);
    return file.extension() == ".bin" ? PickleFile(file).names() : std::vector<std::string>();
  }

  /// Every process writes the same count.
  void convert_micro_steps() {
    const auto processes = static_cast<int>(folder_.processes());
    if (processes == 0) return;
    const PickleFile file(folder_.random_states(std::min(training_.host().rank(), processes - 1)),
                          ForeignObjects::kept);
    const auto* step = file.value().find("step");
    if (step != nullptr) micro_steps_ = to_whole(file, *step);
    const auto a_step = std::max<std::int64_t>(training_.control.accumulation().steps(), 1);
    const auto lost = micro_steps_.value_or(0) % a_step;
    if (lost != 0) left_.push_back(text::concat("the gradients of ", lost, " micro-steps, which Python does not save"));
  }

  void convert_random(StateDict& random) {
    const auto processes = folder_.processes();
    const auto& host = training_.host();
    if (processes != static_cast<std::size_t>(host.size())) {
      left_.push_back(
          text::concat("the random numbers: ", processes, " processes wrote theirs, these are ", host.size()));
      return;
    }
    const PickleFile file(folder_.random_states(host.rank()), ForeignObjects::kept);
    left_.emplace_back("the random numbers of Python and NumPy: this process draws none of them");
    if (const auto* cpu = file.value().find("torch_manual_seed")) {
      if (const auto state = to_tensor(file, *cpu); state.defined()) random.put("cpu", state);
    }
    const auto* devices = file.value().find("torch_cuda_manual_seed");
    const auto* states = devices != nullptr ? items_of(*devices) : nullptr;
    const auto index = static_cast<std::size_t>(training_.device().has_index() ? training_.device().index() : 0);
    if (states != nullptr && index < states->size()) random.put("device", to_tensor(file, (*states)[index]));
  }

  void list_loaders() {
    for (const auto& name : folder_.loaders()) left_.push_back(text::concat(name, ": loaders keep other states here"));
    if (!training_.prepared.loaders().empty())
      left_.emplace_back("the loaders' positions: they begin an epoch (use skip_first_batches to resume within it)");
  }

  Training& training_;
  AccelerateFolder folder_;
  bool strict_;
  LoadPolicy policy_;
  std::vector<std::string> left_;
  std::optional<std::int64_t> micro_steps_;
};

}  // namespace

std::vector<std::string> restore_from_accelerate(Training& training, const fs::path& folder, bool strict) {
  const machine::RecyclingAllocator blocks(0);  // whole moments leave no holes
  const auto& host = training.host();
  FolderConversion conversion(training, folder, strict);
  Converted converted;
  mpi::all_or_none(host, [&] { converted = conversion.convert(); });
  mpi::same_on_all(host, outline(converted), "what is loaded into the models");
  mpi::all_or_none(host, [&] { training.control.settle_steps(); });
  for (std::size_t i = 0; i < converted.models.size(); ++i)
    fill_module(*converted.models[i], training.prepared.models()[i].get(), training.channels, /*each_reads=*/true);
  mpi::all_or_none(host, [&] { conversion.put_back(converted); });
  training.prepared.divide_moments();  // of models whose parameters the user has lent
  return std::move(conversion).left();
}

}  // namespace hortator::accelerator
