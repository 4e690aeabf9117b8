#pragma once

#include <cstddef>
#include <cstdint>
#include <hortator/error.hpp>
#include <string>
#include <vector>

#include "comm/communicator.hpp"

/// What travels in an exchange, as all back ends need it.
namespace hortator::comm {

/// What one rank sends to each rank and expects from each, as numbers that both sides compare. Equal numbers mean equal
/// types and sizes; 0 means that nothing travels.
struct ExchangeSummary {
  std::vector<std::uint64_t> to;
  std::vector<std::uint64_t> from;

  static ExchangeSummary of(const std::vector<PeerTensor>& sent, const std::vector<PeerTensor>& received, int ranks);

  /// A number whose sum over all ranks, modulo 2^64, is 0 where each sends what its peer expects. Otherwise it is not,
  /// except in one case of 2^64.
  std::uint64_t imbalance(int rank) const;
};

/// "Float [2, 3], Long [4]": the tensors of `list` for `peer`; "nothing" if there are none.
std::string describe(const std::vector<PeerTensor>& list, int peer);

/// The error where rank `from` sends other tensors than rank `to` expects.
Problem exchange_mismatch(int from, const std::string& sends, int to, const std::string& expects);

/// Copies what this rank sends to itself.
void deliver_own(const std::vector<PeerTensor>& sent, const std::vector<PeerTensor>& received, int rank);

/// The data of an exchange of CPU tensors: one buffer for each peer but rank `own` and direction, whatever the tensors'
/// strides.
class PeerBuffers {
 public:
  PeerBuffers(const std::vector<PeerTensor>& sent, std::vector<PeerTensor> received, int ranks, int own);

  struct Bytes {
    std::byte* data = nullptr;
    std::size_t size = 0;
  };
  Bytes to(int peer) const { return bytes_of(to_.at(static_cast<std::size_t>(peer))); }
  Bytes from(int peer) const { return bytes_of(from_.at(static_cast<std::size_t>(peer))); }

  /// Copies what has been received to its tensors, where they are not the buffers themselves.
  void unpack() const;

 private:
  static Bytes bytes_of(const at::Tensor& buffer);

  std::vector<PeerTensor> received_;
  std::vector<at::Tensor> to_;    ///< by peer, contiguous; undefined: nothing travels
  std::vector<at::Tensor> from_;  ///< the same
};

}  // namespace hortator::comm
