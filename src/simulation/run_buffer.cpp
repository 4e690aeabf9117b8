#include "simulation/run_buffer.hpp"

#include <ATen/ops/from_blob.h>

#include <array>
#include <hortator/error.hpp>
#include <span>
#include <utility>

#include "checkpoint/format.hpp"
#include "checkpoint/read/reader.hpp"
#include "checkpoint/write/save.hpp"
#include "core/log.hpp"
#include "core/text/text.hpp"
#include "mpi/collectives.hpp"
#include "simulation/calls/local_outcome.hpp"

namespace hortator::simulation {
namespace {

/// The statistics of all ranks together, merged in rank order, so that all get the same bits. @collective
FeatureStatistics merged(const mpi::Communicator& comm, const FeatureStatistics& mine) {
  const auto packed = mine.packed();
  const std::string_view bytes =
      packed.defined() ? std::string_view(static_cast<const char*>(packed.const_data_ptr()), packed.nbytes())
                       : std::string_view();
  FeatureStatistics all;
  for (const auto& part : mpi::all_gather(comm, bytes)) {
    if (part.empty()) continue;
    const auto features = static_cast<std::int64_t>(part.size() / (5 * sizeof(double)));
    all.merge(FeatureStatistics::of_packed(at::from_blob(const_cast<char*>(part.data()), {5, features}, at::kDouble)));
  }
  return all;
}

}  // namespace

RunBuffer::RunBuffer(const mpi::Communicator& comm, SampleBuffer samples) : comm_(comm), samples_(std::move(samples)) {
  if (samples_.settings().is_node_shared) of_node_.emplace(comm_);
}

bool RunBuffer::put(const TensorBatch& batch) {
  if (samples_.put(batch)) return true;
  if (!std::exchange(has_warned_, true)) {
    log::warn("rank ", comm_.family_rank(comm_.rank()), ": samples for the buffer ", samples_.name(),
              " were left out, because a number in them is not finite (this is the only warning)");
  }
  return false;
}

bool RunBuffer::is_ready() {
  if (!of_node_) return samples_.is_ready();
  of_node_->update(samples_);
  return of_node_->count() >= samples_.settings().min_samples;
}

TensorBatch RunBuffer::draw() { return of_node_ ? of_node_->draw(samples_) : samples_.draw(); }

void RunBuffer::standardize(TrainedModel& model) const {
  if (!model.is_normalized()) return;
  if (!samples_.settings().has_statistics) {
    throw UsageError({.what = text::concat("The model ", text::quote(model.name()), " is normalised, the buffer ",
                                           text::quote(samples_.name()), " keeps no statistics"),
                      .hint = text::concat("set statistics: true in buffers.", samples_.name())});
  }
  const auto inputs = merged(comm_, samples_.statistics().input);
  const auto targets = merged(comm_, samples_.statistics().target);
  if (targets.empty()) {
    throw UsageError(
        {.what = text::concat("The samples of ", text::quote(samples_.name()), " have no targets"),
         .why = text::concat("the model ", text::quote(model.name()), " standardises its outputs by theirs"),
         .hint = "bind a target (HORTATOR_TARGET) before hortator_buffer_put"});
  }
  model.standardize(inputs, targets);
}

void RunBuffer::require_own(const TrainedModel* model) const {
  if (model == nullptr) {
    throw UsageError({.what = text::concat("The model that the buffer ", text::quote(samples_.name()),
                                           " trains is NULL, or its run has ended"),
                      .hint = "pass what hortator_model_create has made, and check that call's status"});
  }
  if (&model->comm() == &comm_) return;
  throw UsageError({.what = text::concat("The buffer ", text::quote(samples_.name()), " and the model ",
                                         text::quote(model->name()), " belong to different runs"),
                    .why = "a run trains on the samples of its own ranks",
                    .hint = "create both in one run; hortator_share_samples moves samples between runs"});
}

TrainedModel::Step RunBuffer::train(TrainedModel* model, std::int64_t steps, bool wants_loss) {
  const auto outcome = attempt([&] { require_own(model); });
  std::array<std::int64_t, 4> least = {is_ready() ? 1 : 0, steps, -steps, outcome.failed ? 0 : 1};
  mpi::all_reduce(comm_, std::span<std::int64_t>(least), mpi::Op::min);
  if (least[3] == 0) mpi::agree(comm_, outcome);  // throws
  if (least[1] != -least[2] || least[1] < 0) {
    throw UsageError({.what = text::concat("hortator_buffer_train got steps from ", least[1], " to ", -least[2]),
                      .hint = "pass the same number, from 0, on all ranks"});
  }
  if (least[0] == 0) return {.is_done = false};
  standardize(*model);
  TrainedModel::Step last{.is_done = steps == 0};
  for (std::int64_t step = 0; step < steps; ++step) {
    const auto next = model->train([&] { return draw(); }, wants_loss && step + 1 == steps);
    last = {.is_done = last.is_done || next.is_done, .loss = next.loss};
  }
  return last;
}

std::int64_t RunBuffer::saved_count(const checkpoint::Reader& reader, int rank) const {
  const auto& datasets = reader.manifest().datasets;
  const auto found = datasets.find(checkpoint::rank_folder(rank) + "/" + path() + "/samples/inputs0");
  return found == datasets.end() ? 0 : found->second.spec.shape.front();
}

void RunBuffer::load(const checkpoint::Reader& reader) {
  if (reader.world_size() == comm_.size()) return samples_.load(reader.own(comm_.rank(), path()));
  SampleBuffer::SavedParts parts{.state = [&](int rank) { return reader.own(rank, path()); },
                                 .without_samples =
                                     [&](int rank) {
                                       auto state =
                                           reader.manifest().values.under(checkpoint::rank_folder(rank) + "/" + path());
                                       state.put_all("statistics", reader.own(rank, path() + "/statistics"));
                                       return state;
                                     }};
  for (int rank = 0; rank < reader.world_size(); ++rank) parts.counts.push_back(saved_count(reader, rank));
  samples_.load_redistributed(parts, comm_.size(), comm_.rank());
  if (comm_.rank() != 0) return;
  log::warn("the buffer ", samples_.name(), " was saved by ", text::count(reader.world_size(), "rank"),
            ": its samples are distributed over ", comm_.size(), ", and others are drawn than without the stop");
}

accelerator::CheckpointPart RunBuffer::part() {
  return {.save = [this](checkpoint::Snapshot& snapshot) { snapshot.own.put_all(path(), samples_.state()); },
          .misfits =
              [this](const checkpoint::Reader& reader) {
                const bool is_there =
                    reader.manifest().values.contains(checkpoint::rank_folder(0) + "/" + path() + "/seen");
                return is_there ? std::vector<std::string>()
                                : std::vector{text::concat("it holds nothing for the buffer '", samples_.name(), "'")};
              },
          .load = [this](const checkpoint::Reader& reader) { load(reader); }};
}

}  // namespace hortator::simulation
