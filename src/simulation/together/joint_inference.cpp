#include "simulation/together/joint_inference.hpp"

#include <ATen/ops/cat.h>

#include <cmath>
#include <hortator/error.hpp>
#include <utility>

#include "core/log.hpp"
#include "core/text/text.hpp"
#include "core/text/units.hpp"

namespace hortator::simulation {
namespace {

using Progress = RequestBoard::Progress;

/// The ranks of this node that compute on the same device. @collective
mpi::Communicator ranks_of_device(const mpi::Communicator& all, c10::Device device) {
  const auto node = all.node();
  return node.split(device.is_cpu() ? 0 : device.index() + 1, node.rank());
}

std::int64_t total(const std::vector<std::int64_t>& counts) {
  std::int64_t sum = 0;
  for (const auto count : counts) sum += count;
  return sum;
}

/// The tensors of all parts, one part after the other.
JointInference::Tensors as_one(const std::vector<JointInference::Tensors>& parts) {
  JointInference::Tensors all;
  for (std::size_t i = 0; i < parts.front().size(); ++i) {
    std::vector<at::Tensor> rows;
    for (const auto& part : parts) rows.push_back(part[i].to(parts.front()[i].device()));
    all.push_back(at::cat(rows));
  }
  return all;
}

JointInference::Tensors rows_of(const JointInference::Tensors& all, std::int64_t first, std::int64_t count) {
  JointInference::Tensors rows;
  for (const auto& one : all) rows.push_back(one.narrow(0, first, count));
  return rows;
}

bool are_close(const at::Tensor& one, const at::Tensor& other) {
  if (one.sizes() != other.sizes() || one.numel() == 0) return one.sizes() == other.sizes();
  if (!one.is_floating_point() && !one.is_complex()) return one.equal(other);
  const double tolerance = at::isReducedFloatingType(one.scalar_type()) ? 3e-2 : 1e-3;
  const auto difference = (one - other).abs().max().item<double>();
  return !(difference > tolerance * other.abs().max().item<double>());  // NaN is for the caller
}

}  // namespace

std::optional<JointInference::Settings> JointInference::read(const Section& model) {
  const auto section = model.section("infer_together");
  if (!section) return {};
  if (model.text("type") == "graph") {
    throw model.error("infer_together", "the nodes of a graph depend on each other, and cannot be joined as samples",
                      "leave infer_together out");
  }
  Settings settings;
  const double seconds = section->number("wait", 0.01);
  constexpr double max_seconds = 3600;
  if (!(seconds >= 0 && seconds <= max_seconds))
    throw section->error("wait", text::concat("expected seconds from 0 to ", max_seconds));
  settings.patience = std::chrono::nanoseconds(std::llround(seconds * 1e9));
  settings.bytes = static_cast<std::size_t>(section->integer("memory", 1, 16)) << 20;
  section->finish();
  return settings;
}

JointInference::JointInference(const mpi::Communicator& all, c10::Device device, std::string name,
                               const Settings& settings)
    : ranks_(ranks_of_device(all, device)), name_(std::move(name)), settings_(settings) {
  board_ = std::make_unique<RequestBoard>(ranks_, all, settings.bytes);
  if (ranks_.size() == 1) board_.reset();
}

JointInference::Tensors JointInference::infer(const Tensors& inputs, const Compute& compute) {
  if (!board_) return compute(inputs);
  return board_->rank() == 0 ? serve(inputs, compute) : ask(inputs, compute);
}

void JointInference::note_no_room(const char* what) {
  if (std::exchange(has_noted_, true)) return;
  log::warn("the ", what, " of the model ", text::quote(name_), " have no room in the ", units::bytes(settings_.bytes),
            " of a rank: they are not computed together with those of other ranks. Raise memory: of infer_together");
}

JointInference::Tensors JointInference::ask(const Tensors& inputs, const Compute& compute) {
  if (!board_->post(inputs)) {
    note_no_room("inputs");
    return compute(inputs);
  }
  switch (board_->wait_for_results(std::chrono::steady_clock::now() + settings_.patience)) {
    case Progress::done:
      ++joint_calls_;
      return board_->results();
    case Progress::refused:
      throw UsageError({.what = board_->reason(), .hint = "leave infer_together out of its settings"});
    default:
      return compute(inputs);
  }
}

// Batches of other ranks come first, so that they do not wait for a batch that is the server's only.
JointInference::Tensors JointInference::serve(const Tensors& inputs, const Compute& compute) {
  const auto ranks = board_->collect(settings_.patience);
  const auto own = layout_of(inputs);
  std::vector<RequestLayout> requests = {own.value_or(RequestLayout{})};
  for (const int rank : ranks) requests.push_back(board_->layout(rank));
  Tensors own_results;
  std::optional<std::string> refusal;
  for (const auto& batch : common_batches(requests)) {
    std::vector<int> members;
    for (const auto index : batch) members.push_back(index == 0 ? 0 : ranks[index - 1]);
    if (members == std::vector{0}) continue;
    try {
      const auto problem = compute_batch(members, inputs, compute, own_results);
      for (const int rank : members)
        board_->finish(rank, problem ? Progress::refused : Progress::returned, problem.value_or(""));
      if (problem) refusal = problem;
    } catch (const std::exception&) {  // each rank finds its own mistake
      for (const int rank : members) board_->finish(rank, Progress::returned);
      own_results.clear();
    }
  }
  board_->leave();
  if (refusal) throw UsageError({.what = *refusal, .hint = "leave infer_together out of its settings"});
  if (own_results.empty()) return compute(inputs);
  ++joint_calls_;
  return own_results;
}

std::optional<std::string> JointInference::compute_batch(const std::vector<int>& ranks, const Tensors& own,
                                                         const Compute& compute, Tensors& own_results) {
  std::vector<Tensors> parts;
  std::vector<std::int64_t> counts;
  for (const int rank : ranks) {
    parts.push_back(rank == 0 ? own : board_->tensors(rank));
    const bool has_samples = !parts.back().empty() && parts.back().front().dim() > 0;
    counts.push_back(has_samples ? parts.back().front().size(0) : 0);
  }
  if (total(counts) == 0) return {};  // nothing to compute, or requests without room
  const auto results = compute(parts.size() == 1 ? parts.front() : as_one(parts));
  if (parts.size() > 1) {
    if (auto problem = dependence(parts, counts, results, compute)) return problem;
  }
  std::int64_t first = 0;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const auto rows = parts.size() == 1 ? results : rows_of(results, first, counts[i]);
    first += counts[i];
    if (ranks[i] == 0) {
      own_results = rows;
    } else if (board_->post_results(ranks[i], rows)) {
      board_->finish(ranks[i], Progress::done);
    } else {
      note_no_room("outputs");
    }
  }
  return {};
}

// Once: the samples of one rank must have the results that they have without the others.
std::optional<std::string> JointInference::dependence(const std::vector<Tensors>& parts,
                                                      const std::vector<std::int64_t>& counts, const Tensors& results,
                                                      const Compute& compute) {
  for (const auto& result : results) {
    if (result.dim() > 0 && result.size(0) == total(counts)) continue;
    return text::concat("An output of the model ", text::quote(name_), " has the shape ", result.sizes(), " for ",
                        total(counts), " samples of several ranks");
  }
  if (are_independent_ || counts.front() == 0) return {};
  const auto apart = compute(parts.front());
  const auto of_batch = rows_of(results, 0, counts.front());
  for (std::size_t i = 0; i < apart.size(); ++i) {
    if (are_close(of_batch[i], apart[i])) continue;
    return text::concat("The samples of the model ", text::quote(name_),
                        " depend on each other: it computes something ",
                        "else for the samples of several ranks than for those of each");
  }
  are_independent_ = true;
  return {};
}

}  // namespace hortator::simulation
