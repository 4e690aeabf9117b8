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
#include "comm/shm/node_problem.hpp"
#include "comm/shm/pending_transfer.hpp"
#include "comm/shm/team.hpp"
#include "mpi/communicator.hpp"

namespace hortator::comm {

/// The back end `node` for CPU tensors: shared memory within a node, MPI between nodes. A collective starts when it is
/// called. Work::wait completes it, and later calls move it on before that. Tensors from allocate() are used in place;
/// others are copied through staging memory. Ranks that differ in operation, type, size or root all throw.
class NodeCommunicator final : public Communicator {
 public:
  static constexpr Traits back_end_traits = {
      .shares_memory = true, .finds_mismatch = true, .max_under_way = NodeBoard::kept, .device = c10::kCPU};
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
  Work exchange(std::vector<PeerTensor> sent, std::vector<PeerTensor> received) override;
  void barrier() override;
  void advance() override;
  bool abandon(std::string_view reason) noexcept override;

  at::Tensor allocate(std::int64_t elements, at::ScalarType type) override;
  at::Tensor allocate_common(std::int64_t elements, at::ScalarType type) override;
  std::unique_ptr<Communicator> split(int color, int key) const override;

 private:
  /// How far an operation has come on this rank. Stages only increase.
  enum class Stage {
    posted,  ///< the ranks of this node can see it
    met,     ///< all ranks of this node have posted it, and the nodes compare their calls; only with several nodes
    agreed,  ///< all ranks make the same call; it is known whether they work in the window
    moving,  ///< this rank's part is on its way between nodes; only with several nodes
    done,    ///< this rank's part is done, and the others know it
  };
  struct Operation {
    NodePost::Verb verb = NodePost::Verb::barrier;
    ReduceOp op = ReduceOp::sum;
    int root = 0;
    at::Tensor output = {};                       ///< contiguous
    at::Tensor input = {};                        ///< contiguous; the output itself where the verb works in place
    at::Tensor target = {};                       ///< the user's tensor; the output is copied to it where they differ
    std::vector<PeerTensor> sent = {};            ///< of an exchange
    std::vector<PeerTensor> received = {};        ///< of an exchange
    std::string problem = {};                     ///< why this rank cannot take part
    std::optional<WindowPosition> position = {};  ///< in the window, of the operand that peers access; empty: not there
    std::uint64_t number = 0;                     ///< on the board
    Stage stage = Stage::posted;
    bool is_in_window = false;         ///< from `agreed` on: all ranks have the operand at the same position
    NodeAgreementPtr agreement = {};   ///< from `met` on
    PendingTransferPtr transfer = {};  ///< from `moving` on; null where this rank has nothing to send
  };

  /// Posts the operation that `make` checks and describes. What `make` throws is posted as `refused` with the reason,
  /// so that every rank throws it.
  Work start(const std::function<Operation()>& make);
  std::optional<WindowPosition> position_of(const Operation& operation) const;
  NodePost post_of(const Operation& operation) const;
  /// posted -> met for operations that all ranks of this node have posted. Only with several nodes.
  void start_agreements();
  /// Whether all ranks have posted the operation and make the same call: then it is `agreed` or later. Does not wait.
  bool check_agreed(Operation& operation) const;
  /// Waits until the collective `number` and all before it are done on all ranks. Throws what went wrong with `number`.
  void complete(std::uint64_t number);
  /// What to call repeatedly while this rank waits for ranks of its node. Empty where there is one node.
  std::function<void()> meanwhile();
  /// Waits until the operation is `agreed`. False when the ranks differ: then problems_ has the reason.
  bool wait_for_agreement(Operation& operation);
  /// The problem among the ranks of this node, if any, once all have posted. The same answer on all of them.
  std::optional<NodeProblem> problem_on_node(const Operation& operation) const;
  /// The problem among all ranks, which know that there is one. @collective
  NodeProblem problem_over_nodes(const Operation& operation) const;
  bool is_in_window_of_node(const Operation& operation) const;
  void gather_over_nodes(const Operation& operation);
  /// agreed -> done. May wait for other ranks.
  void do_own_part(Operation& operation);
  /// The same as far as it goes without waiting for other nodes. True when it is done.
  bool advance_own_part(Operation& operation);
  bool can_move_in_background(const Operation& operation) const;
  PendingTransferPtr start_transfer(const Operation& operation);
  void work_on(Operation& operation, const std::function<bool()>& work);
  kernels::Reduction reduction_of(const Operation& operation) const;
  void reduce(const Operation& operation);
  void move(const Operation& operation);

  mpi::Communicator comm_;
  mutable NodeTeam team_;
  MpiCommunicator mpi_;  ///< for collectives between nodes that block
  std::shared_ptr<const mpi::Communicator> agreements_;
  std::deque<Operation> pending_;                  ///< by number
  bool abandoned_ = false;                         ///< by this rank
  std::map<std::uint64_t, NodeProblem> problems_;  ///< by number, until this rank waits for that collective
};

}  // namespace hortator::comm
