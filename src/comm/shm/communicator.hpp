#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "comm/communicator.hpp"
#include "comm/mpi/mpi_communicator.hpp"
#include "comm/shm/agreement.hpp"
#include "comm/shm/pending_transfer.hpp"
#include "comm/shm/team.hpp"
#include "comm/shm/verdict.hpp"
#include "mpi/communicator.hpp"

namespace hortator::comm {

/// CPU tensors of ranks that share nodes: within a node through shared memory, between nodes by MPI. A collective
/// starts when it is called and is completed by Work::wait, or on the way by later calls. Tensors from allocate() are
/// worked on where they lie; others are staged. Ranks of a node that differ in operation, type, size or root all throw.
class NodeCommunicator final : public Communicator {
 public:
  static constexpr Traits back_end_traits = {.shares_memory = true, .finds_mismatch = true, .device = c10::kCPU};
  static constexpr std::size_t default_staging = std::size_t{512} << 10;

  /// @collective
  explicit NodeCommunicator(mpi::Communicator comm, std::size_t staging_bytes = default_staging);
  ~NodeCommunicator() override;

  int rank() const override { return comm_.rank(); }
  int size() const override { return comm_.size(); }
  std::string_view name() const override { return "node"; }
  Traits traits() const override { return back_end_traits; }

  Work all_reduce(at::Tensor tensor, ReduceOp op) override;
  Work reduce_scatter(at::Tensor output, const at::Tensor& input, ReduceOp op) override;
  Work all_gather(at::Tensor output, const at::Tensor& input) override;
  Work broadcast(at::Tensor tensor, int root) override;
  Work broadcast_all(std::vector<at::Tensor> tensors, int root) override;
  void barrier() override;
  void advance() override;
  bool abandon(std::string_view reason) noexcept override;

  at::Tensor allocate(std::int64_t elements, at::ScalarType type) override;
  at::Tensor allocate_common(std::int64_t elements, at::ScalarType type) override;
  std::unique_ptr<Communicator> split(int color, int key) const override;

 private:
  struct Operation {
    NodePost::Verb verb = NodePost::Verb::barrier;
    ReduceOp op = ReduceOp::sum;
    int root = 0;
    at::Tensor output = {};               ///< contiguous
    at::Tensor input = {};                ///< contiguous; the output itself where the verb works in place
    at::Tensor target = {};               ///< where the output goes when it had to be packed
    std::string problem = {};             ///< why this rank cannot take part
    std::optional<NodePlace> place = {};  ///< of the operand that peers reach into, in the window
    std::uint64_t number = 0;
    bool is_in_window = false;        ///< do all ranks have the operand at the same place of the window
    NodeAgreementPtr agreement = {};  ///< with the ranks of other nodes, once those of this one have come
    std::optional<PendingTransferPtr> transfer = {};  ///< this rank's share, while it is on its way between nodes
    bool is_shared_out = false;                       ///< this rank's share is done
  };

  Work start(const std::function<Operation()>& make);
  std::optional<NodePlace> place_of(const Operation& operation) const;
  NodePost post_of(const Operation& operation) const;
  void ask_other_nodes();
  /// Have all ranks come, and do they do the same? Settles whether all of them work in the window.
  bool is_agreed(Operation& operation) const;
  /// Returns when the collective `number` and all before it are done. Throws what went wrong with `number`.
  void complete(std::uint64_t number);
  /// To be called again and again while this rank waits for its node; nothing where there is no other.
  std::function<void()> meanwhile();
  /// False when the ranks do not agree.
  bool come_together(Operation& operation);
  /// What is wrong with it, by global rank, when all ranks of the node have come: the same answer on all.
  std::optional<NodeProblem> problem_on_node(const Operation& operation) const;
  /// The same over all nodes, when there is one. @collective
  NodeProblem problem_over_nodes(const Operation& operation) const;
  bool is_in_window_of_node(const Operation& operation) const;
  void gather_over_nodes(const Operation& operation);
  void do_share(Operation& operation);
  /// The same without waiting for other nodes, as far as it goes. True when it is done.
  bool advance_share(Operation& operation);
  bool can_fly(const Operation& operation) const;
  PendingTransferPtr start_transfer(const Operation& operation);
  void work_on(Operation& operation, const std::function<bool()>& work);
  kernels::Reduction reduction_of(const Operation& operation) const;
  void reduce(const Operation& operation);
  void move(const Operation& operation);

  mpi::Communicator comm_;
  mutable NodeTeam team_;
  MpiCommunicator mpi_;  ///< for what goes between nodes and is waited for
  std::shared_ptr<const mpi::Communicator> agreements_;
  std::deque<Operation> pending_;                  ///< in the order of their numbers
  bool abandoned_ = false;                         ///< by this rank
  std::map<std::uint64_t, NodeProblem> problems_;  ///< of collectives that nobody has waited for yet
};

}  // namespace hortator::comm
