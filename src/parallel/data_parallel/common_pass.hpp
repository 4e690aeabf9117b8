#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "mpi/communicator.hpp"

namespace hortator::parallel {

/// One backward pass as all ranks see it. A loss may reach other models on one rank than on the others: gradients of
/// models that look alike would then be averaged with each other, and ranks would wait for one that sends nothing.
///
/// On a communicator of its own: gradients are under way on the models' meanwhile. Where ranks wait for gradients
/// within backward (ZeRO 2 and 3, the back end mpi), one that sends none is the watchdog's to name.
class CommonPass {
 public:
  CommonPass(std::unique_ptr<comm::Communicator> communicator, const mpi::Communicator& host);

  /// What one model tells of itself. Without a pass in common nothing is told and nothing compared.
  class Model {
   public:
    Model() = default;
    /// Backward has come to it.
    void open() const;
    /// Part of its gradients leaves this rank.
    void note_sent(std::size_t part) const;
    /// All of them have come.
    void close() const;
    /// agree() of this model alone: plain loss.backward() ends for each by itself. @collective
    void agree() const;

   private:
    friend CommonPass;
    Model(CommonPass* all, std::size_t number) : all_(all), number_(number) {}
    CommonPass* all_ = nullptr;
    std::size_t number_ = 0;
  };
  Model add_model(std::string name);
  void forget_all();

  /// Before ranks wait for each other's gradients: have they come to the same models, and have they sent everything in
  /// the same order up to the pass before? All throw if not. @collective
  void agree() const;

  double seconds_waited() const { return seconds_; }

  /// This rank takes part no more: comm::Communicator::abandon.
  bool abandon(std::string_view reason) noexcept { return communicator_->abandon(reason); }

 private:
  void compare(const std::string& reached) const;

  std::unique_ptr<comm::Communicator> communicator_;
  const mpi::Communicator& host_;
  std::vector<std::string> names_;
  std::vector<bool> is_open_;
  std::uint64_t sent_ = 0;     ///< all that was sent, in its order
  std::uint64_t settled_ = 0;  ///< the same, when no model was open last: what ranks have alike
  at::Tensor bounds_;
  mutable double seconds_ = 0;
};

}  // namespace hortator::parallel
