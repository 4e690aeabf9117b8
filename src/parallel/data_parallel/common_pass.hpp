#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "mpi/communicator.hpp"

namespace hortator::parallel {

/// Compares one backward pass over all ranks. A loss may reach different models on different ranks: gradients of models
/// of the same shape would then be averaged with each other, and ranks would wait for one that sends nothing.
///
/// Uses a communicator of its own, because gradients are under way on the models' communicators meanwhile. Where ranks
/// wait for gradients within backward (ZeRO 2 and 3, the back end mpi), the watchdog reports a rank that sends none,
/// with what that rank has left out.
class CommonPass {
 public:
  CommonPass(std::unique_ptr<comm::Communicator> communicator, const mpi::Communicator& host);

  /// What one model reports of its pass. A default-constructed one reports and compares nothing.
  class Model {
   public:
    Model() = default;
    /// Must be called once if the model's gradients travel.
    void expect_gradients() const;
    /// Whether gradients of no other model travel before its own, on any rank, if a rank that leaves parameters out
    /// sends everything at the end of the pass. `finishes_all`: the models are then finished together, in their order.
    bool comes_first(bool finishes_all) const;
    /// Must be called when backward reaches the model. `fault` returns what keeps the model from sending all of its
    /// gradients on this rank; empty: nothing. It is called when this rank waits for the others at the end of the pass.
    void open(std::function<std::string()> fault) const;
    /// Must be called when part of its gradients is sent.
    void note_sent(std::size_t part) const;
    /// Must be called when all gradients have been received.
    void close() const;
    /// CommonPass::agree() for this model only: plain loss.backward() ends separately for each model. @collective
    void agree() const;

   private:
    friend CommonPass;
    Model(CommonPass* all, std::size_t number) : all_(all), number_(number) {}
    CommonPass* all_ = nullptr;
    std::size_t number_ = 0;
  };
  Model add_model(std::string name);
  void forget_all();

  /// Must be called before ranks wait for each other's gradients. Throws on all ranks unless they reached the same
  /// models, and sent everything in the same order up to the previous pass. @collective
  void agree() const;

  double seconds_waited() const { return seconds_; }

  /// comm::Communicator::abandon: this rank stops taking part.
  bool abandon(std::string_view reason) noexcept { return communicator_->abandon(reason); }

 private:
  void compare(const std::string& reached) const;
  std::string fault() const;  ///< of the models that are open

  std::unique_ptr<comm::Communicator> communicator_;
  const mpi::Communicator& host_;
  std::vector<std::string> names_;
  std::vector<bool> is_open_;
  std::vector<std::function<std::string()>> faults_;
  std::vector<bool> sends_;
  std::uint64_t sent_ = 0;     ///< hash of all that was sent, in its order
  std::uint64_t settled_ = 0;  ///< sent_ when no model was open last: the same on all ranks
  at::Tensor bounds_;
  mutable double seconds_ = 0;
};

}  // namespace hortator::parallel
