#include <algorithm>
#include <hortator/accelerator.hpp>
#include <hortator/error.hpp>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "accelerator/channels/channels.hpp"
#include "accelerator/prepared/prepared.hpp"
#include "accelerator/rehearsal/rehearsal.hpp"
#include "accelerator/state/divided_state.hpp"
#include "accelerator/state/staged_state.hpp"
#include "accelerator/training/run_output.hpp"
#include "accelerator/training/training.hpp"
#include "accelerator/weights/floating_type.hpp"
#include "checkpoint/memory/node_copies.hpp"
#include "checkpoint/write/requirements.hpp"
#include "core/activity/activity.hpp"
#include "core/log.hpp"
#include "core/text/text.hpp"
#include "core/text/units.hpp"
#include "formats/file/raw_file.hpp"
#include "formats/file/replacement.hpp"
#include "formats/safetensors/writer.hpp"
#include "formats/torch/pickle/writer.hpp"
#include "interception/weight_operators.hpp"
#include "mpi/agree.hpp"
#include "mpi/collectives.hpp"
#include "paging/stores/cast_store.hpp"
#include "weights/module_weights.hpp"
#include "weights/weight_folder.hpp"
#include "weights/weight_shards.hpp"

namespace hortator {
namespace accelerator {
namespace {

namespace fs = std::filesystem;

/// What this rank writes of a module's parameters that no rank has as a whole.
struct OwnedShards {
  parallel::ShardedModel* sharded = nullptr;                    ///< that has sliced them; null if there are none
  bool writes = true;                                           ///< false if another rank has the same slices
  std::map<const void*, formats::TensorSlice> of_divided = {};  ///< by TensorImpl
  std::map<const void*, at::Tensor> buffers = {};               ///< rank 0's, by TensorImpl, where ranks have their own
};

OwnedShards owned_shards(const Training& training, const torch::nn::Module& module) {
  for (const auto& model : training.prepared.models()) {
    auto* sharded = model->sharded();
    if (&model->module() != &module || sharded == nullptr || !sharded->is_any_sharded() || sharded->is_lent()) continue;
    return {.sharded = sharded, .writes = training.channels.zero()->counts(training.host().rank())};
  }
  return {};
}

/// Tied weights among those that are chosen stay tied.
std::vector<weights::ModuleWeight> chosen_weights(const torch::nn::Module& module, bool only_trainable) {
  auto all = weights::weights_of(module);
  if (!only_trainable) return all;
  std::vector<weights::ModuleWeight> chosen;
  std::map<std::size_t, std::size_t> place_of;  // of first occurrences
  for (const auto& one : all) {
    if (!one.tensor.requires_grad()) continue;
    const auto place = place_of.emplace(one.first, chosen.size()).first->second;
    chosen.push_back({.name = one.name, .tensor = one.tensor, .first = place});
  }
  if (chosen.empty()) {
    throw UsageError({.what = "save_model() was called with only_trainable, and the model has no trainable parameters",
                      .why = "all of them are frozen, so that nothing would be written",
                      .hint = "call requires_grad_() on what you train, or leave only_trainable out"});
  }
  return chosen;
}

/// The plan by which a model is written to files.
class Saving {
 public:
  Saving(const torch::nn::Module& module, OwnedShards sharded, const SaveModelOptions& options)
      : sharded_(std::move(sharded)),
        dtype_(options.dtype),
        safe_(options.safe_serialization),
        names_(safe_ ? weights::WeightFileNames{}
                     : weights::WeightFileNames{.stem = "pytorch_model", .extension = ".bin"}) {
    require_floating(dtype_);
    const auto most = static_cast<std::int64_t>(units::parse_bytes(options.max_shard_size));
    take(chosen_weights(module, options.only_trainable), options.rename);
    shards_ = weights::shard_weights(weights_, most, names_);
    if (safe_) require_storable();
  }

  const weights::WeightFileNames& names() const { return names_; }
  const weights::WeightShards& shards() const { return shards_; }
  const std::vector<weights::WeightToSave>& weights() const { return weights_; }
  /// The names that are not written, since safetensors files hold each tensor once.
  const std::vector<std::string>& left_out() const { return left_out_; }
  std::string outline() const {
    std::vector<std::string> lines;
    for (const auto& file : shards_.files) {
      for (const auto i : file.weights)
        lines.push_back(text::concat(file.name, weights_[i].name, formats::to_string(spec_of(tensors_[i]))));
    }
    return text::join(lines);
  }

  /// @collective
  void write(const mpi::Communicator& comm, const weights::WeightFolder& folder) const {
    if (safe_) return write_safetensors(comm, folder);
    mpi::all_or_none(comm, [&] { write_pickles(comm, folder); });
  }

 private:
  formats::TensorSpec spec_of(const at::Tensor& tensor) const {
    return {.type = type_with(dtype_, tensor), .shape = tensor.sizes().vec()};
  }
  at::Tensor as_written(const std::string& name, const at::Tensor& values) const {
    const auto type = type_with(dtype_, values);
    paging::require_fits(name, values.detach(), type,
                         "choose a type with a larger range, such as at::kBFloat16, for .dtype");
    return values.detach().to(type);
  }

  void take(const std::vector<weights::ModuleWeight>& all, const Renaming& rename) {
    std::vector<std::size_t> place_of(all.size());
    std::set<std::string> taken;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto name = rename(all[i].name);
      require_values(all[i]);
      if (safe_ && all[i].first != i) {
        left_out_.push_back(name);
        continue;
      }
      if (!taken.insert(name).second) {
        throw UsageError({.what = text::concat("Two tensors of the model become ", text::quote(name)),
                          .hint = "look at SaveModelOptions::rename"});
      }
      place_of[i] = weights_.size();
      weights_.push_back({.name = name,
                          .bytes = spec_of(all[i].tensor).bytes(),
                          .shares = all[i].first == i ? std::nullopt : std::optional(place_of[all[i].first])});
      const auto of_first = sharded_.buffers.find(all[i].tensor.unsafeGetTensorImpl());
      tensors_.push_back(of_first == sharded_.buffers.end() ? all[i].tensor : of_first->second);
    }
    if (weights_.empty()) throw UsageError({.what = "The model has no parameters and no buffers to save"});
  }

  static void require_values(const weights::ModuleWeight& weight) {
    if (interception::is_packed(weight.tensor)) {
      throw UsageError(
          {.what = text::concat("save_model() got a model whose parameter ", text::quote(weight.name),
                                " was packed by quantise()"),
           .why = "only models::save_pretrained() writes packed weights",
           .hint = "call save_pretrained() on one rank before prepare(); save adapters by save_adapter()"});
    }
    if (!weight.tensor.is_meta()) return;
    throw UsageError(
        {.what = text::concat("The tensor ", text::quote(weight.name), " of the model is on the meta device"),
         .why = "it has no values that could be saved"});
  }

  formats::SafetensorsPlan plan_of(const weights::WeightFile& file) const {
    std::map<std::string, formats::TensorSpec> specs;
    for (const auto i : file.weights) specs.emplace(weights_[i].name, spec_of(tensors_[i]));
    return formats::plan_safetensors(specs);
  }

  void require_storable() const {
    for (const auto& file : shards_.files) plan_of(file);
  }

  void write_safetensors(const mpi::Communicator& comm, const weights::WeightFolder& folder) const {
    std::map<std::string, at::Tensor> by_name;
    for (std::size_t i = 0; i < weights_.size(); ++i) by_name.emplace(weights_[i].name, tensors_[i]);
    std::vector<formats::SafetensorsOutput> outputs;
    for (const auto& file : shards_.files) {
      auto plan = plan_of(file);
      outputs.push_back({.path = folder.aside(file.name), .plan = std::move(plan)});
    }
    formats::write_safetensors(
        comm, outputs, [&](const std::string& name) { return as_written(name, by_name.at(name)); }, {},
        [&](const std::string& name) { return written_part_of(name, by_name.at(name)); });
  }

  std::optional<formats::TensorSlice> written_part_of(const std::string& name, const at::Tensor& tensor) const {
    auto part = part_of(tensor);
    if (part && part->values.defined()) part->values = as_written(name, part->values);
    return part;
  }

  std::optional<formats::TensorSlice> part_of(const at::Tensor& tensor) const {
    const auto divided = sharded_.of_divided.find(tensor.unsafeGetTensorImpl());
    if (divided != sharded_.of_divided.end()) return divided->second;
    if (sharded_.sharded == nullptr) return {};
    const auto found = sharded_.sharded->find(tensor);
    if (!found || !found.is_sharded()) return {};
    if (!sharded_.writes) return formats::TensorSlice();
    return formats::TensorSlice{.elements = found.owned(), .values = found.published_slice()};
  }

  /// Distributes whole files to the ranks.
  void write_pickles(const mpi::Communicator& comm, const weights::WeightFolder& folder) const {
    const auto ranks = static_cast<std::size_t>(comm.size());
    for (auto i = static_cast<std::size_t>(comm.rank()); i < shards_.files.size(); i += ranks) {
      formats::NamedTensors tensors;
      std::map<std::size_t, at::Tensor> converted;  // tied weights are one tensor in the file
      for (const auto weight : shards_.files[i].weights) {
        const auto first = weights_[weight].shares.value_or(weight);
        if (!converted.contains(first)) converted.emplace(first, as_written(weights_[first].name, tensors_[first]));
        tensors.emplace_back(weights_[weight].name, converted.at(first));
      }
      formats::write_pickle(folder.aside(shards_.files[i].name), tensors);
    }
  }

  OwnedShards sharded_;
  std::optional<at::ScalarType> dtype_;
  bool safe_;
  weights::WeightFileNames names_;
  std::vector<weights::WeightToSave> weights_;
  std::vector<at::Tensor> tensors_;
  std::vector<std::string> left_out_;
  weights::WeightShards shards_;
};

/// The ranks that write a folder together: all of the run, or those of each node, where each has a folder of its own.
struct Writers {
  const mpi::Communicator& all;
  const mpi::Communicator& ranks;
  bool on_each_node = false;
};

/// Nodes begin one after the other, so that one that shares the folder with the first sees what that has begun.
/// @collective
void begin(const Writers& writers, const weights::WeightFolder& folder, const std::string& first_file) {
  const auto begun = folder.aside(first_file);
  const bool is_first = writers.all.rank() == 0;
  mpi::all_or_none(writers.all, [&] {
    if (!is_first) return;
    folder.begin();
    if (writers.on_each_node) formats::RawFile::create(begun).close();
  });
  if (!writers.on_each_node) return;
  mpi::all_or_none(writers.all, [&] {
    if (writers.ranks.rank() != 0 || is_first) return;
    folder.begin();
    if (fs::exists(begun)) checkpoint::refuse_shared_folder(folder.path());
  });
  std::error_code reported_when_it_is_created;
  if (is_first) fs::remove(begun, reported_when_it_is_created);
}

/// Writes the files, then moves them to their names. @collective
void save(const Writers& writers, const Saving& saving, const fs::path& target) {
  weights::WeightFolder folder(target, mpi::broadcast(writers.all, formats::replacement_id()), saving.names());
  const bool is_first = writers.ranks.rank() == 0;
  try {
    begin(writers, folder, saving.shards().files.front().name);
    mpi::all_or_none(writers.all, [&] { saving.write(writers.ranks, folder); });
    mpi::all_or_none(writers.all, [&] {
      if (is_first) folder.publish(saving.shards(), saving.weights());
    });
  } catch (...) {
    if (is_first) folder.abandon(saving.shards());
    throw;
  }
}

/// Elements of the whole divided parameters for this rank to write. @collective
std::map<const void*, formats::TensorSlice> slices_of_divided(Training& training, const step::ModelCore& model) {
  SnapshotDraft draft;
  mpi::all_or_none(training.host(), [&] {
    model.divided()->check_untouched();
    for (const auto& one : model.divided()->parameters()) draft.unjoined.push_back(unjoined(one.name, model, one));
  });
  join_together(draft, training);
  std::map<const void*, formats::TensorSlice> slices;
  for (const auto& one : draft.unjoined) {
    auto& share = draft.snapshot.shards.at(one.name);
    const auto& elements = share.of_ranks[static_cast<std::size_t>(training.host().rank())];
    slices.emplace(one.division.divided->parameter.unsafeGetTensorImpl(),
                   formats::TensorSlice{.elements = elements, .values = std::move(share.part)});
  }
  return slices;
}

/// Adds which elements this rank writes of parameters that not all ranks along the pipeline have.
void add_stages(std::map<const void*, formats::TensorSlice>& slices, const Training& training,
                const step::ModelCore& model) {
  const auto rank = static_cast<std::size_t>(training.host().rank());
  for (const auto& item : model.module().named_parameters()) {
    const auto& tensor = item.value();
    const auto* key = tensor.unsafeGetTensorImpl();
    if (!model.staged()->is_first_with(tensor)) {
      slices[key] = {};
    } else if (!slices.contains(key) && (model.sharded() == nullptr || !model.sharded()->is_any_sharded())) {
      const auto own = written_by_stage(training, tensor.numel())[rank];
      slices[key] = {.elements = own, .values = tensor.detach().reshape({-1}).narrow(0, own.begin, own.size())};
    }
  }
}

}  // namespace
}  // namespace accelerator

void Accelerator::save_module(const torch::nn::Module& module, const std::filesystem::path& dir,
                              const SaveModelOptions& options) {
  const activity::PhaseScope phase(activity::Phase::checkpoint);
  accelerator::end_rehearsal_before_writing();
  const auto& host = training_->host();
  // A torch.save file is written by one rank, which needs all of its tensors; a folder on each node by this node's.
  const auto model = accelerator::find_model(*training_, module);
  auto* divided = model != nullptr ? model->divided() : nullptr;
  const auto* staged = model != nullptr ? model->staged() : nullptr;
  const bool is_in_parts =
      divided != nullptr || staged != nullptr || accelerator::owned_shards(*training_, module).sharded != nullptr;
  const auto& node = training_->output.own_node();
  const step::WholeParameters whole(is_in_parts && (node || !options.safe_serialization) ? model.get() : nullptr);
  auto sharded = accelerator::owned_shards(*training_, module);
  if (divided != nullptr && model->is_lent()) divided = nullptr;
  if (divided != nullptr) sharded.of_divided = accelerator::slices_of_divided(*training_, *model);
  if (staged != nullptr && !model->is_lent()) {
    staged->share_buffers();
    accelerator::add_stages(sharded.of_divided, *training_, *model);
  }
  if (model != nullptr) sharded.buffers = model->buffers_of_first_rank();
  const parallel::WholeShapes shapes(divided);
  std::optional<accelerator::Saving> saving;
  mpi::all_or_none(host, [&] {
    if (model != nullptr) model->require_equal("save_model()");
    saving.emplace(module, sharded, options);
  });
  mpi::same_on_all(host, saving->outline(), "the model to save");
  const auto folder = node ? checkpoint::own_target(host, dir) : checkpoint::agreed_target(host, dir);
  const auto of_node = node ? std::optional(host.split(node->number, host.rank())) : std::nullopt;
  accelerator::save({.all = host, .ranks = of_node ? *of_node : host, .on_each_node = node.has_value()}, *saving,
                    folder);
  if (is_main_process() && !saving->left_out().empty())
    log::info("not written to ", folder, ", as tied to what is: ", text::join(saving->left_out()));
}

void Accelerator::save_model(const ModelBase& model, const std::filesystem::path& dir,
                             const SaveModelOptions& options) {
  model.core().check_alive();
  model.core().share_buffers();
  save_module(model.core().module(), dir, options);
}

}  // namespace hortator
